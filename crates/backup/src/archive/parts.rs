//! An archive in parts, which are objects: a store of objects cannot append, and an encrypted object cannot be changed.
//!
//! ```text
//! archive/ID/00000000000000004096.part   records from that position on; written anew while it is short
//! archive/ID/00000000000001052672.part
//! archive/ID/receipt                     how far the records are durable
//! ```
//! A part that is written anew has all that it had, and more. Bytes behind the receipt's end do not count.

use crate::manifest::Manifest;
use crate::receipts::Receipt;
use crate::target::{Target, archive_of};
use crate::{Result, of_storage};
use bunko_store::{Appended, ArchivedLog, Lsn, StorageError, begin_with_same_record, read_records};
use bunko_tools::ToolError;
use std::path::Path;

/// A part of this length is not written anew: the next records begin another one.
const PART_BYTES: usize = 1 << 20;
/// Records of this length are written before a receipt is due, so that memory is bounded.
const UNWRITTEN_BYTES_MAX: usize = 8 << 20;
/// Number of bytes of the last record that are kept: its header, and more.
const LAST_BYTES: usize = 256;
const PART: &str = ".part";

/// The records of an archive.
pub(super) struct Parts<'t> {
    target: &'t Target,
    /// The backup that it belongs to.
    id: String,
    /// Position at which the last part begins.
    start: u64,
    /// The bytes of the last part.
    part: Vec<u8>,
    /// Whether the last part has bytes that were not written.
    is_changed: bool,
    /// The first bytes of the last record; empty if there is none.
    last: Vec<u8>,
}

fn part_of(id: &str, start: u64) -> String {
    format!("{}{start:020}{PART}", archive_of(id))
}

fn receipt_of(id: &str) -> String {
    archive_of(id) + "receipt"
}

/// The parts of an archive and the positions at which they begin, in order.
fn parts(target: &Target, id: &str) -> Result<Vec<(u64, String)>> {
    let below = archive_of(id);
    let listed = target.objects().list(&below)?;
    let start = |name: &str| name.strip_prefix(&below)?.strip_suffix(PART)?.parse().ok();
    let mut parts: Vec<_> = listed.into_keys().filter_map(|name| Some((start(&name)?, name))).collect();
    parts.sort();
    Ok(parts)
}

/// The receipt of an archive in parts; `None` if it has none.
/// # Errors
/// `Damaged`; errors of the store.
pub(super) fn receipt(target: &Target, id: &str) -> Result<Option<Receipt>> {
    let name = receipt_of(id);
    let Some(bytes) = target.objects().read(&name)? else { return Ok(None) };
    let line = std::str::from_utf8(&bytes).ok().and_then(|text| text.strip_suffix('\n'));
    let receipt = line.and_then(Receipt::parse);
    receipt.map(Some).ok_or_else(|| target.objects().damaged(&name, 0, "is not a receipt"))
}

impl<'t> Parts<'t> {
    /// Begins an archive.
    /// # Errors
    /// Errors of the store.
    pub fn begin(target: &'t Target, id: &str, first: Receipt) -> Result<Self> {
        let mut parts = Self::empty(target, id, first.end);
        parts.flush(first)?;
        Ok(parts)
    }

    fn empty(target: &'t Target, id: &str, start: u64) -> Self {
        Self { target, id: id.to_owned(), start, part: Vec::new(), is_changed: false, last: Vec::new() }
    }

    /// Goes on with an archive after its receipt. Records behind it are given up.
    /// # Errors
    /// `Damaged` with the part; errors of the store.
    pub fn resume(target: &'t Target, id: &str, receipt: Receipt) -> Result<Self> {
        let mut resumed = Self::empty(target, id, receipt.end);
        let (mut kept, given_up): (Vec<_>, Vec<_>) =
            parts(target, id)?.into_iter().partition(|(start, _)| *start < receipt.end);
        for (_, name) in given_up {
            target.objects().remove(&name)?;
        }
        let Some((start, name)) = kept.pop() else {
            let found = "its receipt names records, and it has no parts";
            return if receipt.last == 0 {
                Ok(resumed)
            } else {
                Err(target.objects().damaged(&receipt_of(id), 0, found))
            };
        };
        let mut bytes = target.objects().read(&name)?.unwrap_or_default();
        let read =
            read_records(&bytes, Lsn(start)..Lsn(receipt.end)).map_err(|error| bad_records(target, &name, error))?;
        if read.end.0 != receipt.end || read.last.0 != receipt.last {
            return Err(target.objects().damaged(&name, bytes.len() as u64, "ends before the archive's receipt"));
        }
        bytes.truncate(read.bytes);
        resumed.last = first_bytes(&bytes[read.last_at..]);
        if bytes.len() < PART_BYTES {
            (resumed.start, resumed.part) = (start, bytes);
        }
        Ok(resumed)
    }

    /// Adds whole records, which begin at `end`.
    /// # Errors
    /// Errors of the store; `Failed` for records that fail their checksums.
    pub fn append(&mut self, bytes: &[u8], end: Lsn) -> Result<Appended> {
        let appended = read_records(bytes, end..Lsn(u64::MAX)).map_err(of_storage)?;
        self.last = first_bytes(&bytes[appended.last_at..]);
        self.part.extend_from_slice(bytes);
        self.is_changed = true;
        if self.part.len() >= UNWRITTEN_BYTES_MAX {
            self.write()?;
            self.next_part(appended.end.0);
        }
        Ok(appended)
    }

    /// Writes all records, and then their receipt.
    /// # Errors
    /// Errors of the store.
    pub fn flush(&mut self, receipt: Receipt) -> Result<()> {
        if self.is_changed {
            self.write()?;
        }
        self.target.objects().put(&receipt_of(&self.id), receipt.line().as_bytes())?;
        if self.part.len() >= PART_BYTES {
            self.next_part(receipt.end);
        }
        Ok(())
    }

    /// Whether `bytes` begin with the last record, which stands at `last`.
    pub fn is_last(&self, last: Lsn, bytes: &[u8]) -> bool {
        begin_with_same_record(&self.last, last, bytes)
    }

    fn write(&mut self) -> Result<()> {
        self.target.objects().put(&part_of(&self.id, self.start), &self.part)?;
        self.is_changed = false;
        Ok(())
    }

    fn next_part(&mut self, start: u64) {
        self.start = start;
        self.part = Vec::new();
    }
}

fn first_bytes(record: &[u8]) -> Vec<u8> {
    record[..record.len().min(LAST_BYTES)].to_vec()
}

/// The error of a part whose records cannot be read or kept.
fn bad_records(target: &Target, name: &str, error: StorageError) -> ToolError {
    match error {
        StorageError::ForeignRecord { position, found } => {
            target.objects().damaged(name, 0, &format!("at position {position} of the log: {found}"))
        }
        error => of_storage(error),
    }
}

/// Whether further parts are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    More,
    Nothing,
}

/// Takes a part's name, its bytes, and the position at which they begin; returns the position at which they end.
type TakePart<'t> = &'t mut dyn FnMut(&str, &[u8], Lsn) -> Result<(Lsn, Wanted)>;

/// Shows the parts of a backup's archive up to its receipt's end, until `take` wants no more.
/// # Errors
/// `Damaged` for a part that is missing; errors of the store and of `take`.
fn each_part(target: &Target, manifest: &Manifest, last: Receipt, take: TakePart<'_>) -> Result<()> {
    let mut end = Lsn(manifest.end);
    for (start, name) in parts(target, &manifest.id)? {
        if end.0 >= last.end {
            break;
        }
        if start != end.0 {
            let found = format!("is missing; the next part begins at {start}");
            return Err(target.objects().damaged(&part_of(&manifest.id, end.0), 0, &found));
        }
        let bytes = target.objects().read(&name)?;
        let bytes = bytes.ok_or_else(|| target.objects().damaged(&name, 0, "is missing"))?;
        let (behind, wanted) = take(&name, &bytes, end)?;
        if wanted == Wanted::Nothing {
            return Ok(());
        }
        end = behind;
    }
    if end.0 < last.end {
        return Err(target.objects().damaged(&part_of(&manifest.id, end.0), 0, "is missing, and the receipt names it"));
    }
    Ok(())
}

/// Checks all records of a backup's archive. `look` is called before each part.
/// # Errors
/// `Damaged` with the part; errors of the store and of `look`.
pub(crate) fn check_parts(
    target: &Target,
    manifest: &Manifest,
    last: Receipt,
    look: &dyn Fn() -> Result<()>,
) -> Result<()> {
    each_part(target, manifest, last, &mut |name, bytes, start| {
        look()?;
        let read = read_records(bytes, start..Lsn(u64::MAX));
        Ok((read.map_err(|error| bad_records(target, name, error))?.end, Wanted::More))
    })
}

/// Copies a backup's archive into segment files in the directory `to`, up to its receipt's end. Records after the time
/// `to_ms` may be left out.
/// # Errors
/// As [`check_parts`]; errors of the files.
pub(crate) fn copy_parts(
    target: &Target,
    manifest: &Manifest,
    (last, to_ms): (Receipt, Option<u64>),
    to: &Path,
) -> Result<()> {
    let mut log = ArchivedLog::open(to, Lsn(manifest.end)).map_err(of_storage)?;
    each_part(target, manifest, last, &mut |name, bytes, _| {
        let appended = log.append(bytes).map_err(|error| bad_records(target, name, error))?;
        let is_enough = to_ms.is_some_and(|to_ms| appended.time_ms.is_some_and(|time_ms| time_ms > to_ms));
        Ok((appended.end, if is_enough { Wanted::Nothing } else { Wanted::More }))
    })
}
