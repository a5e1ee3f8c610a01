//! A filesystem of a chosen kind in a file, so that `ext3` can be measured on a machine without an `ext3` disk.

use crate::filesystem::free_bytes;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fmt, io};
use tempfile::TempDir;

/// A mounted image; it is unmounted and removed when dropped.
///
/// A process that is killed leaves the mount and the image in a directory `bunko-loop-*` of the scratch directory. To
/// clean up, `umount` its `mount` and remove the directory.
#[derive(Debug)]
pub struct LoopFilesystem {
    directory: TempDir,
}

/// A filesystem that could not be made.
#[derive(Debug)]
pub enum LoopError {
    /// This process or this machine cannot make one at all.
    Unsupported {
        /// The reason in words.
        reason: String,
    },
    /// The image would not fit once it is full.
    NoSpace {
        /// The scratch directory.
        scratch: PathBuf,
        /// The image's size.
        needed_bytes: u64,
        /// Free space of its filesystem.
        free_bytes: u64,
    },
    /// A command failed.
    Command {
        /// The command with its arguments.
        command: String,
        /// The command's error output.
        stderr: String,
    },
    /// A system call failed.
    Io {
        /// The path that the call was about.
        path: PathBuf,
        /// The kernel's error.
        cause: io::Error,
    },
}

/// Options of `mkfs` by kind.
// By default ext initialises its inode tables and its journal in the background after mounting, which would disturb the
// measurement, and it reserves a twentieth for root.
const MKFS_OPTIONS: &[(&str, &[&str])] = &[
    ("ext2", &["-m", "0", "-E", "lazy_itable_init=0"]),
    ("ext3", &["-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0"]),
    ("ext4", &["-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0"]),
];

/// System directories that are often missing from an ordinary user's `PATH`.
const SYSTEM_DIRECTORIES: &[&str] = &["/usr/sbin", "/sbin", "/usr/local/sbin"];

impl LoopFilesystem {
    /// Whether this process can make filesystems of a kind here.
    /// # Errors
    /// `Unsupported` if this process is not root, `mkfs` for the kind is missing or there are no loop devices.
    pub fn supported(kind: &str) -> Result<(), LoopError> {
        let unsupported = |reason: String| Err(LoopError::Unsupported { reason });
        if kind.is_empty() || !kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
            return unsupported(format!("{kind:?} is not a kind of filesystem"));
        }
        if !rustix::process::geteuid().is_root() {
            return unsupported("mounting needs root".into());
        }
        let tools = [format!("mkfs.{kind}"), "mount".into(), "umount".into()];
        if let Some(tool) = tools.iter().find(|tool| find_tool(tool).is_none()) {
            return unsupported(format!("there is no command {tool}"));
        }
        if !Path::new("/dev/loop-control").exists() {
            return unsupported("the kernel has no loop devices".into());
        }
        Ok(())
    }

    /// Makes an image of `bytes` bytes in a fresh directory below `scratch`, a filesystem in it, and mounts it.
    ///
    /// `kind` is `ext3`, `ext4`, `xfs` or any other for which there is a `mkfs.KIND` that knows `-q`. The image is
    /// sparse, so `bytes` are needed only once it is full.
    /// # Errors
    /// As [`LoopError`] lists; no file is left behind.
    pub fn create(kind: &str, bytes: u64, scratch: &Path) -> Result<Self, LoopError> {
        Self::supported(kind)?;
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |cause| LoopError::Io { path, cause }
        };
        let free_bytes = free_bytes(scratch).map_err(failed(scratch))?;
        if free_bytes < bytes {
            return Err(LoopError::NoSpace { scratch: scratch.to_owned(), needed_bytes: bytes, free_bytes });
        }
        let made = tempfile::Builder::new().prefix("bunko-loop-").tempdir_in(scratch);
        let directory = made.map_err(failed(scratch))?;
        let (image, mount_point) = (directory.path().join("image"), mount_point(&directory));
        File::create_new(&image).and_then(|file| file.set_len(bytes)).map_err(failed(&image))?;
        fs::create_dir(&mount_point).map_err(failed(&mount_point))?;

        let options = MKFS_OPTIONS.iter().find(|(of, _)| *of == kind).map_or(&[][..], |(_, options)| options);
        run(tool(&format!("mkfs.{kind}")).arg("-q").args(options).arg(&image))?;
        run(tool("mount").args(["-t", kind, "-o", "loop"]).args([&image, &mount_point]))?;
        Ok(Self { directory })
    }

    /// The mount point.
    pub fn path(&self) -> PathBuf {
        mount_point(&self.directory)
    }
}

impl Drop for LoopFilesystem {
    fn drop(&mut self) {
        let path = self.path();
        if run(tool("umount").arg(&path)).is_err() {
            // A process still has a file open: the kernel completes the unmount when the file is closed. If even that
            // fails, the directory stays, as documented above; a destructor cannot return an error.
            let _ = run(tool("umount").arg("-l").arg(&path));
        }
    }
}

fn mount_point(directory: &TempDir) -> PathBuf {
    directory.path().join("mount")
}

fn find_tool(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = env::split_paths(&path).chain(SYSTEM_DIRECTORIES.iter().map(PathBuf::from));
    directories.map(|directory| directory.join(name)).find(|file| file.is_file())
}

fn tool(name: &str) -> Command {
    let mut command = Command::new(find_tool(name).unwrap_or_else(|| name.into()));
    command.env("LC_ALL", "C");
    command
}

fn run(command: &mut Command) -> Result<(), LoopError> {
    let output = command.stdin(Stdio::null()).output();
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let line = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let stderr = if stderr.is_empty() { output.status.to_string() } else { stderr };
            Err(LoopError::Command { command: line, stderr })
        }
        Err(cause) => Err(LoopError::Command { command: line, stderr: cause.to_string() }),
    }
}

impl fmt::Display for LoopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { reason } => write!(f, "no filesystem in a file: {reason}"),
            Self::NoSpace { scratch, needed_bytes, free_bytes } => {
                let scratch = scratch.display();
                write!(f, "{scratch} has {free_bytes} bytes free, the image may take {needed_bytes} bytes")
            }
            Self::Command { command, stderr } => write!(f, "{command} failed: {stderr}"),
            Self::Io { path, cause } => write!(f, "{}: {cause}", path.display()),
        }
    }
}

impl std::error::Error for LoopError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::{self, AllocationError, Method};
    use crate::filesystem_of;

    const MEBIBYTE: u64 = 1 << 20;

    fn is_skipped(kind: &str) -> bool {
        let reason = LoopFilesystem::supported(kind).err();
        if let Some(reason) = &reason {
            eprintln!("SKIPPED: {reason}");
        }
        reason.is_some()
    }

    /// Makes a filesystem, calls `look` with its path, and checks that nothing remains afterwards.
    fn with(kind: &str, bytes: u64, look: impl FnOnce(&Path)) {
        if is_skipped(kind) {
            return;
        }
        let scratch = tempfile::tempdir().expect("writable");
        let filesystem = LoopFilesystem::create(kind, bytes, scratch.path()).expect("supported");
        let path = filesystem.path();
        let found = filesystem_of(&path).expect("mounted");
        assert_eq!((found.kind.as_str(), found.mount_point.as_path()), (kind, path.as_path()));
        look(&path);
        drop(filesystem);
        assert!(!path.exists());
        assert_eq!(fs::read_dir(scratch.path()).expect("readable").count(), 0);
    }

    #[test]
    fn ext3_has_no_fallocate() {
        with("ext3", 64 * MEBIBYTE, |path| {
            let refused = allocation::trial(path, 8 * MEBIBYTE, Method::Fallocate).expect_err("no extents");
            assert!(matches!(refused, AllocationError::Refused { .. }), "{refused}");
            allocation::trial(path, 8 * MEBIBYTE, Method::ZeroFill).expect("room for 8 MiB");
            let full = allocation::trial(path, 100 * MEBIBYTE, Method::ZeroFill).expect_err("a small image");
            assert!(matches!(full, AllocationError::NoSpace { .. }), "{full}");
        });
    }

    #[test]
    fn ext4_has_fallocate_and_is_left_while_a_file_is_open() {
        let mut open = None;
        with("ext4", 64 * MEBIBYTE, |path| {
            allocation::trial(path, 8 * MEBIBYTE, Method::Fallocate).expect("extents");
            open = Some(File::create_new(path.join("open")).expect("writable"));
        });
    }

    #[test]
    fn xfs_is_mounted() {
        with("xfs", 320 * MEBIBYTE, |path| {
            allocation::trial(path, 8 * MEBIBYTE, Method::Recycle).expect("room for 8 MiB");
        });
    }

    #[test]
    fn a_command_that_fails_is_quoted_and_leaves_nothing() {
        if is_skipped("ext4") {
            return;
        }
        let scratch = tempfile::tempdir().expect("writable");
        let error = LoopFilesystem::create("ext4", 1024, scratch.path()).expect_err("too small");
        let LoopError::Command { command, stderr } = &error else { panic!("{error}") };
        assert!(command.contains("mkfs.ext4 -q -m 0"), "{command}");
        assert!(!stderr.is_empty());
        assert_eq!(fs::read_dir(scratch.path()).expect("readable").count(), 0);
    }

    #[test]
    fn an_image_must_fit() {
        if is_skipped("ext4") {
            return;
        }
        let scratch = tempfile::tempdir().expect("writable");
        let error = LoopFilesystem::create("ext4", 1 << 60, scratch.path()).expect_err("an exbibyte");
        assert!(matches!(error, LoopError::NoSpace { .. }), "{error}");
    }

    #[test]
    fn a_kind_is_a_word() {
        let error = LoopFilesystem::supported("../evil").expect_err("no kind");
        assert_eq!(error.to_string(), "no filesystem in a file: \"../evil\" is not a kind of filesystem");
        assert!(LoopFilesystem::supported("nonesuch").is_err());
    }
}
