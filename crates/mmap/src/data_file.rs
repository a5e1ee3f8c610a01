//! Opens and maps the data file, and refuses files that are not ours.

use crate::bus_error::{self, Registration};
use crate::corruption::corrupt;
use crate::meta;
use crate::stored::PREFIX_BYTES;
use bunko_store::{Clock, Lsn, Opening, Result, StorageError, files, make_directory};
use heed::types::Bytes;
use heed::{Database, Env, EnvOpenOptions, MdbError, RwTxn, WithoutTls};
use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of keyspaces that a process may write to: LMDB's table of handles has a fixed size, and opening a
/// handle searches it. Handles are opened only for writing. Measured in a debug build on a busy machine: the checkpoint
/// that made 10,000 keyspaces took 1.8 s, and a checkpoint that wrote to one of them 24 to 58 ms.
pub const KEYSPACES_MAX: u32 = 1 << 17;

/// Maximum number of committed states, one for each checkpoint, that open views can pin at a time: the size of LMDB's
/// table of readers.
const READERS_MAX: u32 = 8192;
/// A disk with fewer free bytes counts as full, because LMDB writes no more than this at a time.
const FULL_BYTES: u64 = 1 << 20;
/// Minimum size of a map; the engine does not start with less.
const MAP_BYTES_MIN: u64 = 64 << 20;

const DIRECTORY: &str = "mmap";
const NEW_DIRECTORY: &str = "mmap.new";
const FILE_NAME: &str = "data.mdb";

/// Name of the watermark's entry beside the trees in LMDB's main database.
pub(crate) const STATE_NAME: &[u8] = b"state";

/// LMDB's main database, or a keyspace's database.
pub(crate) type Entries = Database<Bytes, Bytes>;

/// An open data file.
pub(crate) struct DataFile {
    pub env: Env<WithoutTls>,
    pub path: PathBuf,
    pub file: File,
    pub page_bytes: usize,
    pub map_bytes: u64,
    /// The store's clock, which limits and measures work on the file.
    pub clock: Clock,
    /// Declared before the map, so that the handler forgets the map before it is removed.
    bus_errors: Mutex<Vec<Registration>>,
    map: Map,
}

/// The file in the address space. LMDB has its own map and does not tell where; both show the same pages.
struct Map {
    start: *mut c_void,
    length_bytes: usize,
}

// SAFETY: the map stays valid until it is dropped, whichever thread uses it.
unsafe impl Send for Map {}
// SAFETY: as above; all accesses are reads.
unsafe impl Sync for Map {}

impl Map {
    fn new(file: &File, length_bytes: usize) -> io::Result<Self> {
        let (access, flags) = (ProtFlags::READ, MapFlags::SHARED);
        // SAFETY: a new map at an address that the kernel chooses.
        let start = unsafe { mmap(std::ptr::null_mut(), length_bytes, access, flags, file, 0)? };
        Ok(Self { start, length_bytes })
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: everything lent from the map is bound to the life of the data file, which is being dropped.
        let _ = unsafe { munmap(self.start, self.length_bytes) };
    }
}

impl DataFile {
    /// Opens the data file. Makes an empty one if there is none and there is no note.
    pub fn open(opening: &Opening<'_>, map_bytes: u64) -> Result<Self> {
        let (data_directory, note) = (opening.directory, opening.note);
        let directory = data_directory.join(DIRECTORY);
        let path = directory.join(FILE_NAME);
        if !path.exists() {
            if note.is_some() {
                return Err(corrupt(&path, 0, "is missing, though the manifest names it"));
            }
            create(data_directory)?;
        }
        meta::check(&path, note)?;
        let (env, file, map) = open_environment(&directory, &path, map_bytes)?;
        let map_bytes = map.length_bytes as u64;
        let registration = bus_error::register(map.start as usize, map.length_bytes, &path)
            .map_err(|source| StorageError::io(&path, source))?;
        let page_bytes = env.stat().page_size as usize;
        let (clock, bus_errors) = (opening.clock.clone(), Mutex::new(vec![registration]));
        Ok(Self { env, path, file, page_bytes, map_bytes, clock, bus_errors, map })
    }

    /// The data file of a data directory.
    pub fn path_in(data_directory: &Path) -> PathBuf {
        data_directory.join(DIRECTORY).join(FILE_NAME)
    }

    /// Makes a SIGBUS in LMDB's own map end the process with a message too. LMDB does not tell where its map is, but
    /// lends the watermark's entry from it. That entry is in page `page`, known to be intact, so its address tells
    /// where the map begins.
    pub fn register_lmdb_map(&self, page: u64) -> Result<()> {
        let reading = self.env.read_txn().map_err(|error| self.error(error))?;
        let main: Option<Entries> = self.env.open_database(&reading, None).map_err(|error| self.error(error))?;
        let state = main.map(|main| main.get(&reading, STATE_NAME)).transpose().map_err(|error| self.error(error))?;
        let Some(state) = state.flatten() else { return Ok(()) };
        let start = state.as_ptr() as usize / self.page_bytes - page as usize;
        let registration = bus_error::register(start * self.page_bytes, self.map.length_bytes, &self.path);
        self.bus_errors.lock().push(registration.map_err(|source| StorageError::io(&self.path, source))?);
        Ok(())
    }

    /// The bytes of a part of the file; `None` if it is not within the first `end_bytes`, which must not exceed the
    /// file's length.
    pub fn bytes(&self, offset_bytes: u64, length_bytes: usize, end_bytes: u64) -> Option<&[u8]> {
        let end = offset_bytes.checked_add(length_bytes as u64)?;
        if end > end_bytes.min(self.map_bytes) {
            return None;
        }
        // SAFETY: the range lies within the map, which lives as long as `self`, and within the file; if the file is cut
        // short, the handler for SIGBUS ends the process. Callers read pages of a committed state, which LMDB does not
        // write to while a read transaction pins that state. (A damaged page may lead to any other page, which LMDB may
        // be writing at that moment: the checksums reveal that.)
        Some(unsafe {
            std::slice::from_raw_parts(self.map.start.cast::<u8>().add(offset_bytes as usize), length_bytes)
        })
    }

    /// Length of the file in bytes.
    pub fn length_bytes(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|source| StorageError::io(&self.path, source))?.len())
    }

    /// The error for damage at an offset in the file.
    pub fn corrupt(&self, offset_bytes: u64, found: impl Into<String>) -> StorageError {
        corrupt(&self.path, offset_bytes, found)
    }

    /// Converts an error of LMDB.
    pub fn error(&self, error: heed::Error) -> StorageError {
        match &error {
            // If the disk becomes full in the middle of a write, LMDB reports an I/O error.
            heed::Error::Io(found) if found.raw_os_error() == Some(Errno::IO.raw_os_error()) && self.is_full() => {
                StorageError::OutOfDiskSpace { path: self.path.clone() }
            }
            _ => lmdb_error(&self.path, error),
        }
    }

    fn is_full(&self) -> bool {
        self.free_bytes().is_ok_and(|free| free < FULL_BYTES)
    }

    /// Free bytes on the disk.
    pub fn free_bytes(&self) -> Result<u64> {
        let found = rustix::fs::fstatvfs(&self.file);
        let found = found.map_err(|error| StorageError::io(&self.path, error.into()))?;
        Ok(found.f_bavail * found.f_frsize)
    }
}

/// Makes an empty data file under another name first, so that a file with the final name is always complete.
fn create(data_directory: &Path) -> Result<()> {
    let directory = data_directory.join(NEW_DIRECTORY);
    create_as(data_directory, &directory).inspect_err(|_| {
        // The engine may never be asked for again, so an unfinished file must not be left behind.
        let _ = files::remove_directory(&directory);
    })
}

fn create_as(data_directory: &Path, directory: &Path) -> Result<()> {
    files::remove_directory(directory)?;
    make_directory(directory)?;
    let path = directory.join(FILE_NAME);
    let (env, _, _) = open_environment(directory, &path, MAP_BYTES_MIN)?;
    let written = env.write_txn().and_then(|mut writing| {
        let main = env.create_database(&mut writing, None)?;
        put_state(main, &mut writing, Lsn(0))?;
        writing.commit()
    });
    written.and_then(|()| env.force_sync()).map_err(|error| lmdb_error(&path, error))?;
    env.prepare_for_closing().wait();
    files::sync_directory(directory)?;
    files::rename(directory, &data_directory.join(DIRECTORY))?;
    files::sync_directory(data_directory)
}

/// Opens LMDB's environment and maps its file; tries smaller maps if the system refuses large ones.
fn open_environment(directory: &Path, path: &Path, map_bytes: u64) -> Result<(Env<WithoutTls>, File, Map)> {
    let mut map_bytes = map_bytes.max(MAP_BYTES_MIN);
    let open = |map_bytes| {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(map_bytes as usize).max_dbs(KEYSPACES_MAX).max_readers(READERS_MAX);
        // SAFETY: no other process changes the file while it is mapped, because the store holds the data directory's
        // lock.
        let env = unsafe { options.open(directory) }?;
        debug_assert_eq!(env.max_key_size(), PREFIX_BYTES);
        let file = env.try_clone_inner_file()?;
        let map = Map::new(&file, env.info().map_size)?;
        Ok((env, file, map))
    };
    loop {
        match open(map_bytes) {
            Err(heed::Error::Io(error)) if error.kind() == io::ErrorKind::OutOfMemory && map_bytes > MAP_BYTES_MIN => {
                map_bytes = (map_bytes / 2).max(MAP_BYTES_MIN);
            }
            outcome => return outcome.map_err(|error| lmdb_error(path, error)),
        }
    }
}

/// Stores the watermark, up to which the log has been applied.
pub(crate) fn put_state(main: Entries, writing: &mut RwTxn<'_>, watermark: Lsn) -> heed::Result<()> {
    let watermark = watermark.0.to_le_bytes();
    let checksum = bunko_checksum::crc32c(&watermark).to_le_bytes();
    main.put(writing, STATE_NAME, &[&watermark[..], &checksum].concat())
}

/// Reads the watermark stored by [`put_state`]; `None` if the entry is damaged.
pub(crate) fn parse_state(value: &[u8]) -> Option<Lsn> {
    let (watermark, checksum) = value.split_first_chunk::<8>()?;
    let is_intact = bunko_checksum::crc32c(watermark).to_le_bytes() == checksum;
    is_intact.then_some(Lsn(u64::from_le_bytes(*watermark)))
}

fn lmdb_error(path: &Path, error: heed::Error) -> StorageError {
    match error {
        heed::Error::Io(source) => StorageError::io(path, source),
        heed::Error::Mdb(
            found @ (MdbError::Corrupted
            | MdbError::PageNotFound
            | MdbError::Invalid
            | MdbError::VersionMismatch
            | MdbError::Incompatible
            | MdbError::BadTxn
            | MdbError::CursorFull
            | MdbError::PageFull
            | MdbError::Problem),
        ) => corrupt(path, 0, found.to_string()),
        other => StorageError::Io { path: path.to_owned(), source: io::Error::other(other.to_string()) },
    }
}
