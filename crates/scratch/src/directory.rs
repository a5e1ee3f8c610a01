//! A directory of scratch files.

use bunko_operation::{ScratchFile, ScratchSpace};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Disk space left free for the data, in bytes.
/// Source: MongoDB 8.2, parameter `internalQuerySpillingMinAvailableDiskSpaceBytes`.
const LEFT_BYTES_MIN: u64 = 500 * 1024 * 1024;
/// Bytes written between two checks of the free space.
const ASK_BYTES: u64 = 16 * 1024 * 1024;

/// Creates files and removes their names at once, so that the system frees them when they are closed or the process
/// ends in any way.
#[derive(Debug)]
pub struct ScratchDirectory {
    path: PathBuf,
    left_bytes_min: u64,
    next: AtomicU64,
}

impl ScratchDirectory {
    /// Opens an empty directory. It removes files left by a machine that stopped before a file's name was removed.
    /// # Errors
    /// Errors of the system.
    pub fn open(path: &Path) -> io::Result<Self> {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::create_dir(path)?;
        Ok(Self { path: path.to_owned(), left_bytes_min: LEFT_BYTES_MIN, next: AtomicU64::new(0) })
    }

    /// Sets the disk space to leave free, in bytes.
    #[must_use]
    pub fn leaving(self, left_bytes_min: u64) -> Self {
        Self { left_bytes_min, ..self }
    }
}

impl ScratchSpace for ScratchDirectory {
    fn create(&self) -> io::Result<Box<dyn ScratchFile>> {
        let path = self.path.join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        fs::remove_file(&path)?;
        let file = Unnamed { file, left_bytes_min: self.left_bytes_min, written_since_asked: 0 };
        file.check_room()?;
        Ok(Box::new(file))
    }
}

struct Unnamed {
    file: File,
    left_bytes_min: u64,
    written_since_asked: u64,
}

impl Unnamed {
    fn check_room(&self) -> io::Result<()> {
        let disk = rustix::fs::fstatvfs(&self.file)?;
        let left = disk.f_bavail.saturating_mul(disk.f_frsize);
        if left < self.left_bytes_min {
            let message = format!("{left} bytes of the disk are free, and {} are to stay so", self.left_bytes_min);
            return Err(io::Error::new(io::ErrorKind::StorageFull, message));
        }
        Ok(())
    }
}

impl ScratchFile for Unnamed {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written_since_asked += bytes.len() as u64;
        if self.written_since_asked >= ASK_BYTES {
            self.check_room()?;
            self.written_since_asked = 0;
        }
        self.file.write_all(bytes)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_no_name_and_what_was_left_goes_at_the_start() {
        let data = tempfile::tempdir().expect("a directory");
        let path = data.path().join("scratch");
        fs::create_dir(&path).expect("a directory");
        fs::write(path.join("7"), "left behind").expect("a file");
        let space = ScratchDirectory::open(&path).expect("an empty directory").leaving(0);
        let mut file = space.create().expect("a file");
        file.append(b"some bytes").expect("room");
        let mut read = [0; 5];
        file.read_at(5, &mut read).expect("bytes");
        assert_eq!((&read, fs::read_dir(&path).expect("a directory").count()), (b"bytes", 0));
        assert!(file.read_at(6, &mut read).is_err(), "behind the end");
    }

    #[test]
    fn a_disk_without_room_is_left_alone() {
        let data = tempfile::tempdir().expect("a directory");
        let space = ScratchDirectory::open(&data.path().join("scratch")).expect("a directory").leaving(u64::MAX);
        assert_eq!(space.create().err().map(|error| error.kind()), Some(io::ErrorKind::StorageFull));
    }
}
