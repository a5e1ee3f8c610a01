//! How long it takes to allocate disk space for a data file.
//!
//! A server that allocates its files in large pieces blocks its writers meanwhile. How long depends on the filesystem
//! and on the [`Method`].

mod fallocate;
mod recycle;
mod zero_fill;

use crate::filesystem::free_bytes;
use rustix::fs::fdatasync;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};
use std::{fmt, io};

/// Sizes of files that a trial takes, in bytes.
pub const BYTES: RangeInclusive<u64> = 1 << 20..=2 << 30;

/// A way to make a file with all its blocks allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The filesystem reserves the blocks: fallocate(2). Some filesystems cannot.
    Fallocate,
    /// Zeros are written from beginning to end.
    ZeroFill,
    /// A file of that size that is no longer needed is renamed. The time to make it is not counted.
    Recycle,
}

struct Row {
    method: Method,
    name: &'static str,
    allocate: fn(&Path, u64) -> io::Result<Allocated>,
}

const METHODS: &[Row] = &[
    Row { method: Method::Fallocate, name: "fallocate", allocate: fallocate::allocate },
    Row { method: Method::ZeroFill, name: "zero-fill", allocate: zero_fill::allocate },
    Row { method: Method::Recycle, name: "recycle", allocate: recycle::allocate },
];

/// Result of a method.
struct Allocated {
    file: File,
    elapsed: Duration,
    longest_write: Option<Duration>,
}

/// How long one file took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Seconds until the file has its size and its blocks.
    pub seconds: f64,
    /// Seconds of the `fdatasync` after that.
    pub sync_seconds: f64,
    /// Seconds of the longest single write; `None` where the method writes nothing.
    pub stall_seconds: Option<f64>,
}

/// A trial that gave no figures.
#[derive(Debug)]
pub enum AllocationError {
    /// The size is outside [`BYTES`].
    Size {
        /// The size that was asked for.
        bytes: u64,
    },
    /// The file would not fit.
    NoSpace {
        /// The directory of the trial.
        directory: PathBuf,
        /// The file's size.
        needed_bytes: u64,
        /// Free space of its filesystem.
        free_bytes: u64,
    },
    /// The filesystem does not know the method.
    Refused {
        /// The method that was refused.
        method: Method,
        /// The directory of the trial.
        directory: PathBuf,
    },
    /// A system call failed.
    Io {
        /// The directory of the trial.
        directory: PathBuf,
        /// The kernel's error.
        cause: io::Error,
    },
}

/// Measures how long it takes to make one file of `bytes` bytes with all its blocks, in a fresh directory below
/// `directory`. Both are removed afterwards.
/// # Errors
/// As [`AllocationError`] lists; no file is left behind.
pub fn trial(directory: &Path, bytes: u64, method: Method) -> Result<Trial, AllocationError> {
    if !BYTES.contains(&bytes) {
        return Err(AllocationError::Size { bytes });
    }
    let failed = |cause: io::Error| match rustix::io::Errno::from_io_error(&cause) {
        Some(rustix::io::Errno::OPNOTSUPP) => AllocationError::Refused { method, directory: directory.to_owned() },
        _ => AllocationError::Io { directory: directory.to_owned(), cause },
    };
    let free_bytes = free_bytes(directory).map_err(failed)?;
    if free_bytes < bytes {
        return Err(AllocationError::NoSpace { directory: directory.to_owned(), needed_bytes: bytes, free_bytes });
    }
    let fresh = tempfile::Builder::new().prefix("bunko-allocation-").tempdir_in(directory).map_err(failed)?;
    let allocated = (method.row().allocate)(fresh.path(), bytes).map_err(failed)?;
    let start = Instant::now();
    fdatasync(&allocated.file).map_err(|error| failed(error.into()))?;
    let sync = start.elapsed();
    drop(allocated.file);
    fresh.close().map_err(failed)?;
    Ok(Trial {
        seconds: allocated.elapsed.as_secs_f64(),
        sync_seconds: sync.as_secs_f64(),
        stall_seconds: allocated.longest_write.map(|write| write.as_secs_f64()),
    })
}

impl Method {
    /// All methods.
    pub fn all() -> impl Iterator<Item = Self> {
        METHODS.iter().map(|row| row.method)
    }

    fn row(self) -> &'static Row {
        METHODS.iter().find(|row| row.method == self).expect("each method has a row")
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.row().name)
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let row = METHODS.iter().find(|row| row.name == name);
        row.map(|row| row.method).ok_or_else(|| {
            let names: Vec<_> = METHODS.iter().map(|row| row.name).collect();
            format!("unknown allocation method {name:?}, expected one of {}", names.join(", "))
        })
    }
}

impl fmt::Display for AllocationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { bytes } => {
                let (min, max) = (BYTES.start(), BYTES.end());
                write!(f, "a file of {bytes} bytes cannot be tried, only {min} to {max} bytes")
            }
            Self::NoSpace { directory, needed_bytes, free_bytes } => {
                let directory = directory.display();
                write!(f, "{directory} has {free_bytes} bytes free, the file needs {needed_bytes} bytes")
            }
            Self::Refused { method, directory } => {
                write!(f, "{method}: Operation not supported by the filesystem of {}", directory.display())
            }
            Self::Io { directory, cause } => write!(f, "allocating a file in {}: {cause}", directory.display()),
        }
    }
}

impl std::error::Error for AllocationError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    const MEBIBYTE: u64 = 1 << 20;

    #[test]
    fn names_are_the_same_in_text_and_in_serde() {
        for method in Method::all() {
            let name = method.to_string();
            assert_eq!(name.parse(), Ok(method));
            assert_eq!(serde_json::to_value(method).expect("a string"), serde_json::Value::from(name));
        }
        let error = "truncate".parse::<Method>().expect_err("makes holes");
        assert_eq!(error, "unknown allocation method \"truncate\", expected one of fallocate, zero-fill, recycle");
    }

    #[test]
    fn each_method_gives_a_file_its_size_and_its_blocks() {
        let bytes = 4 * MEBIBYTE + 5;
        for row in METHODS {
            let directory = tempfile::tempdir().expect("writable");
            let allocated = match (row.allocate)(directory.path(), bytes) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported && row.method == Method::Fallocate => {
                    eprintln!("SKIPPED: no fallocate in {}", directory.path().display());
                    continue;
                }
                other => other.expect("room for 4 MiB"),
            };
            allocated.file.sync_all().expect("synced");
            let metadata = allocated.file.metadata().expect("open");
            assert_eq!(metadata.len(), bytes, "{}", row.name);
            assert!(metadata.blocks() * 512 >= bytes, "{}: {metadata:?}", row.name);
            assert_eq!(allocated.longest_write.is_some(), row.method == Method::ZeroFill);
            assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1, "{}", row.name);
        }
    }

    #[test]
    fn a_trial_leaves_nothing_behind() {
        let directory = tempfile::tempdir().expect("writable");
        let trial = trial(directory.path(), 2 * MEBIBYTE, Method::ZeroFill).expect("room for 2 MiB");
        let stall = trial.stall_seconds.expect("it wrote");
        assert!(trial.seconds >= stall && stall > 0.0, "{trial:?}");
        assert!(trial.sync_seconds > 0.0);
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 0);
    }

    #[test]
    fn sizes_have_limits() {
        let error = trial(Path::new("/"), (2 << 30) + 1, Method::ZeroFill).expect_err("too large");
        let expected = "a file of 2147483649 bytes cannot be tried, only 1048576 to 2147483648 bytes";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn errors_name_the_directory() {
        let missing = trial(Path::new("/none-such"), MEBIBYTE, Method::Recycle).expect_err("no directory");
        assert_eq!(missing.to_string(), "allocating a file in /none-such: No such file or directory (os error 2)");
        // Filesystems such as `/proc` have no free space.
        let full = trial(Path::new("/proc"), MEBIBYTE, Method::ZeroFill).expect_err("no space");
        assert_eq!(full.to_string(), "/proc has 0 bytes free, the file needs 1048576 bytes");
        let refused = AllocationError::Refused { method: Method::Fallocate, directory: "/old".into() };
        assert_eq!(refused.to_string(), "fallocate: Operation not supported by the filesystem of /old");
    }
}
