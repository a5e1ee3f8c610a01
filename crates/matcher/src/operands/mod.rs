//! Parsed operands of conditions, and their tests of single values. The operators in [`crate::operators`] parse them.

mod bits;
pub(crate) mod bucket_geo;
mod geo;
mod near;
mod regex;
mod text;
mod types;

pub use bits::{BitMask, BitTest};
pub use geo::Geo;
pub use near::{NearPoint, near_of};
pub use regex::{Regex, RegexPrefix};
pub use text::{AskedText, TextSearch};
pub use types::TypeSet;
