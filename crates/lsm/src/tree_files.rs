//! The files of the trees. Checks the files that lsm-tree reads without a check, and finds the damaged file where
//! lsm-tree's error does not name it.
//!
//! ```text
//! current    number of the version, u64; XXH3 of its file, u128; kind of the checksum, u8, always 0
//! v<number>  an archive (see the crate sfa); its section `tables` lists levels of runs of tables:
//!            levels, u8; of each: runs, u8; of each: tables, u32; of each: number, u64; kind of the checksum, u8;
//!            XXH3 of its file, u128; offset of its sequence numbers, u64
//! tables/    a file of blocks for each table, with a checksum for each block
//! ```

use bunko_store::{Result, StorageError, files, make_directory};
use rustc_hash::FxHashSet;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use xxhash_rust::xxh3::Xxh3Default;

const CURRENT_BYTES: usize = 25;
const XXH3: u8 = 0;
/// Bytes of a file that are read at a time.
const READ_BYTES: usize = 1 << 20;

/// The directory of the trees.
pub(crate) struct TreeFiles {
    pub path: PathBuf,
    /// The first damaged file that was found; finding it takes a read of all files.
    damaged: OnceLock<PathBuf>,
}

impl TreeFiles {
    pub fn new(path: PathBuf) -> Self {
        Self { path, damaged: OnceLock::new() }
    }

    /// The file that leads to all others.
    pub fn current(&self) -> PathBuf {
        self.path.join("current")
    }

    /// Makes the directories of new trees durable. lsm-tree syncs the files in them but not the directories' own names.
    /// If a power cut lost the name of the trees' directory, a manifest that names the trees would refuse every start.
    ///
    /// The directory [`Self::aside`] is made here and stays, although it is mostly empty: a start on a full disk could
    /// not make it.
    pub fn make_durable_directory(&self) -> Result<()> {
        if self.current().exists() {
            return Ok(());
        }
        make_directory(&self.aside())?;
        // A process that was killed here earlier may have made the directory without syncing its name.
        let data_directory = self.path.parent().unwrap_or(&self.path);
        files::sync_directory(data_directory)
    }

    /// Compares the present version's file with its checksum, which lsm-tree writes but never reads. Without the check,
    /// a missing or additional table would go unnoticed.
    pub fn check_version(&self) -> Result<()> {
        let path = self.current();
        let Some(current) = files::read(&path)? else { return Ok(()) };
        let (number, checksum) = parse_current(&current).ok_or_else(|| corrupt(&path, "names no version"))?;
        let version = self.version(number);
        match file_checksum(&version)? {
            Some(found) if found == checksum => Ok(()),
            Some(_) => Err(corrupt(&version, format!("not the version of which {} has the checksum", path.display()))),
            None => Err(corrupt(&path, format!("names version {number}, which is missing"))),
        }
    }

    /// The directory of the tables.
    pub fn tables(&self) -> PathBuf {
        self.path.join("tables")
    }

    /// A table's file.
    pub fn table(&self, number: u64) -> PathBuf {
        self.tables().join(number.to_string())
    }

    /// Directory for files that no version names; lsm-tree does not look into it.
    pub fn aside(&self) -> PathBuf {
        self.path.join("unnamed")
    }

    /// Numbers of the tables that the version on disk names; `None` if it cannot be read.
    pub fn named(&self) -> Option<FxHashSet<u64>> {
        let (number, checksum) = parse_current(&files::read(&self.current()).ok()??)?;
        let version = self.version(number);
        let is_whole = file_checksum(&version).is_ok_and(|found| found == Some(checksum));
        is_whole.then(|| tables(&version))?.map(|tables| tables.into_iter().map(|(number, _)| number).collect())
    }

    /// Files that the version on disk does not name; empty if there is no version.
    pub fn unnamed(&self) -> Result<Vec<PathBuf>> {
        let Some(named) = self.named() else { return Ok(Vec::new()) };
        let current = files::read(&self.current())?.unwrap_or_default();
        let version = parse_current(&current).map(|(number, _)| self.version(number));
        let mut unnamed = files::entries(&self.path)?;
        unnamed.retain(|path| path.is_file() && *path != self.current() && Some(path) != version.as_ref());
        // A file whose name is not a number is not a table: lsm-tree refuses it.
        let is_unnamed = |path: &PathBuf| table_number(path).is_some_and(|number| !named.contains(&number));
        unnamed.extend(files::entries(&self.tables())?.into_iter().filter(is_unnamed));
        Ok(unnamed)
    }

    fn version(&self, number: u64) -> PathBuf {
        self.path.join(format!("v{number}"))
    }

    /// Converts an error of the tree.
    pub fn error(&self, error: lsm_tree::Error) -> StorageError {
        match error {
            // A file that ends too early is damaged; other I/O errors are failures of the system, such as a full disk.
            lsm_tree::Error::Io(source) if source.kind() != ErrorKind::UnexpectedEof => {
                StorageError::io(&self.path, source)
            }
            other => {
                let file = self.damaged.get().cloned().or_else(|| self.find_damaged());
                corrupt(&file.unwrap_or_else(|| self.path.clone()), other.to_string())
            }
        }
    }

    /// The first table whose checksum differs from the one in the present version; `None` if all agree or the version
    /// cannot be read.
    fn find_damaged(&self) -> Option<PathBuf> {
        let (number, _) = parse_current(&files::read(&self.current()).ok()??)?;
        let mut tables = tables(&self.version(number))?.into_iter();
        let damaged = tables.find_map(|(number, checksum)| {
            let path = self.table(number);
            let is_whole = file_checksum(&path).is_ok_and(|found| found == Some(checksum));
            (!is_whole).then_some(path)
        })?;
        Some(self.damaged.get_or_init(|| damaged).clone())
    }
}

fn corrupt(file: &Path, found: impl Into<String>) -> StorageError {
    StorageError::Corrupt { file: file.to_owned(), offset_bytes: 0, found: found.into() }
}

/// The number of the present version, and the checksum of its file; `None` if the bytes are malformed.
fn parse_current(current: &[u8]) -> Option<(u64, u128)> {
    let current: &[u8; CURRENT_BYTES] = current.try_into().ok()?;
    let (number, rest) = current.split_first_chunk::<8>()?;
    let (checksum, kind) = rest.split_first_chunk::<16>()?;
    (kind == [XXH3]).then_some((u64::from_le_bytes(*number), u128::from_le_bytes(*checksum)))
}

/// The number of a table, by the name of its file; `None` if the name is no number.
pub(crate) fn table_number(file: &Path) -> Option<u64> {
    file.file_name()?.to_str()?.parse().ok()
}

/// The checksum of a file; `None` if it is missing.
fn file_checksum(path: &Path) -> Result<Option<u128>> {
    let Some(mut file) = files::find(path)? else { return Ok(None) };
    let mut hasher = Xxh3Default::new();
    let mut bytes = vec![0; READ_BYTES];
    loop {
        match file.read(&mut bytes).map_err(|error| StorageError::io(path, error))? {
            0 => return Ok(Some(hasher.digest128())),
            length => hasher.update(&bytes[..length]),
        }
    }
}

/// Numbers of a version's tables, and the checksums of their files; `None` if the version is malformed.
fn tables(version: &Path) -> Option<Vec<(u64, u128)>> {
    let archive = sfa::Reader::new(version).ok()?;
    let mut list = archive.toc().section(b"tables")?.buf_reader(version).ok()?;
    let mut tables = Vec::new();
    for _level in 0..u8::from_le_bytes(take(&mut list)?) {
        for _run in 0..u8::from_le_bytes(take(&mut list)?) {
            for _table in 0..u32::from_le_bytes(take(&mut list)?) {
                let number = u64::from_le_bytes(take(&mut list)?);
                let _kind: [u8; 1] = take(&mut list)?;
                tables.push((number, u128::from_le_bytes(take(&mut list)?)));
                let _added: [u8; 8] = take(&mut list)?;
            }
        }
    }
    Some(tables)
}

fn take<const LENGTH: usize>(input: &mut impl Read) -> Option<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    input.read_exact(&mut bytes).ok()?;
    Some(bytes)
}
