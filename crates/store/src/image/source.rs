//! Makes an image of an open data directory, while writers run, and lends ranges of its files.
//!
//! ```text
//!   Preparing ──► Ready ──► over: given up, left alone for too long, replaced, or the disk has become scarce
//!       └───────► Failed ─────▲
//! ```
//! While no checkpoint, merge or reclaim runs, the files of the engines and the full segments do not change, and each gets
//! a second name below `image`. From then on the store may remove its own names: the image keeps the contents. An engine
//! that changes a file in place copies it ([`crate::Engine::add_to_image`]). The last segment is shared with the log, which
//! goes on after the image's end.
//!
//! An image takes disk once the store gives up files that the image still has: up to as much as the data take when it
//! is made, and once more for a file that is copied. The log after the image's end is kept as long as the image. So
//! there is one image at a time, and it ends when its reader has been silent for [`IDLE_MAX`], or when the disk has
//! become scarce.
//!
//! **Invariant:** a file of the log that has a second name is never recycled ([`crate::files::is_shared`]).

use super::images::{DIRECTORY, IDLE_MAX, Image, ImageState};
use super::list::{FILES_MAX, ImageFile, ImageList, MANIFEST};
use crate::journal::Journal;
use crate::log::{Log, first_record};
use crate::manifest::Manifest;
use crate::{Lsn, Position, Result, SEGMENT_BYTES, StorageError, Store, files, make_directory, segment_of};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// An image ends when less than this is free on the disk.
const FREE_BYTES_MIN: u64 = 4 * SEGMENT_BYTES;
const NO_PIN: u64 = u64::MAX;
/// Maximum number of threads that make images, of which all but one make images that are over.
const MAKERS_MAX: usize = 4;

impl Store {
    /// Begins an image for a reader, or returns the image that this reader has begun, whose id is `known`. A thread of
    /// its own makes the image; [`Image::state`] tells how far it is.
    ///
    /// # Errors
    /// [`StorageError::VolatileEngine`]; [`StorageError::ImageInUse`] if there is another reader's image, or if too many that
    /// are over are still being made.
    pub fn begin_image(self: &Arc<Self>, owner: &str, known: Option<&str>) -> Result<Arc<Image>> {
        let Some(directory) = self.path() else {
            return Err(StorageError::VolatileEngine { name: self.engine_name().to_owned() });
        };
        self.end_unused_image();
        let mut slot = self.images.current.lock();
        if let Some(image) = &*slot {
            if image.owner != owner && !image.is_over() {
                return Err(StorageError::ImageInUse { owner: image.owner.clone() });
            }
            if known == Some(&image.id) && !image.is_over() {
                image.touch();
                return Ok(Arc::clone(image));
            }
        }
        // A reader may begin again and again, while the threads of its former images still wait for a checkpoint.
        if Arc::strong_count(&self.images.makers) > MAKERS_MAX {
            return Err(StorageError::ImageInUse { owner: owner.to_owned() });
        }
        if let Some(image) = &*slot {
            image.end();
            if image.owner != owner {
                self.images.leave(image);
            }
        }
        let clock = self.options.clock.clone();
        let id = format!("{:x}-{:x}", clock.now_ms(), self.journal.end().0);
        let image = Arc::new(Image {
            directory: directory.join(DIRECTORY).join(&id),
            id,
            owner: owner.to_owned(),
            state: Mutex::new(ImageState::Preparing),
            used: Mutex::new(clock.now()),
            clock,
            is_over: AtomicBool::new(false),
            pinned: AtomicU64::new(NO_PIN),
        });
        let (store, made, token) = (Arc::downgrade(self), Arc::clone(&image), Arc::clone(&self.images.makers));
        let work = move || {
            if let Some(store) = store.upgrade() {
                made.make(&store);
            }
            drop(token);
        };
        let spawned = std::thread::Builder::new().name("image".into()).spawn(work);
        spawned.map_err(|error| StorageError::io(directory, error))?;
        *slot = Some(Arc::clone(&image));
        Ok(image)
    }

    /// The image with that id.
    ///
    /// # Errors
    /// [`StorageError::ImageGone`].
    pub fn image(&self, id: &str) -> Result<Arc<Image>> {
        self.end_unused_image();
        let image =
            self.images.current.lock().as_ref().filter(|image| image.id == id && !image.is_over()).map(Arc::clone);
        let image = image.ok_or_else(|| StorageError::ImageGone { id: id.to_owned() })?;
        image.touch();
        Ok(image)
    }

    /// Whether the disk has room for that many bytes beside the needs of the next checkpoint.
    pub fn has_disk_for(&self, bytes: u64) -> bool {
        self.disk.spares(bytes)
    }

    /// Removes the files of the image with that id, if it is there. The log is kept from the image's end on for
    /// [`IDLE_MAX`], or until the reader begins another image, because the reader goes on with the log there.
    pub fn release_image(&self, id: &str) {
        let released = self.images.current.lock().as_ref().filter(|image| image.id == id).map(Arc::clone);
        if let Some(image) = released {
            image.touch();
            image.end();
        }
    }

    /// Ends an image whose reader has been silent too long, or whose disk is needed.
    pub(crate) fn end_unused_image(&self) {
        let is_scarce = || self.disk.is_scarce(FREE_BYTES_MIN);
        self.images.end_if(|image| image.clock.since(*image.used.lock()) >= IDLE_MAX || is_scarce());
    }
}

impl Image {
    /// Makes the image and sets its state, also after an error or a panic; runs on the thread `image`.
    fn make(&self, store: &Store) {
        let made = crate::panics::caught(|| self.gather(store)).unwrap_or_else(Err);
        *self.state.lock() = match made {
            Ok(list) => ImageState::Ready(Arc::new(list)),
            Err(error) => ImageState::Failed(error.to_string()),
        };
        if self.is_over() {
            self.end();
        }
    }

    fn gather(&self, store: &Store) -> Result<ImageList> {
        let (Some(directory), Journal::Log(log)) = (store.path(), &store.journal) else { return Err(self.gone()) };
        store.checkpoint()?;
        self.check()?;
        make_directory(&self.directory)?;
        let mut copies = Vec::new();
        let end = {
            let _still = store.hold_background_work();
            files::hard_link(&Manifest::path(directory), &self.directory.join(MANIFEST))?;
            for engine in store.engines.all() {
                copies.extend(engine.add_to_image(&self.directory)?);
            }
            let manifest = Manifest::read(directory)?.ok_or_else(|| Manifest::corrupt(directory, "is missing"))?;
            let end = manifest.watermark.max(store.engines.files_end()).max(Lsn(first_record(0)));
            self.pinned.store(end.0, Ordering::Release);
            self.link_log(log, end)?;
            end
        };
        for copy in copies {
            copy(&|| self.check())?;
        }
        let files = self.list(end)?;
        let position = Position { term: store.term_before(end).unwrap_or(0), end: end.0 };
        Ok(ImageList { id: self.id.clone(), end: position, files })
    }

    /// Gives a second name to the segments that begin below `end`.
    fn link_log(&self, log: &Log, end: Lsn) -> Result<()> {
        let directory = self.directory.join("log");
        make_directory(&directory)?;
        for number in log.segment_numbers().into_iter().filter(|number| *number <= segment_of(end.0)) {
            let path = log.segment_path(number)?;
            files::hard_link(&path, &directory.join(path.file_name().unwrap_or_default()))?;
        }
        Ok(())
    }

    /// All files of the image, in the order of their names. The last segment counts up to `end`.
    fn list(&self, end: Lsn) -> Result<Vec<ImageFile>> {
        let mut found = Vec::new();
        let mut directories = vec![self.directory.clone()];
        while let Some(directory) = directories.pop() {
            for path in files::entries(&directory)? {
                if path.is_dir() {
                    directories.push(path);
                    continue;
                }
                let length = path.metadata().map_err(|error| StorageError::io(&path, error))?.len();
                let name = path.strip_prefix(&self.directory).unwrap_or(&path).to_string_lossy().into_owned();
                let is_last = path == self.directory.join("log").join(Log::segment_name(segment_of(end.0)));
                found.push(ImageFile { name, bytes: if is_last { end.0 % SEGMENT_BYTES } else { length } });
            }
        }
        if found.len() > FILES_MAX {
            let found = format!("an image of {} files is not supported yet; {FILES_MAX} is the most", found.len());
            return Err(StorageError::io(&self.directory, std::io::Error::other(found)));
        }
        found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::fake::fake;
    use crate::{Batch, EngineTable, KeyspaceId, RecordId, StoreOptions, Survival};
    use bunko_testkit::patience::wait_for;

    fn write(store: &Store, segments: u64) {
        for record in 0..segments {
            let mut batch = Batch::new();
            batch.insert_record(KeyspaceId(1), RecordId(record), vec![7; SEGMENT_BYTES as usize * 2 / 3]);
            store.commit(&batch).expect("committed");
        }
    }

    #[test]
    fn an_image_keeps_the_log_behind_its_end_also_once_it_was_read() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let table = EngineTable::only(fake("own", Survival::Durable).0);
        let store = Store::open(directory.path(), StoreOptions::at_rest(), table).expect("opens");
        let Journal::Log(log) = &store.journal else { panic!("a durable engine has a log") };
        write(&store, 3);
        let image = store.begin_image("a test", None).expect("begun");
        let list = wait_for(|| match image.state() {
            ImageState::Ready(list) => Ok(list),
            other => Err(format!("{other:?}")),
        });
        let first = segment_of(list.end.end);
        write(&store, 3);
        store.checkpoint().expect("checkpoint");
        assert_eq!(log.segment_numbers().first(), Some(&first));
        store.release_image(&list.id);
        store.checkpoint().expect("checkpoint");
        assert_eq!(log.segment_numbers().first(), Some(&first));
        assert_eq!(store.places().start.0, first_record(first));
        store.images.end_if(|_| true);
        store.checkpoint().expect("checkpoint");
        assert!(log.segment_numbers().first() > Some(&first));
    }
}
