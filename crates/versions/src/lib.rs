//! An ordered map in memory whose keys have versions. `lsm` and `mmap` hold their data in it until a checkpoint, and
//! `memory` always.
//!
//! A version has the LSN of the write that made it. A view *before* an LSN sees, for each key, the newest version below
//! that LSN. A version can be dropped once no open or future view sees it, whether it is older than all views or
//! between two of them.
//!
//! **Invariant:** later puts of a key have larger LSNs; the callers' locks ensure this.
//! **Invariant:** no lock is held between calls, however long a walk takes.
//! **Invariant:** after a put, the map has no more versions of the key than views see, and a few.
#![forbid(unsafe_code)]

mod head_key;
mod map;
mod version;
mod views;
mod walk;

pub use head_key::{HeadKey, head_of};
pub use map::{Before, Known, Put, VersionedMap};
pub use version::{Forgotten, Rest, Superseded, Version};
pub use views::{OpenViews, Views};
pub use walk::{Direction, Hold, Walk};
