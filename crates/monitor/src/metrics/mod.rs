//! The metrics, made from the reply of `serverStatus` at each scrape.
//!
//! A table (`families`) says for each metric its name, unit and help, and where its value stands in that reply. So a
//! scrape costs one `serverStatus`, and nothing is counted twice.

mod encoding;
mod families;
mod family;
mod histogram;

pub use encoding::{Format, encode};
#[cfg(test)]
pub use families::FAMILIES;
#[cfg(test)]
pub use family::{Kind, Source};
