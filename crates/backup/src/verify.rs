//! Reads all that a target has, and names what is damaged.

use crate::archive::check_parts;
use crate::manifest::Manifest;
use crate::place::Place;
use crate::receipts::Receipt;
use crate::restore::span_of;
use crate::stored_file::{check_file, segment_name};
use crate::target::{Form, Target, archive_of};
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
pub fn verify(place: &Place, tell: Tell<'_>, interrupted: &Interrupted) -> Result<u64> {
    let target = Target::read(place)?;
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
        let last = match span_of(&target, &manifest) {
            Ok((_, last)) => last,
            Err(error) => {
                take(Err(error))?;
                continue;
            }
        };
        let Some(last) = last else { continue };
        take(match target.form() {
            Form::Growing => check_segments(&target.path(&archive_of(&manifest.id))?, &manifest, last, &look),
            Form::Parts | Form::EncryptedParts => check_parts(&target, &manifest, last, &look),
        })?;
    }
    Ok(damaged)
}

/// Checks all records of an archive in files that grow.
fn check_segments(archive: &Path, manifest: &Manifest, last: Receipt, look: &dyn Fn() -> Result<()>) -> Result<()> {
    let path_of = |number: u64| archive.join(segment_name(number));
    let mut is_over = false;
    let walked = walk_archived(&path_of, Lsn(manifest.end)..Lsn(last.end), &mut |_| {
        is_over = look().is_err();
        if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if is_over { Err(ToolError::Interrupted) } else { walked.map_err(of_storage) }
}
