//! The place of the output. A file appears under its name once it is whole and on disk.

use super::options::Destination;
use crate::ToolError;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Bytes that are written together.
const BUFFER_BYTES: usize = 1024 * 1024;

enum Kind {
    /// A file that is written under a temporary name, and the name that it gets once it is whole.
    Unfinished {
        temporary: PathBuf,
        path: PathBuf,
        file: BufWriter<File>,
    },
    /// A pipe or a device, which has no other name.
    Device {
        path: PathBuf,
        file: BufWriter<File>,
    },
    Stdout(BufWriter<io::Stdout>),
}

/// An open output.
pub(super) struct ExportOutput {
    kind: Kind,
    is_whole: bool,
}

impl ExportOutput {
    /// Opens the output. An existing file of its name stays as it is until [`Self::finish`].
    /// # Errors
    /// `File`.
    pub(super) fn open(destination: &Destination) -> Result<Self, ToolError> {
        let kind = match destination {
            Destination::Stdout => Kind::Stdout(BufWriter::with_capacity(BUFFER_BYTES, io::stdout())),
            Destination::File(path) => Self::open_file(path)?,
        };
        Ok(Self { kind, is_whole: false })
    }

    fn open_file(path: &Path) -> Result<Kind, ToolError> {
        let failed = |cause| ToolError::File { path: path.to_owned(), cause };
        // A symbolic link stays one: the file that it leads to is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
            Ok(metadata) if !metadata.is_file() => {
                let file = OpenOptions::new().write(true).open(&path).map_err(failed)?;
                return Ok(Kind::Device { path, file: BufWriter::with_capacity(BUFFER_BYTES, file) });
            }
            _ => {}
        }
        let Some(name) = path.file_name() else { return Err(failed(io::ErrorKind::InvalidInput.into())) };
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.unfinished", std::process::id()));
        let temporary = path.with_file_name(hidden);
        // A killed process with the same id may have left one. Another user's file or link is not written to.
        let _ = fs::remove_file(&temporary);
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary).map_err(failed)?;
        Ok(Kind::Unfinished { temporary, path, file: BufWriter::with_capacity(BUFFER_BYTES, file) })
    }

    /// Writes bytes.
    /// # Errors
    /// `File`.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), ToolError> {
        let (path, written) = match &mut self.kind {
            Kind::Unfinished { path, file, .. } | Kind::Device { path, file } => {
                (path.as_path(), file.write_all(bytes))
            }
            Kind::Stdout(stdout) => (Path::new("-"), stdout.write_all(bytes)),
        };
        written.map_err(|cause| ToolError::File { path: path.to_owned(), cause })
    }

    /// Puts everything on disk, and gives the file its name.
    /// # Errors
    /// `File`; the file's name is then as before.
    pub(super) fn finish(mut self) -> Result<(), ToolError> {
        let (path, finished) = match &mut self.kind {
            Kind::Stdout(stdout) => (Path::new("-"), stdout.flush()),
            Kind::Device { path, file } => (path.as_path(), file.flush()),
            Kind::Unfinished { temporary, path, file } => (path.as_path(), publish(file, temporary, path)),
        };
        finished.map_err(|cause| ToolError::File { path: path.to_owned(), cause })?;
        self.is_whole = true;
        Ok(())
    }
}

fn publish(file: &mut BufWriter<File>, temporary: &Path, path: &Path) -> io::Result<()> {
    file.flush()?;
    file.get_ref().sync_all()?;
    fs::rename(temporary, path)?;
    // A crash can lose a new file's name unless its directory is synced too.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

impl Drop for ExportOutput {
    fn drop(&mut self) {
        if let (false, Kind::Unfinished { temporary, .. }) = (self.is_whole, &self.kind) {
            // The reason why the export ended is reported instead of an error here.
            let _ = fs::remove_file(temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("out.json");
        let names = || -> Vec<_> {
            fs::read_dir(folder.path()).expect("there").flatten().map(|entry| entry.file_name()).collect()
        };
        fs::write(&path, "before").expect("written");
        let mut abandoned = ExportOutput::open(&Destination::File(path.clone())).expect("opened");
        abandoned.write(b"half").expect("written");
        assert_eq!((fs::read(&path).expect("there"), names().len()), (b"before".to_vec(), 2));
        drop(abandoned);
        assert_eq!((fs::read(&path).expect("there"), names().len()), (b"before".to_vec(), 1));
        let mut whole = ExportOutput::open(&Destination::File(path.clone())).expect("opened");
        whole.write(b"whole").expect("written");
        whole.finish().expect("finished");
        assert_eq!((fs::read(&path).expect("there"), names().len()), (b"whole".to_vec(), 1));
    }
}
