//! Finds what was said weeks ago, without a model: an index of a conversation, and a ranker.
//!
//! The crate does no input or output and asks no clock: the caller hands over turns and questions, stores segments as
//! bytes and fetches the messages that a [`Hit`] names. The same turns and the same question give the same bytes and
//! the same order.
//!
//! A turn is cut into passages of at most 25 words. A passage's score is a weighted sum of eight features: the
//! question's words in it and near it, what it means, what the passages beside it mean, whether it tells something, its
//! session's topic, its speaker, its day, and whether a person said it. What passages mean is told by the vectors of a sentence encoder that the caller
//! has; without them, words rank alone. A turn's score is its best passage's.
//!
//! ```
//! use sottovoce_recall::{Asked, Index, Question, Role, Turn};
//!
//! let mut index = Index::default();
//! index.push(&Turn::new(1, 0, 0, Role::User, "My dog is called Bruno."));
//! index.push(&Turn::new(2, 9_000, 0, Role::Assistant, "What a nice name!"));
//! index.push(&Turn::new(3, 20_000, 0, Role::User, "Turn on the light, please."));
//!
//! let now = jiff::Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC);
//! let question = Question::new("What is my dog called?", &Asked::new(now, 1970..=1970));
//! let hits = index.rank(&question, |_| true, 1);
//! assert_eq!(hits[0].seq, 1);
//! ```

mod error;
mod fit;
mod hit;
mod index;
mod marks;
mod meaning;
mod near;
mod question;
mod search;
mod secret;
mod segment;
mod text;
mod time;
mod turn;

pub use error::SegmentError;
pub use fit::{goes_on, needs_memory, orders};
pub use hit::{Hit, Why, put_newer_first, select_within};
pub use index::{Index, Weights};
pub use meaning::{DIMENSIONS, Meaning, Vector, alike};
pub use near::nearest;
pub use question::{Asked, Question};
pub use search::{NotUnderstood, SearchQuery};
pub use segment::{BuildOptions, Segment};
pub use text::{language::Language, passages::sentences};
pub use time::DaySpan;
pub use turn::{Role, Turn};
