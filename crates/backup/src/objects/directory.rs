//! Objects that are the files of a directory.

use super::{Objects, Take, Upload};
use crate::{Result, of_storage};
use bunko_store::files;
use bunko_tools::ToolError;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const LOCK: &str = "lock";
/// Ending of a file that is being written, and gets its name once it is whole and durable.
const UNFINISHED: &str = "tmp";
/// Number of bytes that are read at a time.
const PIECE_BYTES: usize = 4 << 20;

/// A directory with objects.
pub(crate) struct Directory {
    root: PathBuf,
    /// Held by the one process that writes.
    lock: Option<File>,
}

impl Directory {
    /// The directory at `root`, which need not exist.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), lock: None }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

fn is_unfinished(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == UNFINISHED)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl Objects for Directory {
    fn shown(&self, name: &str) -> PathBuf {
        self.at(name)
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        Some(self.at(name))
    }

    fn lock(&mut self) -> Result<()> {
        files::make_directory(&self.root).map_err(of_storage)?;
        let path = self.at(LOCK);
        let lock = files::open_or_create(&path).map_err(of_storage)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let root = self.root.display();
                return Err(ToolError::Failed(format!("{root}: another process writes backups there")));
            }
            Err(TryLockError::Error(cause)) => return Err(ToolError::File { path, cause }),
        }
        self.lock = Some(lock);
        Ok(())
    }

    fn stranger(&self) -> Result<Option<String>> {
        for path in files::entries(&self.root).map_err(of_storage)? {
            let name = name_of(&path);
            if name != LOCK && !is_unfinished(&path) {
                return Ok(Some(name));
            }
        }
        if self.root.parent().is_some_and(|parent| !parent.as_os_str().is_empty() && !parent.exists()) {
            let root = self.root.display();
            return Err(ToolError::Usage(format!("{root}: the directory above it is missing")));
        }
        Ok(None)
    }

    fn list(&self, below: &str) -> Result<BTreeMap<String, u64>> {
        let (mut listed, mut directories) = (BTreeMap::new(), vec![below.to_owned()]);
        while let Some(directory) = directories.pop() {
            for path in files::entries(&self.at(&directory)).map_err(of_storage)? {
                let name = format!("{directory}{}", name_of(&path));
                // Symbolic links are not followed, so nothing elsewhere is changed or removed.
                let Ok(metadata) = path.symlink_metadata() else { continue };
                if metadata.is_dir() {
                    directories.push(format!("{name}/"));
                } else if metadata.is_file() && !is_unfinished(&path) {
                    listed.insert(name, metadata.len());
                }
            }
        }
        Ok(listed)
    }

    fn children(&self, below: &str) -> Result<BTreeSet<String>> {
        let entries = files::entries(&self.at(below)).map_err(of_storage)?;
        Ok(entries.iter().filter(|path| !is_unfinished(path)).map(|path| name_of(path)).collect())
    }

    fn show(&self, name: &str, take: Take<'_>) -> Result<bool> {
        let path = self.at(name);
        let Some(mut file) = files::find(&path).map_err(of_storage)? else { return Ok(false) };
        let failed = |cause: io::Error| ToolError::File { path: path.clone(), cause };
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let read = Read::by_ref(&mut file).take(PIECE_BYTES as u64).read_to_end(&mut bytes).map_err(failed)?;
            if read == 0 || take(&bytes)?.is_break() {
                return Ok(true);
            }
        }
    }

    fn put(&self, name: &str, contents: &[u8]) -> Result<()> {
        let path = self.at(name);
        let directory = path.parent().unwrap_or(&self.root);
        files::make_directory(directory).map_err(of_storage)?;
        let temporary = path.with_extension(UNFINISHED);
        let mut file = files::create(&temporary).map_err(of_storage)?;
        let written = file.write_all(contents).and_then(|()| file.sync_all());
        written.map_err(|cause| ToolError::File { path: temporary.clone(), cause })?;
        files::rename(&temporary, &path).map_err(of_storage)?;
        files::sync_directory(directory).map_err(of_storage)
    }

    fn create<'o>(&'o self, name: &str, bytes: u64) -> Result<Box<dyn Upload + 'o>> {
        let path = self.at(name);
        files::make_directory(path.parent().unwrap_or(&self.root)).map_err(of_storage)?;
        let temporary = path.with_file_name("unfinished.tmp");
        let file = files::create(&temporary).map_err(of_storage)?;
        file.set_len(bytes).map_err(|cause| ToolError::File { path: path.clone(), cause })?;
        Ok(Box::new(Unfinished { file, temporary, path, offset: 0 }))
    }

    fn settle(&self, names: &BTreeSet<String>) -> Result<()> {
        let above = |name: &String| Path::new(name).ancestors().skip(1).map(Path::to_owned).collect::<Vec<_>>();
        let directories: BTreeSet<PathBuf> = names.iter().flat_map(above).collect();
        for directory in directories {
            files::sync_directory(&self.root.join(directory)).map_err(of_storage)?;
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.at(name);
        files::remove_if_present(&path).map_err(of_storage)?;
        files::sync_directory(path.parent().unwrap_or(&self.root)).map_err(of_storage)
    }

    fn prune(&self) -> Result<()> {
        for name in files::entries(&self.root).map_err(of_storage)? {
            if name.is_dir() && !name.is_symlink() {
                for path in files::entries(&name).map_err(of_storage)? {
                    prune(&path)?;
                }
            }
        }
        Ok(())
    }
}

/// Removes unfinished files and empty directories.
fn prune(path: &Path) -> Result<()> {
    if path.is_symlink() {
        return Ok(());
    }
    if !path.is_dir() {
        return if is_unfinished(path) { files::remove(path).map_err(of_storage) } else { Ok(()) };
    }
    for below in files::entries(path).map_err(of_storage)? {
        prune(&below)?;
    }
    let is_empty = files::entries(path).map_err(of_storage)?.is_empty();
    if is_empty { files::remove_empty_directory(path).map_err(of_storage) } else { Ok(()) }
}

/// A file that has not its name yet.
struct Unfinished {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
    offset: u64,
}

impl Upload for Unfinished {
    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        // The file has its length, so zeros are there.
        if bytes.iter().any(|byte| *byte != 0) {
            let written = self.file.write_all_at(bytes, self.offset);
            written.map_err(|cause| ToolError::File { path: self.path.clone(), cause })?;
        }
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.file.sync_all().map_err(|cause| ToolError::File { path: self.path.clone(), cause })?;
        files::rename(&self.temporary, &self.path).map_err(of_storage)
    }
}
