//! The owner's page: a web page on this machine that shows what a store holds, why a prompt says what it says, and that
//! forgets what its owner selects.
//!
//! A [`Page`] is told which store it shows. [`Page::listen`] binds an address, and [`Listening::serve`] answers until it is told to
//! stop. Pages are made on the server and work without JavaScript. Everything that a browser loads comes from this crate.
//!
//! Only who has the link that [`Listening::link`] returns gets in, once; the browser then has a cookie of this run. Neither logs nor
//! errors hold conversation text.

mod app;
mod deed;
mod english;
mod enter;
mod failure;
mod host;
mod house;
mod html;
mod later;
mod link;
mod page;
mod room;
mod routes;
mod server;
mod view;

pub use host::{Advice, Check, CheckState, Checks, Facts};
pub use page::{Listening, Page, PageError};
