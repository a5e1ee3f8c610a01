//! An ordered map in memory whose keys have versions: what `lsm` and `mmap` hold before a checkpoint, and `memory` for
//! good.
//!
//! A version has the LSN of the write that made it. A view of what is *before* an LSN sees, of each key, the newest
//! version below it. A version goes once no view, open or to come, sees it, be it older than all views or between two.
//!
//! **Invariant:** of one key, whoever puts later has the larger LSN; the caller's locks see to it.
//! **Invariant:** no lock is held between calls, however long a walk takes.
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
