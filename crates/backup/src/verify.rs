//! Reads all that a target has, and names what is damaged.

use crate::restore::{check_file, span_of};
use crate::target::Target;
use crate::{Result, Tell, of_storage};
use bunko_store::{Lsn, walk_archived};
use bunko_tools::{Interrupted, ToolError};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Checks every file of every backup, and every record of their archives. Each damage is reported. Returns the number of
/// damaged files.
/// # Errors
/// `Usage` for another directory; `Damaged` for a manifest; `Interrupted`.
pub fn verify(root: &Path, tell: Tell<'_>, interrupted: &Interrupted) -> Result<u64> {
    let target = Target::read(root)?;
    let (mut damaged, mut checked) = (0, BTreeSet::new());
    let mut take = |outcome: Result<()>| match outcome {
        Err(error @ ToolError::Interrupted) => Err(error),
        Err(error) => {
            damaged += 1;
            tell(&error.to_string());
            Ok(())
        }
        Ok(()) => Ok(()),
    };
    let look = || if interrupted.load(Ordering::Relaxed) { Err(ToolError::Interrupted) } else { Ok(()) };
    for manifest in target.manifests()? {
        for file in &manifest.files {
            if checked.insert((file.from.clone(), file.name.clone())) {
                take(check_file(&target, file, &mut |_, _| look()))?;
            }
        }
        let archive = target.archive_of(&manifest.id);
        let last = match span_of(&target, &manifest) {
            Ok((_, last)) => last,
            Err(error) => {
                take(Err(error))?;
                continue;
            }
        };
        let Some(last) = last else { continue };
        let path_of = |number: u64| archive.join(format!("{number:012}.segment"));
        let mut is_over = false;
        let walked = walk_archived(&path_of, Lsn(manifest.end)..Lsn(last.end), &mut |_| {
            is_over = look().is_err();
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        take(if is_over { Err(ToolError::Interrupted) } else { walked.map_err(of_storage) })?;
    }
    Ok(damaged)
}
