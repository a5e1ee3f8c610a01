//! The file that tells a service manager which process this is.

use std::path::{Path, PathBuf};

/// Removed when dropped: the number will be another process's one day.
pub struct PidFile(PathBuf);

impl PidFile {
    /// Writes it.
    /// # Errors
    /// A sentence that names the setting and the file.
    pub fn write(path: &Path) -> Result<Self, String> {
        std::fs::write(path, format!("{}\n", std::process::id()))
            .map_err(|error| format!("processManagement.pidFilePath: {}: {error}", path.display()))?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
