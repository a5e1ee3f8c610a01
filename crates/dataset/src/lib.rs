//! Seeded documents and key distributions for benchmarks.
//!
//! A [`Dataset`] is an endless sequence of documents. A shape's fields ([`SHAPES`]) are laid out once and then copied;
//! only the parts that differ are filled in. A [`KeyStream`] chooses the next document to access.
//! [`samples`] are small data sets for users.
//!
//! **Invariant:** the same seed gives the same bytes and the same keys on every machine and in every version.
#![forbid(unsafe_code)]

mod compressible;
mod dataset;
mod distributions;
mod error;
mod fnv;
mod id;
mod key_order;
mod layout;
mod random;
pub mod samples;
mod shapes;
mod text_form;
mod verify;

pub use compressible::Compressible;
pub use dataset::{Dataset, DatasetOptions};
pub use distributions::{Distribution, KeyStream};
pub use error::DatasetError;
pub use id::{Id, IdKind};
pub use key_order::KeyOrder;
pub use shapes::{SHAPES, Shape};
