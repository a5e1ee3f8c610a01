//! Finds the end of the log after a crash, and tells a torn tail from corruption.
//!
//! Each record carries the LSN up to which the log was synced when the record was written. A bad record is the torn
//! tail of a crash unless something proves that it was once durable: a later record with a higher synced LSN, or the
//! manifest's watermark.

use super::preallocate::{self, PLENTY_BYTES};
use super::record::{HEADER_BYTES, Header, Kind, Link};
use super::segment::{SEGMENT_BYTES, Segment, first_record, offset_in_segment, segment_of};
use super::truncation_intent;
use crate::disk_room::DiskRoom;
use crate::planted::{self, Bug};
use crate::{Effect, Effects, Lsn, Result, StorageError, files};
use bunko_replica::Terms;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Figures of opening a data directory.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// Number of records that were replayed into the engines.
    pub replayed_records: u64,
    /// Time that it took to read and replay them; set by [`crate::Store::open`].
    pub elapsed: Duration,
    /// The torn tail after the last good record, if there was one.
    pub cut: Option<Cut>,
}

/// The torn tail of a log: remains of records that were never synced. It is erased.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The segment.
    pub file: PathBuf,
    /// Offset at which the tail began.
    pub offset_bytes: u64,
    /// Length of the tail.
    pub length_bytes: u64,
}

/// The log as found. Nothing in its directory has been changed, because the start may still be refused.
pub struct RecoveredLog {
    pub(super) directory: PathBuf,
    pub(super) segments: Vec<Segment>,
    /// Position from which on records were replayed. All below it was on disk before.
    pub(super) from: Lsn,
    /// Position after the last good record.
    pub(super) end: Lsn,
    /// End of the last record that was replayed; the position from which the log was to be replayed if there was none.
    pub(crate) applied: Lsn,
    /// The position from which on no record has been replayed, and the chain that is open there.
    pub(crate) unapplied: (Lsn, OpenChain),
    /// The position to which the log has to be truncated before it is appended to.
    pub(super) truncated_to: Option<Lsn>,
    /// Time when the last replayed record was written; 0 if there was none.
    pub(super) time_ms: u64,
    /// The log's terms.
    pub(crate) terms: Terms,
    pub(crate) recovery: Recovery,
}

impl RecoveredLog {
    /// Position after the last record.
    pub fn end(&self) -> Lsn {
        self.end
    }

    /// Whether the log has never had a record.
    pub fn is_empty(&self) -> bool {
        self.end == Lsn(first_record(0))
    }

    /// Whether the log has the segment.
    pub fn has_segment(&self, number: u64) -> bool {
        self.segments.iter().any(|segment| segment.number == number)
    }

    /// The error for a segment that should exist but does not.
    pub fn missing_segment(&self, number: u64) -> StorageError {
        Segment::missing(&self.directory, number, first_record(number))
    }

    /// Syncs the replayed records: if the process was killed, they may be in the kernel alone. Later records carry the
    /// synced LSN, as evidence that the replayed ones are on disk.
    pub(super) fn sync(&self) -> Result<()> {
        for segment in self.segments.iter().filter(|segment| segment.number >= segment_of(self.from.0)) {
            segment.file.sync_data().map_err(|error| StorageError::io(&segment.path, error))?;
        }
        Ok(())
    }

    /// Removes the torn tail, half-made files and recycled files of an earlier run.
    pub(super) fn clear_away(&self) -> Result<()> {
        remove_leftovers(&self.directory)?;
        if let Some(at) = self.truncated_to {
            truncation_intent::carry_out(
                &self.directory,
                self.segments.last().filter(|last| last.number == segment_of(at.0)),
                at,
            )?;
        }
        let Some(cut) = &self.recovery.cut else { return Ok(()) };
        let segment = self.segments.iter().find(|segment| segment.path == cut.file);
        segment.map_or(Ok(()), |segment| erase_tail(segment, cut))
    }
}

/// The part of the log that is replayed.
pub(crate) struct Replayed {
    /// Records from here on are replayed.
    pub from: Lsn,
    /// Position of the first record of the chain that was open at `from`, if there was one.
    pub chain: Option<Lsn>,
    /// Records that end above this position are not replayed, unless they begin below `known`.
    pub until: Lsn,
    /// Records that begin below this position are replayed: files of engines may have them.
    pub known: Lsn,
    /// The terms that began below `from`.
    pub terms: Terms,
}

impl From<Lsn> for Replayed {
    /// Everything from a position on.
    fn from(from: Lsn) -> Self {
        Self { from, chain: None, until: Lsn(u64::MAX), known: Lsn(0), terms: Terms::new() }
    }
}

/// Reads the log, hands each record of the part to `replay`, and finds the end.
///
/// # Errors
/// [`StorageError::Corrupt`] with file and offset for a bad record before the end.
pub(crate) fn recover(
    directory: &Path,
    part: impl Into<Replayed>,
    replay: &mut dyn FnMut(Lsn, Effects<'_>) -> Result<()>,
) -> Result<RecoveredLog> {
    let Replayed { from: replay_from, chain: chain_from, until, known, terms } = part.into();
    let mut segments = open_segments(directory)?;
    let truncated_to = truncation_intent::read(directory)?;
    segments.retain(|segment| truncated_to.is_none_or(|end| segment.number <= segment_of(end.0)));
    let from = replay_from.max(Lsn(first_record(0)));
    let read_from = chain_from.unwrap_or(from).min(from);
    let first = segment_of(read_from.0);
    if !segments.iter().any(|segment| segment.number == first) {
        // A manifest is written only after the first segment.
        if replay_from > Lsn(0) || !segments.is_empty() {
            return Err(missing(directory, first, "the segment that the manifest points into is missing"));
        }
        let recovery = Recovery::default();
        let (directory, unapplied) = (directory.to_owned(), (from, OpenChain::default()));
        let (end, applied, time_ms, terms) = (from, from, 0, terms);
        return Ok(RecoveredLog {
            directory,
            segments,
            from,
            end,
            applied,
            unapplied,
            truncated_to,
            time_ms,
            terms,
            recovery,
        });
    }
    let mut content = Content::default();
    let (mut end, mut cut) = (from, None);
    let mut replaying = Replaying::new((from, until, known), terms, &segments, replay);
    for (index, segment) in segments.iter().enumerate().filter(|(_, segment)| segment.number >= first) {
        content.read(segment, truncated_to)?;
        let mut take = |header: &Header, effects: Effects<'_>| replaying.take(segment, header, effects);
        match scan(segment, &content.bytes, read_from, &mut take)? {
            End::Sealed => {
                // A segment is sealed only once the next is durable.
                let next = segment.number + 1;
                if segments.get(index + 1).is_none_or(|following| following.number != next) {
                    return Err(missing(directory, next, "the segment that follows a full one is missing"));
                }
                end = Lsn(first_record(next));
            }
            End::Open(position) => {
                end = position;
                if position < from || truncated_to.is_some_and(|end| position != end) {
                    return Err(segment.corrupt(position.0, "no valid record, before the last checkpoint"));
                }
                refuse_lost_records(segment, position, segment, &content)?;
                let used = content.used;
                for later in &segments[index + 1..] {
                    content.read(later, None)?;
                    refuse_lost_records(segment, position, later, &content)?;
                }
                cut = tail_behind(segment, position, used);
                break;
            }
        }
    }
    let Replaying { chain, terms, applied, first_unapplied, time_ms, replayed_records, .. } = replaying;
    segments.retain(|segment| segment.number <= segment_of(end.0));
    let recovery = Recovery { replayed_records, elapsed: Duration::ZERO, cut };
    let (directory, unapplied) = (directory.to_owned(), (first_unapplied.unwrap_or(end), chain));
    Ok(RecoveredLog { directory, segments, from, end, applied, unapplied, truncated_to, time_ms, terms, recovery })
}

/// Progress of a replay.
struct Replaying<'r> {
    from: Lsn,
    until: Lsn,
    known: Lsn,
    /// End of the last replayed record.
    applied: Lsn,
    /// Position of the first record that is not replayed.
    first_unapplied: Option<Lsn>,
    /// Time of the last record, replayed or not.
    time_ms: u64,
    replayed_records: u64,
    chain: OpenChain,
    /// The log's terms so far.
    terms: Terms,
    segments: &'r [Segment],
    replay: &'r mut dyn FnMut(Lsn, Effects<'_>) -> Result<()>,
}

impl<'r> Replaying<'r> {
    fn new(
        (from, until, known): (Lsn, Lsn, Lsn),
        terms: Terms,
        segments: &'r [Segment],
        replay: &'r mut dyn FnMut(Lsn, Effects<'_>) -> Result<()>,
    ) -> Self {
        Self {
            from,
            until: until.max(from),
            known,
            applied: from,
            first_unapplied: None,
            time_ms: 0,
            replayed_records: 0,
            chain: OpenChain::default(),
            terms,
            segments,
            replay,
        }
    }

    /// Takes the next record, which stands in `segment`, and replays it if it counts.
    fn take(&mut self, segment: &Segment, header: &Header, effects: Effects<'_>) -> Result<()> {
        if header.kind == Kind::Term && header.lsn >= self.from {
            let term = Header::term(&effects).filter(|term| *term > self.terms.last());
            let corrupt = || segment.corrupt(header.lsn.0, "a record that begins no term above the last one");
            self.terms.begin(term.ok_or_else(corrupt)?, header.lsn.0);
        }
        if header.is_dated() {
            self.time_ms = self.time_ms.max(header.time_ms);
        }
        let is_above = header.behind() > self.until && header.lsn >= self.known;
        if self.first_unapplied.is_some() || is_above {
            self.first_unapplied.get_or_insert(header.lsn);
            return Ok(());
        }
        let link = match header.kind {
            Kind::Chained { link, .. } => Some(link),
            Kind::Batch | Kind::Term | Kind::Seal | Kind::Gap => None,
        };
        let is_open = |link: &Link| *link != Link::Last && !planted::active(Bug::UnfinishedChainCounts);
        if let Some(link) = link.filter(is_open) {
            self.chain.add(header, link);
            return Ok(());
        }
        // Below `from` only the links of the open chain are wanted.
        if header.lsn < self.from {
            if link.is_some() || header.kind == Kind::Term {
                self.chain.0.clear();
            }
            return Ok(());
        }
        self.replayed_records += 1;
        self.applied = header.behind();
        if header.kind == Kind::Term {
            // The primary that began an open chain has stepped down, and no other member completes its chain.
            self.chain.0.clear();
            return Ok(());
        }
        if link.is_some() {
            self.replayed_records += self.chain.0.len() as u64;
            // All records of a chain take effect at the position of its last record.
            self.chain.replay(header.lsn, self.segments, self.replay)?;
        }
        (self.replay)(header.lsn, effects)
    }
}

fn open_segments(directory: &Path) -> Result<Vec<Segment>> {
    let numbers = if directory.exists() { Segment::list(directory)? } else { Vec::new() };
    numbers.into_iter().map(|number| Segment::open(directory, number)).collect()
}

fn missing(directory: &Path, segment: u64, found: &str) -> StorageError {
    StorageError::Corrupt { file: Segment::path(directory, segment), offset_bytes: 0, found: found.into() }
}

/// Positions and lengths of the records of a chain whose last record has not been read yet.
#[derive(Default)]
pub(crate) struct OpenChain(pub(super) Vec<(Lsn, u32)>);

impl OpenChain {
    pub(super) fn add(&mut self, header: &Header, link: Link) {
        if link == Link::First {
            // An earlier chain that is unfinished here is never finished.
            self.0.clear();
        }
        self.0.push((header.lsn, header.length));
    }

    /// Position of the first record; `None` if no chain is open.
    pub fn first(&self) -> Option<Lsn> {
        self.0.first().map(|(lsn, _)| *lsn)
    }

    /// Replays the chain's records at position `at`. It reads them again, because all of them may be more than memory
    /// should hold at once.
    fn replay(
        &mut self,
        at: Lsn,
        segments: &[Segment],
        replay: &mut dyn FnMut(Lsn, Effects<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut record = Vec::new();
        for (lsn, length) in self.0.drain(..) {
            let segment = segments.iter().find(|segment| segment.number == segment_of(lsn.0));
            let segment = segment.expect("it was read a moment ago");
            record.resize(length as usize, 0);
            let read = segment.file.read_exact_at(&mut record, offset_in_segment(lsn.0));
            read.map_err(|error| StorageError::io(&segment.path, error))?;
            let found = record_at(&record, 0, lsn);
            let (header, record) = found.ok_or_else(|| segment.corrupt(lsn.0, "no valid record, within a chain"))?;
            replay(at, header.effects(record))?;
        }
        Ok(())
    }
}

/// How the records of a segment end: with a seal, or at a position where the log goes on.
enum End {
    Sealed,
    Open(Lsn),
}

/// Walks the records of one segment from its first, and replays those at or above `from`.
fn scan(
    segment: &Segment,
    content: &[u8],
    from: Lsn,
    replay: &mut dyn FnMut(&Header, Effects<'_>) -> Result<()>,
) -> Result<End> {
    let mut position = first_record(segment.number);
    loop {
        let offset = offset_in_segment(position) as usize;
        let Some((header, record)) = record_at(content, offset, Lsn(position)) else {
            return Ok(End::Open(Lsn(position)));
        };
        if header.kind == Kind::Seal {
            return Ok(End::Sealed);
        }
        if position >= from.0 && header.kind != Kind::Gap {
            replay(&header, header.effects(record))?;
        }
        position += u64::from(header.length);
        if offset_in_segment(position) as usize + HEADER_BYTES > content.len() || segment_of(position) != segment.number
        {
            return Ok(End::Open(Lsn(position)));
        }
    }
}

/// A segment's bytes. After the first `used` bytes there are only zeros, left by preallocation; the last record may end
/// in zeros too.
#[derive(Default)]
struct Content {
    bytes: Vec<u8>,
    used: usize,
}

impl Content {
    /// Reads a segment, up to the position to which the log is truncated.
    fn read(&mut self, segment: &Segment, truncated_to: Option<Lsn>) -> Result<()> {
        use std::io::{Read, Seek, SeekFrom};
        let io = |error| StorageError::io(&segment.path, error);
        let mut file: &File = &segment.file;
        file.seek(SeekFrom::Start(0)).map_err(io)?;
        self.bytes.clear();
        self.bytes.reserve(SEGMENT_BYTES as usize);
        file.take(SEGMENT_BYTES).read_to_end(&mut self.bytes).map_err(io)?;
        if let Some(end) = truncated_to.filter(|end| segment_of(end.0) == segment.number) {
            self.bytes.truncate(offset_in_segment(end.0) as usize);
        }
        self.used = self.bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        Ok(())
    }
}

/// The record at `offset`, if it is complete and passes its checksums.
pub(super) fn record_at(content: &[u8], offset: usize, lsn: Lsn) -> Option<(Header, &[u8])> {
    let header = Header::decode(content.get(offset..)?, lsn)?;
    let record = content.get(offset..offset + header.length as usize)?;
    if matches!(header.kind, Kind::Seal | Kind::Gap) {
        return Some((header, record));
    }
    let effects = record.get(HEADER_BYTES..HEADER_BYTES + header.effects_length as usize)?;
    if bunko_checksum::crc32c(effects) != header.effects_checksum {
        return None;
    }
    let mut walk = header.effects(record);
    for effect in walk.by_ref() {
        if let Effect::PutRecord { location, document, .. } = effect
            && bunko_checksum::crc32c(document) != location.checksum
        {
            return None;
        }
    }
    (!walk.is_cut()).then_some((header, record))
}

/// Fails if a record after `bad` proves that the record at `bad` was once on disk.
fn refuse_lost_records(bad_segment: &Segment, bad: Lsn, segment: &Segment, content: &Content) -> Result<()> {
    let start = if segment.number == bad_segment.number {
        offset_in_segment(bad.0) as usize + 1
    } else {
        offset_in_segment(first_record(segment.number)) as usize
    };
    let base = segment.number * SEGMENT_BYTES;
    for offset in start..content.used {
        // The header holds its own position: one comparison rules out nearly every offset.
        let position = base + offset as u64;
        if content.bytes.get(offset + 8..offset + 16) != Some(position.to_le_bytes().as_slice()) {
            continue;
        }
        if let Some(header) = Header::decode(&content.bytes[offset..], Lsn(position))
            && header.synced > bad
        {
            return Err(bad_segment.corrupt(
                bad.0,
                format!("no valid record, though the record at log position {position} proves that one was durable"),
            ));
        }
    }
    Ok(())
}

/// The torn tail, from the end of the records up to `used`; `None` if it is empty.
fn tail_behind(segment: &Segment, end: Lsn, used: usize) -> Option<Cut> {
    let offset_bytes = offset_in_segment(end.0);
    let length_bytes = (used as u64).checked_sub(offset_bytes).filter(|length| *length > 0)?;
    Some(Cut { file: segment.path.clone(), offset_bytes, length_bytes })
}

/// Zeros the torn tail, which could be mistaken for records once the log grows up to it.
fn erase_tail(segment: &Segment, cut: &Cut) -> Result<()> {
    let io = |error| StorageError::io(&segment.path, error);
    segment.file.write_all_at(&vec![0; cut.length_bytes as usize], cut.offset_bytes).map_err(io)?;
    segment.file.sync_data().map_err(io)
}

/// Removes half-made and recycled files of an earlier run.
fn remove_leftovers(directory: &Path) -> Result<()> {
    let is_leftover =
        |path: &PathBuf| path.extension().is_some_and(|extension| extension == "tmp" || extension == "recycled");
    files::entries(directory)?.iter().filter(|path| is_leftover(path)).try_for_each(|path| files::remove(path))
}

/// Makes the segment that an empty log begins with.
pub(super) fn create_first(directory: &Path, number: u64, disk: &DiskRoom) -> Result<Segment> {
    let length_bytes = if disk.spares(PLENTY_BYTES) { SEGMENT_BYTES } else { disk.log_step_bytes() };
    preallocate::make(directory, number, None, length_bytes)
}
