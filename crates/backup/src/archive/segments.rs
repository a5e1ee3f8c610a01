//! An archive in files that grow, laid out as the log's own segments.

use crate::receipts::{Receipt, Receipts};
use crate::stored_file::segment_name_at;
use crate::{Result, of_storage};
use bunko_store::{Appended, ArchivedLog, Lsn, files, is_same_record, segment_of};
use std::path::{Path, PathBuf};

/// The records of an archive, and its receipts.
pub(super) struct Segments {
    directory: PathBuf,
    log: ArchivedLog,
    receipts: Receipts,
}

impl Segments {
    /// Begins an archive.
    /// # Errors
    /// Errors of the files.
    pub fn begin(directory: &Path, first: Receipt) -> Result<Self> {
        let log = ArchivedLog::open(directory, Lsn(first.end)).map_err(of_storage)?;
        let receipts = Receipts::begin(directory, first)?;
        Ok(Self { directory: directory.to_owned(), log, receipts })
    }

    /// Goes on with an archive after its last receipt.
    /// # Errors
    /// `Damaged` with file and offset; errors of the files.
    pub fn resume(directory: &Path, last: Receipt) -> Result<Self> {
        let Some((receipts, _)) = Receipts::resume(directory)? else { return Self::begin(directory, last) };
        if last.last == 0 || segment_of(last.last) != segment_of(last.end) {
            // A power cut may have left a part of the next file, and no receipt covers a record in it.
            files::remove_if_present(&directory.join(segment_name_at(last.end))).map_err(of_storage)?;
        }
        let log = ArchivedLog::open(directory, Lsn(last.end)).map_err(of_storage)?;
        Ok(Self { directory: directory.to_owned(), log, receipts })
    }

    /// Adds whole records.
    /// # Errors
    /// Errors of the files; `Failed` for records that fail their checksums.
    pub fn append(&mut self, bytes: &[u8]) -> Result<Appended> {
        self.log.append(bytes).map_err(of_storage)
    }

    /// Makes all records durable, and then their receipt.
    /// # Errors
    /// Errors of the files.
    pub fn flush(&mut self, receipt: Receipt) -> Result<()> {
        self.log.sync().map_err(of_storage)?;
        self.receipts.add(receipt)
    }

    /// Whether `bytes` begin with the last record, which stands at `last`.
    /// # Errors
    /// Errors of the files.
    pub fn is_last(&self, last: Lsn, bytes: &[u8]) -> Result<bool> {
        is_same_record(&self.directory.join(segment_name_at(last.0)), last, bytes).map_err(of_storage)
    }
}
