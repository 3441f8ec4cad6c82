//! What a conversation holds beyond its prompt: overview, snapshots, tools and forgetting.

mod forget;
mod overview;
#[cfg(feature = "recall")]
mod search;
mod snapshot;
mod tool_limits;
mod tool_result;
pub(super) mod tools;

pub use overview::ConversationOverview;
pub use tool_limits::MemoryTools;
