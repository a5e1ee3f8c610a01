//! Filesystems in image files, for suites that need a disk of their own. They need root and loop devices.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a command that must succeed.
pub fn sh(command: &str, arguments: &[&str]) {
    let output = Command::new(command).args(arguments).output().unwrap_or_else(|error| panic!("{command}: {error}"));
    assert!(output.status.success(), "{command} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A loop-mounted filesystem, unmounted when dropped.
pub struct Mounted(pub PathBuf);

impl Mounted {
    pub fn new(image: &Path, at: PathBuf) -> Self {
        std::fs::create_dir_all(&at).expect("a mount point");
        sh("mount", &["-o", "loop", text(image), text(&at)]);
        Self(at)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-l", text(&self.0)]).output();
    }
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}
