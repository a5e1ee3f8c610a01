//! Named objects: the files of a target, wherever they are stored.
//!
//! **Invariant:** an object exists whole or not at all.
//! **Invariant:** an object that was put, or created and then settled, survives a power cut.

mod bucket;
mod directory;
mod sealed;

pub(crate) use bucket::{BucketObjects, of_s3};
pub(crate) use directory::Directory;
pub(crate) use sealed::{KEYS, Sealed, key_of};

use crate::Result;
use bunko_tools::ToolError;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Longest object that is read whole, in bytes: a manifest, or a part of an archive, which is longer than a record.
const READ_BYTES_MAX: usize = 256 << 20;

/// Takes the bytes of an object, in order.
pub(crate) type Take<'t> = &'t mut dyn FnMut(&[u8]) -> Result<ControlFlow<()>>;

/// A store of objects. Their names are paths with `/` between the parts.
pub(crate) trait Objects {
    /// An object's place, for messages.
    fn shown(&self, name: &str) -> PathBuf;

    /// The path of an object's file, if it is a file with the object's bytes.
    fn path(&self, name: &str) -> Option<PathBuf>;

    /// Takes the right to write, which one process has at a time until it ends.
    /// # Errors
    /// `Failed` if another process has it.
    fn lock(&mut self) -> Result<()>;

    /// The name of an object, or of anything else, that a new target does not have.
    /// # Errors
    /// Errors of the store; `Usage` if no target can be made there.
    fn stranger(&self) -> Result<Option<String>>;

    /// The objects whose names begin with `below`, which ends with `/`, and their lengths in bytes.
    /// # Errors
    /// Errors of the store.
    fn list(&self, below: &str) -> Result<BTreeMap<String, u64>>;

    /// The next parts of all names that begin with `below`, which ends with `/`.
    /// # Errors
    /// Errors of the store.
    fn children(&self, below: &str) -> Result<BTreeSet<String>>;

    /// Shows the bytes of an object in pieces of any length. Returns whether the object exists.
    /// # Errors
    /// Errors of the store and of `take`.
    fn show(&self, name: &str, take: Take<'_>) -> Result<bool>;

    /// Makes an object, or replaces it. It is durable on return.
    /// # Errors
    /// Errors of the store; the object is as before, or has the new contents.
    fn put(&self, name: &str, contents: &[u8]) -> Result<()>;

    /// Begins an object of that length, which does not exist before [`Upload::finish`].
    /// # Errors
    /// Errors of the store.
    fn create<'o>(&'o self, name: &str, bytes: u64) -> Result<Box<dyn Upload + 'o>>;

    /// Makes objects durable that were created.
    /// # Errors
    /// Errors of the store.
    fn settle(&self, names: &BTreeSet<String>) -> Result<()>;

    /// Removes an object.
    /// # Errors
    /// Errors of the store.
    fn remove(&self, name: &str) -> Result<()>;

    /// Removes the remains of writers that were interrupted. Called under [`Self::lock`].
    /// # Errors
    /// Errors of the store.
    fn prune(&self) -> Result<()>;
}

/// An object that is being made.
pub(crate) trait Upload {
    /// Adds the next bytes.
    /// # Errors
    /// Errors of the store.
    fn add(&mut self, bytes: &[u8]) -> Result<()>;

    /// Gives the object its name. All bytes were added.
    /// # Errors
    /// Errors of the store.
    fn finish(self: Box<Self>) -> Result<()>;
}

impl dyn Objects + '_ {
    /// The bytes of an object; `None` if it does not exist.
    /// # Errors
    /// As [`Objects::show`]; `Damaged` if it is too long.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let mut read = Vec::new();
        let exists = self.show(name, &mut |bytes| {
            if read.len() + bytes.len() > READ_BYTES_MAX {
                return Err(self.damaged(name, READ_BYTES_MAX as u64, "is too long"));
            }
            read.extend_from_slice(bytes);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(exists.then_some(read))
    }

    /// The error of a damaged object.
    pub fn damaged(&self, name: &str, offset_bytes: u64, found: &str) -> ToolError {
        ToolError::Damaged { path: self.shown(name), offset_bytes, found: found.to_owned() }
    }
}
