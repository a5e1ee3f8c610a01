//! The mark of an unfinished dump: the file that records its progress.
//!
//! The data itself has no such mark: a file that ends after a document looks whole.

use crate::ToolError;
use std::path::{Path, PathBuf};

/// Path of the mark of a dump to files in `root`.
pub(crate) fn state_in(root: &Path) -> PathBuf {
    root.join(".bunko-resume")
}

/// Path of the mark of an archive.
pub(crate) fn state_beside(archive: &Path) -> PathBuf {
    let mut name = archive.as_os_str().to_owned();
    name.push(".resume");
    name.into()
}

/// Refuses a dump that has one of these marks.
/// # Errors
/// `Failed` names the mark, and what to do.
pub(crate) fn refuse<const N: usize>(dump: &Path, marks: [PathBuf; N]) -> Result<(), ToolError> {
    match marks.into_iter().find(|mark| mark.is_file()) {
        None => Ok(()),
        Some(mark) => Err(ToolError::Failed(format!(
            "{}: this dump is not finished: {} says how far it is. Finish it with 'bunko dump --resume', or remove that \
             file to restore what there is",
            dump.display(),
            mark.display()
        ))),
    }
}
