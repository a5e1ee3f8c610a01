//! The archive of a backup: a copy of the log after its image, which grows.
//!
//! ```text
//! records arrive ─► segment files ─► files are durable ─► receipt ─► receipt is durable
//! ```
//! A crash before the receipt leaves records without one; they are given up when the archive goes on.

use crate::manifest::Manifest;
use crate::receipts::{Receipt, Receipts};
use crate::source::Source;
use crate::target::Target;
use crate::{Result, of_storage};
use bunko_store::{ArchivedLog, Lsn, StorageError, files, is_same_record, last_record_before, segment_of};
use std::path::PathBuf;

/// A writer may have taken its record's time this long before the record has its place in the log.
const LATENESS_MAX_MS: u64 = 1000;

/// An archive that grows.
pub(crate) struct Archive {
    directory: PathBuf,
    /// The image's file of the segment in which the archive begins.
    image_log: Option<PathBuf>,
    log: ArchivedLog,
    receipts: Receipts,
    /// The last receipt.
    durable: Receipt,
    /// The next receipt.
    next: Receipt,
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

/// The image's file of the segment in which it ends.
fn image_log(target: &Target, manifest: &Manifest) -> Option<PathBuf> {
    let file = manifest.file(&format!("log/{}", segment_name(manifest.end)))?;
    Some(target.files_of(&file.from).join(&file.name))
}

/// The name of the segment's file in which a position is.
fn segment_name(position: u64) -> String {
    format!("{:012}.segment", segment_of(position))
}

impl Archive {
    /// Begins the archive of a backup.
    /// # Errors
    /// Errors of the files.
    pub fn begin(target: &Target, manifest: &Manifest) -> Result<Self> {
        let directory = target.archive_of(&manifest.id);
        let (end, time_ms) = (manifest.end, manifest.time_ms);
        let log = ArchivedLog::open(&directory, Lsn(end)).map_err(of_storage)?;
        let first = Receipt { end, last: 0, time_ms, complete_ms: time_ms };
        let receipts = Receipts::begin(&directory, first)?;
        target.sync_names()?;
        Ok(Self { directory, image_log: image_log(target, manifest), log, receipts, durable: first, next: first })
    }

    /// Goes on with the archive of a backup. Begins it if the backup was made alone, or the process ended before it began one.
    /// # Errors
    /// `Damaged` with file and offset; errors of the files.
    pub fn resume(target: &Target, manifest: &Manifest) -> Result<Self> {
        let directory = target.archive_of(&manifest.id);
        let Some((receipts, durable)) = Receipts::resume(&directory)? else { return Self::begin(target, manifest) };
        if durable.last == 0 || segment_of(durable.last) != segment_of(durable.end) {
            // A power cut may have left a part of the next file, and no receipt covers a record in it.
            files::remove_if_present(&directory.join(segment_name(durable.end))).map_err(of_storage)?;
        }
        let log = ArchivedLog::open(&directory, Lsn(durable.end)).map_err(of_storage)?;
        Ok(Self { directory, image_log: image_log(target, manifest), log, receipts, durable, next: durable })
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
        let (last, segment) = match (self.next.last, &self.image_log) {
            // A log that has no record before the archive cannot be told from another one.
            (0, None) => return Ok(Some(false)),
            (0, Some(path)) => match last_record_before(path, Lsn(self.next.end)) {
                Ok(Some(last)) => (last, path.clone()),
                // A damaged file must not be in the way of a new backup.
                Ok(None) | Err(StorageError::Corrupt { .. }) => return Ok(Some(false)),
                Err(error) => return Err(of_storage(error)),
            },
            (last, _) => (Lsn(last), self.directory.join(segment_name(last))),
        };
        let Some(part) = source.log(last.0)? else { return Ok(Some(false)) };
        if part.bytes.is_empty() && part.complete_ms.is_none() {
            return Ok(None);
        }
        is_same_record(&segment, last, &part.bytes).map(Some).map_err(of_storage)
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
            let appended = self.log.append(&part.bytes).map_err(of_storage)?;
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
        self.log.sync().map_err(of_storage)?;
        self.receipts.add(self.next)?;
        self.durable = self.next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::tests::manifest;

    #[test]
    fn a_file_without_receipts_that_a_power_cut_has_left_is_no_damage() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let target = Target::open(directory.path()).expect("opens");
        let made = manifest("a", &[("manifest.bson", "a")]);
        drop(Archive::begin(&target, &made).expect("begun"));
        let path = target.archive_of("a").join(segment_name(made.end));
        std::fs::write(&path, "").expect("written");
        let archive = Archive::resume(&target, &made).expect("resumed");
        assert_eq!(archive.durable().end, made.end);
        assert!(!path.exists());
    }
}
