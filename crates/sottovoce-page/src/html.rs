//! What all pages are made of.

pub(crate) mod assets;
mod chart;
mod fitting;
mod format;
mod layout;
mod message;
mod words;

pub(crate) use assets::download;
pub(crate) use chart::{Bar, bars, line};
pub(crate) use fitting::{BESIDE, Fitting, ROOM, fitting};
pub(crate) use format::{counted, date, duration, local, moment, name, one_line, size};
pub(crate) use layout::{Place, Shell, Visit, around, layout};
pub(crate) use message::{Marks, article, who};
pub(crate) use words::{beginning, brief, cut};
