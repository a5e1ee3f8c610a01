//! The image that a store has, and reads of its files. `source.rs` makes it.

use super::list::{IMAGE_RANGE_BYTES, ImageList};
use crate::{Lsn, Result, StorageError, files};
use bunko_host::Clock;
use parking_lot::Mutex;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// An image ends when its reader has been silent for this time.
pub const IDLE_MAX: Duration = Duration::from_mins(2);
/// The directory of images below the data directory.
pub(super) const DIRECTORY: &str = "image";

/// Maximum number of former images whose pins are kept.
const LEFT_MAX: usize = 8;

/// The image of a store, if there is one, and former images whose readers may not have asked for the log yet.
#[derive(Default)]
pub(crate) struct Images {
    pub(super) current: Mutex<Option<Arc<Image>>>,
    /// A token of which each thread that makes an image has a clone.
    pub(super) makers: Arc<()>,
    /// Images that are over, whose readers may not have asked for the log yet.
    left: Mutex<Vec<Arc<Image>>>,
}

/// How far an image is.
#[derive(Clone, Debug)]
pub enum ImageState {
    /// The image's checkpoint or files are being made.
    Preparing,
    /// The image can be read.
    Ready(Arc<ImageList>),
    /// The image cannot be made, for this reason.
    Failed(String),
}

/// An image of a store.
pub struct Image {
    pub(super) id: String,
    /// The reader for whom it was made.
    pub(super) owner: String,
    pub(super) directory: PathBuf,
    pub(super) clock: Clock,
    pub(super) state: Mutex<ImageState>,
    pub(super) used: Mutex<Instant>,
    pub(super) is_over: AtomicBool,
    /// The log is kept from this position on.
    pub(super) pinned: AtomicU64,
}

impl Images {
    /// Position from which the log is kept for the readers of the present and the former images: a reader asks for the
    /// log only once it has its image.
    pub fn pinned(&self) -> Lsn {
        let pin = |image: &Arc<Image>| image.pinned.load(Ordering::Acquire);
        let newest = self.current.lock().as_ref().map_or(u64::MAX, pin);
        Lsn(self.left.lock().iter().map(pin).fold(newest, u64::min))
    }

    /// Keeps the log for the reader of an image that is over, because another reader's image has replaced it.
    pub(super) fn leave(&self, image: &Arc<Image>) {
        let mut left = self.left.lock();
        if left.len() == LEFT_MAX {
            left.remove(0);
        }
        left.push(Arc::clone(image));
    }

    pub(super) fn end_if(&self, is_due: impl Fn(&Image) -> bool) {
        self.left.lock().retain(|image| !is_due(image));
        let ended = self.current.lock().take_if(|image| is_due(image));
        if let Some(image) = ended {
            image.end();
        }
    }

    /// Removes images that an earlier process left.
    ///
    /// # Errors
    /// Errors of the files.
    pub fn remove_left(directory: &Path) -> Result<()> {
        files::remove_directory(&directory.join(DIRECTORY))
    }
}

impl Image {
    /// Id that no other image of the store has.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How far the image is.
    pub fn state(&self) -> ImageState {
        self.state.lock().clone()
    }

    /// Reads from a file into `into`, which is cleared first: at most [`IMAGE_RANGE_BYTES`], and less at the file's end.
    /// Returns the checksum of the bytes.
    ///
    /// # Errors
    /// [`StorageError::ImageGone`] if the image is over, is not ready, or has no such file; errors of the file.
    pub fn read(&self, name: &str, offset: u64, into: &mut Vec<u8>) -> Result<u32> {
        self.touch();
        into.clear();
        let ImageState::Ready(list) = self.state() else { return Err(self.gone()) };
        let found = list.files.binary_search_by(|file| file.name.as_str().cmp(name)).map(|index| &list.files[index]);
        let file = found.map_err(|_| self.gone())?;
        let length = file.bytes.saturating_sub(offset).min(IMAGE_RANGE_BYTES);
        let path = self.directory.join(&file.name);
        // The files are removed as soon as the image is over.
        let Some(opened) = files::find(&path)? else { return Err(self.gone()) };
        into.resize(length as usize, 0);
        opened.read_exact_at(into, offset).map_err(|error| StorageError::io(&path, error))?;
        Ok(bunko_checksum::crc32c(into))
    }

    pub(super) fn touch(&self) {
        *self.used.lock() = self.clock.now();
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(super) fn gone(&self) -> StorageError {
        StorageError::ImageGone { id: self.id.clone() }
    }

    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        // The next start removes what is left.
        let _ = files::remove_directory(&self.directory);
    }

    /// Fails once the image is over.
    pub(super) fn check(&self) -> Result<()> {
        // A copy of a large file may take longer than [`IDLE_MAX`], and its reader is silent meanwhile.
        self.touch();
        if self.is_over() { Err(self.gone()) } else { Ok(()) }
    }
}
