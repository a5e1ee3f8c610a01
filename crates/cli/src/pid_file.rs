//! The file with the process id, for a service manager.

use std::path::{Path, PathBuf};

/// The file is removed on drop, because the id will belong to another process one day.
pub struct PidFile(PathBuf);

impl PidFile {
    /// Writes the file.
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
