//! The views, one file each.

pub(crate) mod artifact;
pub(crate) mod begin;
pub(crate) mod conversations;
pub(crate) mod data;
pub(crate) mod enter;
pub(crate) mod export;
pub(crate) mod forget;
pub(crate) mod health;
pub(crate) mod knows;
pub(crate) mod live;
pub(crate) mod message;
pub(crate) mod numbers;
pub(crate) mod search;
pub(crate) mod sees;
pub(crate) mod settings;
pub(crate) mod snapshots;
pub(crate) mod store_settings;
pub(crate) mod talk;
pub(crate) mod timeline;
