//! Copies the data file into an image, while writers run.
//!
//! A committed state pins its pages: LMDB writes over none of them while the state is held. The two meta pages are read
//! while no thread writes, and the pages after them later. Free pages may have changed by then, which does no harm.

use crate::committed::Committed;
use crate::data_file::DataFile;
use bunko_store::{CopyIntoImage, Result, StorageError, files, make_directory};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const STEP_BYTES: usize = 1 << 20;
/// Number of bytes of the disk that the copy leaves free.
const SPARE_BYTES: u64 = 1 << 30;

/// A copy whose meta pages are written.
pub(crate) struct Copy {
    committed: Arc<Committed>,
    file: File,
    path: PathBuf,
}

impl Copy {
    /// Begins the copy of a committed state, the last one. No thread may be writing.
    pub fn begin(committed: Arc<Committed>, image: &Path) -> Result<Self> {
        let source = &committed.file;
        let length = source.length_bytes()?;
        if source.free_bytes()? < used_bytes(&committed) + SPARE_BYTES {
            return Err(StorageError::OutOfDiskSpace { path: image.to_owned() });
        }
        let path = DataFile::path_in(image);
        make_directory(path.parent().unwrap_or(image))?;
        let file = files::create(&path)?;
        let mut meta = vec![0; 2 * source.page_bytes];
        let read = source.file.read_exact_at(&mut meta, 0);
        read.map_err(|error| StorageError::io(&source.path, error))?;
        let written = file.set_len(length).and_then(|()| file.write_all_at(&meta, 0));
        written.map_err(|error| StorageError::io(&path, error))?;
        Ok(Self { committed, file, path })
    }

    /// The pages after the meta pages.
    pub fn rest(self) -> CopyIntoImage {
        Box::new(move |check| self.copy_pages(check))
    }

    fn copy_pages(&self, check: &dyn Fn() -> Result<()>) -> Result<()> {
        let source = &self.committed.file;
        let end = used_bytes(&self.committed).min(source.length_bytes()?);
        let mut bytes = vec![0; STEP_BYTES];
        let mut at = 2 * source.page_bytes as u64;
        while at < end {
            check()?;
            let step = &mut bytes[..(end - at).min(STEP_BYTES as u64) as usize];
            source.file.read_exact_at(step, at).map_err(|error| StorageError::io(&source.path, error))?;
            // A step of zeros is not written, so holes stay holes.
            if step.iter().any(|byte| *byte != 0) {
                self.file.write_all_at(step, at).map_err(|error| StorageError::io(&self.path, error))?;
            }
            at += step.len() as u64;
        }
        Ok(())
    }
}

/// Bytes of the pages that the state may have.
fn used_bytes(committed: &Committed) -> u64 {
    committed.meta.pages.saturating_mul(committed.file.page_bytes as u64)
}
