//! Copies of a part of the log, in a backup: raw bytes of a server's log ([`super::raw`]) in files that are laid out as
//! the log's own segments, without the bytes that mean nothing (after a gap's header, after a seal).
//!
//! ```text
//! server's log ──raw bytes──► ArchivedLog::append ──► segment files ──► extend_image ──► log of a new data directory
//! ```
//! A copy begins where the log of an image ends, and is put after it when the backup is restored.
//!
//! **Invariant:** every record was verified before it is written, and is verified again before it is put after an image.

use super::raw_append::{Shipped, verify};
use super::record::{HEADER_BYTES, Header, Kind};
use super::recovery::record_at;
use super::segment::{SEGMENT_BYTES, SEGMENT_HEADER_BYTES, Segment, first_record, offset_in_segment, segment_of};
use crate::{Effect, Lsn, Result, StorageError, files};
use std::fs::File;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A copy that grows.
pub struct ArchivedLog {
    directory: PathBuf,
    end: Lsn,
    /// The file that was written to last, and whether it is new since the last sync.
    current: Option<(u64, File)>,
    unsynced: Vec<PathBuf>,
}

/// The result of adding bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Position after the last added record.
    pub end: Lsn,
    /// Position of the last record.
    pub last: Lsn,
    /// Time of the last record that has one; milliseconds since 1970.
    pub time_ms: Option<u64>,
    /// Whether a record names a file that the log does not contain ([`crate::Staged`]).
    pub names_file: bool,
    /// Number of bytes that were added.
    pub bytes: usize,
    /// Offset of the last record in these bytes.
    pub last_at: usize,
}

impl Appended {
    fn nothing(end: Lsn) -> Self {
        Self { end, last: end, time_ms: None, names_file: false, bytes: 0, last_at: 0 }
    }

    fn add(&mut self, record: &Shipped<'_>) {
        let header = &record.header;
        let is_bare = matches!(header.kind, Kind::Seal | Kind::Gap);
        self.names_file |=
            !is_bare && header.effects(record.bytes).any(|effect| matches!(effect, Effect::AdoptFile { .. }));
        (self.last, self.end) = (header.lsn, header.behind());
        self.last_at = self.bytes;
        self.bytes += record.bytes.len();
        if header.is_dated() {
            self.time_ms = self.time_ms.max(Some(header.time_ms));
        }
    }
}

/// Reads the records in `bytes`, of which the first stands at the beginning of `span`, as far as they are in `span`. Every
/// byte that a checksum covers is checked.
///
/// # Errors
/// [`StorageError::ForeignRecord`] as of [`crate::Store::append_raw`].
pub fn read_records(bytes: &[u8], span: Range<Lsn>) -> Result<Appended> {
    let mut read = Appended::nothing(span.start);
    for record in verify(bytes, span.start)?.iter().take_while(|record| record.header.lsn < span.end) {
        read.add(record);
    }
    Ok(read)
}

/// A record of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchivedRecord {
    /// The record's position.
    pub lsn: Lsn,
    /// Position after the record, in the same segment.
    pub end: Lsn,
    /// Time in milliseconds since 1970; `None` for a record of a chain that is not the chain's last.
    pub time_ms: Option<u64>,
}

impl ArchivedLog {
    /// Goes on with a copy that ends at `end`, or begins one there. Bytes after it are given up: no receipt covers them.
    ///
    /// # Errors
    /// Errors of the files; [`StorageError::Corrupt`] if the file that `end` is in is shorter.
    pub fn open(directory: &Path, end: Lsn) -> Result<Self> {
        files::make_directory(directory)?;
        for number in Segment::list(directory)? {
            let path = Segment::path(directory, number);
            if number > segment_of(end.0) {
                files::remove(&path)?;
            } else if number == segment_of(end.0) {
                let file = files::open_to_write(&path)?;
                let length = file.metadata().map_err(|error| StorageError::io(&path, error))?.len();
                if length < offset_in_segment(end.0) {
                    let found = format!("{length} bytes long, and the copy of the log ends at {}", end.0);
                    return Err(StorageError::Corrupt { file: path, offset_bytes: length, found });
                }
                file.set_len(offset_in_segment(end.0)).map_err(|error| StorageError::io(&path, error))?;
            }
        }
        Ok(Self { directory: directory.to_owned(), end, current: None, unsynced: Vec::new() })
    }

    /// Position after the last record.
    pub fn end(&self) -> Lsn {
        self.end
    }

    /// Adds whole records that begin at the end. They are durable after [`Self::sync`].
    ///
    /// # Errors
    /// [`StorageError::ForeignRecord`] as of [`crate::Store::append_raw`], nothing is added then; errors of the files.
    pub fn append(&mut self, bytes: &[u8]) -> Result<Appended> {
        let records = verify(bytes, self.end)?;
        let mut appended = Appended::nothing(self.end);
        for record in &records {
            let header = &record.header;
            let number = segment_of(header.lsn.0);
            let path = Segment::path(&self.directory, number);
            let io = |error| StorageError::io(&path, error);
            let file = self.file_of(number)?;
            file.write_all_at(record.bytes, offset_in_segment(header.lsn.0)).map_err(io)?;
            if header.kind == Kind::Gap {
                // A start reads a gap only if the file has all of it.
                file.set_len(offset_in_segment(header.lsn.0) + u64::from(header.length)).map_err(io)?;
            }
            appended.add(record);
        }
        self.end = appended.end;
        Ok(appended)
    }

    /// Makes all records durable.
    ///
    /// # Errors
    /// Errors of the files.
    pub fn sync(&mut self) -> Result<()> {
        for path in std::mem::take(&mut self.unsynced) {
            files::open(&path)?.sync_all().map_err(|error| StorageError::io(&path, error))?;
        }
        files::sync_directory(&self.directory)
    }

    fn file_of(&mut self, number: u64) -> Result<&File> {
        let path = Segment::path(&self.directory, number);
        if self.current.as_ref().is_none_or(|(open, _)| *open != number) {
            let file = files::open_or_create(&path)?;
            Segment::initialise(&file, number).map_err(|error| StorageError::io(&path, error))?;
            self.current = Some((number, file));
        }
        if !self.unsynced.contains(&path) {
            self.unsynced.push(path);
        }
        Ok(&self.current.as_ref().expect("it was opened above").1)
    }
}

/// Whether `bytes`, read from a log at the position `at`, begin with the record that the segment file has there. The
/// `synced` stamp may differ, because each server has its own.
///
/// # Errors
/// Errors of the file.
pub fn is_same_record(segment: &Path, at: Lsn, bytes: &[u8]) -> Result<bool> {
    let mut own = [0; HEADER_BYTES];
    let file = files::open(segment)?;
    file.read_exact_at(&mut own, offset_in_segment(at.0)).map_err(|error| StorageError::io(segment, error))?;
    Ok(begin_with_same_record(&own, at, bytes))
}

/// As [`is_same_record`], with the copy's bytes from the position `at` on.
pub fn begin_with_same_record(own: &[u8], at: Lsn, bytes: &[u8]) -> bool {
    let unstamped = |bytes: &[u8]| Header::decode(bytes, at).map(|header| Header { synced: Lsn(0), ..header });
    let own = unstamped(own);
    own.is_some() && own == unstamped(bytes)
}

/// Position of the last record before `end` in its segment, of which `path` is a copy; `None` if there is none.
///
/// # Errors
/// As [`walk_archived`].
pub fn last_record_before(path: &Path, end: Lsn) -> Result<Option<Lsn>> {
    let first = Lsn(first_record(segment_of(end.0)));
    let mut last = None;
    walk_archived(&|_| path.to_owned(), first..end, &mut |record| {
        last = Some(record.lsn);
        ControlFlow::Continue(())
    })?;
    Ok(last)
}

/// Shows the records in `span`, which begins with a record and ends after one, in the segment files that `path_of` names.
/// Each is verified before it is shown.
///
/// # Errors
/// [`StorageError::Corrupt`] with file and offset for a missing file, and for bytes that are not a valid record.
pub fn walk_archived(
    path_of: &dyn Fn(u64) -> PathBuf,
    span: Range<Lsn>,
    visit: &mut dyn FnMut(&ArchivedRecord) -> ControlFlow<()>,
) -> Result<()> {
    // The span of a directory that never had a record may begin before the first one.
    let (mut position, mut content, mut loaded) = (span.start.max(Lsn(first_record(0))), Vec::new(), None);
    while position < span.end {
        let number = segment_of(position.0);
        let path = path_of(number);
        if loaded != Some(number) {
            content = read_segment(&path, number)?;
            loaded = Some(number);
        }
        let bad = |found: &str| StorageError::Corrupt {
            file: path.clone(),
            offset_bytes: offset_in_segment(position.0),
            found: found.to_owned(),
        };
        let offset = offset_in_segment(position.0) as usize;
        let header = content.get(offset..).and_then(|bytes| Header::decode(bytes, position));
        let header = header.ok_or_else(|| bad("no valid record, in the copy of the log"))?;
        if !matches!(header.kind, Kind::Seal | Kind::Gap) {
            let whole = record_at(&content, offset, position).filter(|(header, record)| header.has_clean_end(record));
            whole.ok_or_else(|| bad("a record that fails its checksums, in the copy of the log"))?;
            let end = Lsn(position.0 + u64::from(header.length));
            let record = ArchivedRecord { lsn: position, end, time_ms: header.is_dated().then_some(header.time_ms) };
            if visit(&record).is_break() {
                return Ok(());
            }
        }
        position = header.behind();
    }
    if position <= span.end.max(Lsn(first_record(0))) {
        Ok(())
    } else {
        Err(past_end(&path_of(segment_of(span.end.0)), span.end))
    }
}

fn past_end(path: &Path, end: Lsn) -> StorageError {
    let found = "no record ends where the copy of the log does".to_owned();
    StorageError::Corrupt { file: path.to_owned(), offset_bytes: offset_in_segment(end.0), found }
}

fn read_segment(path: &Path, number: u64) -> Result<Vec<u8>> {
    let bad = |found: &str| StorageError::Corrupt { file: path.to_owned(), offset_bytes: 0, found: found.to_owned() };
    let content = files::read(path)?.ok_or_else(|| bad("is missing, and the copy of the log needs it"))?;
    if !content.starts_with(&Segment::header(number)) {
        return Err(bad("not the header of this segment"));
    }
    Ok(content)
}

/// Puts the copy's records in `span` after the log of an image, whose files lie in `log`. `span` begins where that log
/// ends and ends after a record. All written files are durable on return.
///
/// # Errors
/// As [`walk_archived`]; errors of the files.
pub fn extend_image(archive: &Path, log: &Path, span: Range<Lsn>) -> Result<()> {
    // All records are verified first, so that none with a bad checksum is put after the image.
    walk_archived(&|number| Segment::path(archive, number), span.clone(), &mut |_| ControlFlow::Continue(()))?;
    if span.is_empty() {
        return Ok(());
    }
    for number in segment_of(span.start.0)..=segment_of(span.end.0 - 1) {
        let content = read_segment(&Segment::path(archive, number), number)?;
        let from = span.start.0.max(first_record(number));
        let end = if number == segment_of(span.end.0) { span.end.0 % SEGMENT_BYTES } else { content.len() as u64 };
        let path = Segment::path(log, number);
        let io = |error| StorageError::io(&path, error);
        let file = files::open_or_create(&path)?;
        if file.metadata().map_err(io)?.len() < SEGMENT_HEADER_BYTES {
            Segment::initialise(&file, number).map_err(io)?;
        }
        let part = offset_in_segment(from) as usize..end as usize;
        let bytes = content.get(part).ok_or_else(|| past_end(&path, span.end))?;
        file.write_all_at(bytes, offset_in_segment(from)).map_err(io)?;
        file.set_len(end).map_err(io)?;
        file.sync_all().map_err(io)?;
    }
    files::sync_directory(log)
}
