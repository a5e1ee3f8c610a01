//! An image: the files of one checkpoint with the log up to a place, from which another directory is made.
//!
//! ```text
//! a member that has the data                            a member without data
//!  checkpoint ─► links to its files ─► ranges of files ─► files beside the data ─► intent ─► in place of the data
//!  `source.rs`                                            `received.rs`            `installing.rs`
//! ```
//! An image is what a start would find after a crash at that moment, so a plain start on its files opens it.
//!
//! **Invariant:** a name in a list of files never leads out of the directory (`is_of_image` in `list.rs`).

pub(crate) mod images;
mod installing;
mod list;
mod received;
mod source;

pub use images::{IDLE_MAX, Image, ImageState};
pub use installing::finish_installing;
pub use list::{IMAGE_RANGE_BYTES, ImageFile, ImageList};
pub use received::{ReceivedImage, Wanted};
