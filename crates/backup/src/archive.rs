//! The archive of a backup: a copy of the log after its image, which grows.
//!
//! ```text
//! records arrive ─► files or parts ─► they are durable ─► receipt ─► receipt is durable
//! ```
//! A crash before the receipt leaves records without one; they are given up when the archive goes on.

mod parts;
mod segments;

pub(crate) use parts::{check_parts, copy_parts};

use crate::manifest::Manifest;
use crate::receipts::{self, Receipt};
use crate::source::Source;
use crate::stored_file::{LocalFiles, segment_name_at};
use crate::target::{Form, Target, archive_of};
use crate::{Result, of_storage};
use bunko_store::{Lsn, StorageError, is_same_record, last_record_before};
use bunko_tools::ToolError;
use parts::Parts;
use segments::Segments;
use std::path::PathBuf;

/// A writer may have taken its record's time this long before the record has its place in the log.
const LATENESS_MAX_MS: u64 = 1000;

/// An archive that grows.
pub(crate) struct Archive<'t> {
    target: &'t Target,
    manifest: Manifest,
    records: Records<'t>,
    /// The last receipt.
    durable: Receipt,
    /// The next receipt.
    next: Receipt,
}

/// The records of an archive.
enum Records<'t> {
    Segments(Segments),
    Parts(Parts<'t>),
}

/// The result of asking the server for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pulled {
    /// There is more at once.
    More,
    /// The archive has all that is durable.
    All,
    /// The server's log cannot continue the archive: it was given up, or it is another one.
    Gap,
    /// A record names documents that are not in the log.
    Bypassed,
}

/// The last receipt of a backup's archive; `None` if it has none.
/// # Errors
/// `Damaged` with file and offset; errors of the store.
pub(crate) fn last_receipt(target: &Target, id: &str) -> Result<Option<Receipt>> {
    match target.form() {
        Form::Growing => receipts::read(&target.path(&archive_of(id))?),
        Form::Parts | Form::EncryptedParts => parts::receipt(target, id),
    }
}

impl<'t> Archive<'t> {
    /// Begins the archive of a backup.
    /// # Errors
    /// Errors of the store.
    pub fn begin(target: &'t Target, manifest: &Manifest) -> Result<Self> {
        let (end, time_ms) = (manifest.end, manifest.time_ms);
        let first = Receipt { end, last: 0, time_ms, complete_ms: time_ms };
        let records = match target.form() {
            Form::Growing => Records::Segments(Segments::begin(&target.path(&archive_of(&manifest.id))?, first)?),
            Form::Parts | Form::EncryptedParts => Records::Parts(Parts::begin(target, &manifest.id, first)?),
        };
        Ok(Self { target, manifest: manifest.clone(), records, durable: first, next: first })
    }

    /// Goes on with the archive of a backup. Begins it if the backup was made alone, or the process ended before it began one.
    /// # Errors
    /// `Damaged` with file and offset; errors of the store.
    pub fn resume(target: &'t Target, manifest: &Manifest) -> Result<Self> {
        let Some(durable) = last_receipt(target, &manifest.id)? else { return Self::begin(target, manifest) };
        let records = match target.form() {
            Form::Growing => Records::Segments(Segments::resume(&target.path(&archive_of(&manifest.id))?, durable)?),
            Form::Parts | Form::EncryptedParts => Records::Parts(Parts::resume(target, &manifest.id, durable)?),
        };
        Ok(Self { target, manifest: manifest.clone(), records, durable, next: durable })
    }

    /// The last receipt.
    pub fn durable(&self) -> Receipt {
        self.durable
    }

    /// Whether the server's log has this archive's last record, and so continues it. `None` if the server cannot tell yet: a
    /// member of a set learns after its start that the record is committed.
    /// # Errors
    /// Errors of the server and of the files.
    pub fn is_continued(&self, source: &mut Source) -> Result<Option<bool>> {
        let image = LocalFiles::of(self.target, &self.manifest);
        let (last, image_segment) = match self.next.last {
            0 => match self.last_of_image(&image)? {
                Some((last, segment)) => (last, Some(segment)),
                // A log that has no record before the archive cannot be told from another one.
                None => return Ok(Some(false)),
            },
            last => (Lsn(last), None),
        };
        let Some(part) = source.log(last.0)? else { return Ok(Some(false)) };
        if part.bytes.is_empty() && part.complete_ms.is_none() {
            return Ok(None);
        }
        let is_same = match (image_segment, &self.records) {
            (Some(segment), _) => is_same_record(&segment, last, &part.bytes).map_err(of_storage)?,
            (None, Records::Segments(segments)) => segments.is_last(last, &part.bytes)?,
            (None, Records::Parts(parts)) => parts.is_last(last, &part.bytes),
        };
        Ok(Some(is_same))
    }

    /// The image's last record, and the file of the segment that it is in.
    fn last_of_image(&self, image: &LocalFiles<'_>) -> Result<Option<(Lsn, PathBuf)>> {
        let name = format!("log/{}", segment_name_at(self.next.end));
        let segment = match image.path(&name) {
            Ok(Some(segment)) => segment,
            Ok(None) => return Ok(None),
            // A damaged file must not be in the way of a new backup.
            Err(ToolError::Damaged { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        match last_record_before(&segment, Lsn(self.next.end)) {
            Ok(last) => Ok(last.map(|last| (last, segment))),
            Err(StorageError::Corrupt { .. }) => Ok(None),
            Err(error) => Err(of_storage(error)),
        }
    }

    /// Adds the records below `end`, as far as the server's log continues the archive and has them committed.
    /// # Errors
    /// As [`Self::pull`].
    pub fn reach(&mut self, source: &mut Source, end: u64) -> Result<()> {
        while self.next.end < end && self.pull(source)? == Pulled::More {}
        Ok(())
    }

    /// Adds the next records of the server's log. They are durable after [`Self::flush`].
    /// # Errors
    /// Errors of the server and of the files; `Failed` for records that fail their checksums.
    pub fn pull(&mut self, source: &mut Source) -> Result<Pulled> {
        let Some(part) = source.log(self.next.end)? else { return Ok(Pulled::Gap) };
        let mut next = self.next;
        if !part.bytes.is_empty() {
            let appended = match &mut self.records {
                Records::Segments(segments) => segments.append(&part.bytes)?,
                Records::Parts(parts) => parts.append(&part.bytes, Lsn(next.end))?,
            };
            (next.end, next.last) = (appended.end.0, appended.last.0);
            if appended.names_file {
                return Ok(Pulled::Bypassed);
            }
            if let Some(time_ms) = appended.time_ms {
                next.time_ms = next.time_ms.max(time_ms);
                // This is earlier than before if the server's clock was set back: the archive was not complete up to then.
                next.complete_ms = next.time_ms;
            }
        }
        if let Some(complete_ms) = part.complete_ms {
            next.complete_ms = next.time_ms.max(complete_ms.saturating_sub(LATENESS_MAX_MS));
        }
        self.next = next;
        Ok(if part.behind < part.end { Pulled::More } else { Pulled::All })
    }

    /// Makes all that was added durable.
    /// # Errors
    /// Errors of the files.
    pub fn flush(&mut self) -> Result<()> {
        if self.next == self.durable {
            return Ok(());
        }
        match &mut self.records {
            Records::Segments(segments) => segments.flush(self.next)?,
            Records::Parts(parts) => parts.flush(self.next)?,
        }
        self.durable = self.next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::tests::manifest;
    use crate::place::Place;

    #[test]
    fn a_file_without_receipts_that_a_power_cut_has_left_is_no_damage() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let target = Target::open(&Place::directory(directory.path())).expect("opens");
        let made = manifest("a", &[("manifest.bson", "a")]);
        drop(Archive::begin(&target, &made).expect("begun"));
        let path = directory.path().join("archive/a").join(segment_name_at(made.end));
        std::fs::write(&path, "").expect("written");
        let archive = Archive::resume(&target, &made).expect("resumed");
        assert_eq!(archive.durable().end, made.end);
        assert!(!path.exists());
    }
}
