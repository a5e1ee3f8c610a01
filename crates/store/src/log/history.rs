//! Reads the log as a history: its records between two positions, in either direction.

use super::append::Log;
use super::record::{HEADER_BYTES, Header, Kind, Link};
use super::recovery::record_at;
use super::segment::{SEGMENT_BYTES, Segment, first_record, segment_of};
use super::walk::Window;
use crate::{Direction, Effects, Lsn, Result, StorageError};
use bunko_bson::Timestamp;
use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Position and time of a record. Both only grow along the log. No two records in one second share the lower 32 bits of
/// their position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The record's position.
    pub lsn: Lsn,
    /// End of the record.
    pub end: Lsn,
    /// Milliseconds since 1970.
    pub time_ms: u64,
}

impl Moment {
    /// Timestamp of the record's effect with that number, from 0: the second, and as increment the lower half of a log
    /// position that belongs to this record alone.
    pub fn timestamp(&self, number: u64) -> Timestamp {
        Timestamp { seconds: (self.time_ms / 1000) as u32, increment: (self.lsn.0 + number) as u32 }
    }

    /// Timestamp after all effects of the record, and before all effects of the next.
    pub fn last_timestamp(&self) -> Timestamp {
        self.timestamp(self.end.0 - self.lsn.0 - 1)
    }

    pub(super) fn of(header: &Header) -> Self {
        let end = Lsn(header.lsn.0 + u64::from(header.length));
        Self { lsn: header.lsn, end, time_ms: header.time_ms }
    }
}

/// A record of the history; records of an abandoned chain are never shown. The records of a chain are shown at the
/// position of its last record; the last record itself is not shown.
pub struct Record<'h> {
    /// Position and time. Each record of a chain has its own part of the last record's position range.
    pub moment: Moment,
    /// The record's effects.
    pub effects: Effects<'h>,
    /// The chain that the record belongs to, if any.
    pub chained: Option<Chained>,
    /// The term that it was written in; `None` on a standalone server.
    pub term: Option<u64>,
}

/// Neighbours of a record in its chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chained {
    /// The previous record of the chain, if there is one and it has not been given up.
    pub previous: Option<Moment>,
    /// The last record, whose position and time are those of the whole chain.
    pub last: Moment,
    /// Position and time under which the chain's last operations are shown: the chain's time.
    pub end: Moment,
}

/// A record that is yet to be read.
struct Listed {
    /// The record's segment and position range.
    segment: Arc<Segment>,
    at: Range<u64>,
    /// Position and time as shown.
    moment: Moment,
    chained: Option<Chained>,
}

/// Reads records one by one. The current segment stays until it has been read; later ones may be given up meanwhile.
pub struct History {
    log: Arc<Log>,
    direction: Direction,
    /// The part of the log, beyond the current segment, that is yet to be read.
    rest: Range<Lsn>,
    /// Records of the current segment that are yet to be read, in the order in which they happened.
    records: VecDeque<Listed>,
    /// A segment's number, and the part of it that has been read into memory.
    window: (u64, Window),
}

impl History {
    /// Reads the records in `span`, which must end where everything has been applied.
    pub(crate) fn new(log: Arc<Log>, span: Range<Lsn>, direction: Direction) -> Self {
        Self { log, direction, rest: span, records: VecDeque::new(), window: (0, Window::default()) }
    }

    /// The next record.
    ///
    /// # Errors
    /// [`StorageError::HistoryLost`] if the log was given up before it was read; [`StorageError::Corrupt`].
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        while self.records.is_empty() {
            if self.rest.is_empty() {
                return Ok(None);
            }
            self.next_segment()?;
        }
        let record = match self.direction {
            Direction::Forward => self.records.pop_front(),
            Direction::Backward => self.records.pop_back(),
        };
        let Some(Listed { segment, at, moment, chained }) = record else { return Ok(None) };
        // Forward, the window reads ahead to the segment's last listed record, because the records up to it are read
        // next.
        let behind = self.records.back().filter(|last| {
            self.direction == Direction::Forward && last.segment.number == segment.number && last.at.end > at.end
        });
        let until = behind.map_or(at.end, |last| last.at.end);
        let window = window_of(&mut self.window, segment.number);
        let record = window.at(&segment, at.start, (at.end - at.start) as usize, until)?;
        let (header, record) = record_at(record, 0, Lsn(at.start)).ok_or_else(|| no_record(&segment, at.start))?;
        let term = self.log.terms().at(moment.lsn);
        Ok(Some(Record { moment, effects: header.effects(record), chained, term }))
    }

    fn next_segment(&mut self) -> Result<()> {
        let (number, part) = match self.direction {
            Direction::Forward => {
                let number = segment_of(self.rest.start.0);
                let part = self.rest.start..self.rest.end.min(Lsn(first_record(number + 1)));
                self.rest.start = part.end;
                (number, part)
            }
            Direction::Backward => {
                let number = segment_of(self.rest.end.0 - 1);
                let part = self.rest.start.max(Lsn(first_record(number)))..self.rest.end;
                self.rest.end = self.rest.start.max(Lsn(number * SEGMENT_BYTES));
                (number, part)
            }
        };
        let segment = self.log.history_segment(number)?;
        let mut found = Vec::new();
        let window = window_of(&mut self.window, number);
        self.log.each_record_through(window, &segment, &part, &mut |header| {
            found.push(*header);
            ControlFlow::Continue(())
        })?;
        for header in found {
            match header.kind {
                Kind::Chained { link: Link::Last, segments_back } => self.list_chain(&header, segments_back)?,
                // The records of a chain are listed with its last one. The record of a term has no effects to show.
                Kind::Chained { .. } | Kind::Term => {}
                Kind::Batch | Kind::Seal | Kind::Gap => {
                    let (segment, moment) = (Arc::clone(&segment), Moment::of(&header));
                    self.records.push_back(Listed { segment, at: place_of(&header), moment, chained: None });
                }
            }
        }
        Ok(())
    }

    /// Lists the records of the chain that ends with `ended_by`, as far as they have not been given up.
    fn list_chain(&mut self, ended_by: &Header, segments_back: u32) -> Result<()> {
        let last = Moment::of(ended_by);
        let own = segment_of(last.lsn.0);
        let mut links: Vec<(Arc<Segment>, Header)> = Vec::new();
        for number in own - u64::from(segments_back)..=own {
            let Ok(segment) = self.log.history_segment(number) else {
                links.clear();
                continue;
            };
            let part = Lsn(first_record(number))..last.lsn.min(Lsn(first_record(number + 1)));
            self.log.each_record(&segment, &part, &mut |header| {
                match header.kind {
                    Kind::Chained { link: Link::First, .. } => links = vec![(Arc::clone(&segment), *header)],
                    Kind::Chained { link: Link::Middle, .. } => links.push((Arc::clone(&segment), *header)),
                    // The last record of an earlier chain.
                    Kind::Chained { link: Link::Last, .. } => links.clear(),
                    Kind::Batch | Kind::Term | Kind::Seal | Kind::Gap => {}
                }
                ControlFlow::Continue(())
            })?;
        }
        // An earlier version wrote a chain's records side by side, and put effects into its last record.
        let is_in_a_row = ended_by.effects_length > 0;
        if is_in_a_row {
            links.push((self.log.history_segment(own)?, *ended_by));
        }
        let shown = |header: &Header| {
            let lsn = if is_in_a_row { header.lsn } else { Lsn(last.lsn.0 + header.time_ms) };
            Moment { lsn, ..last }
        };
        let Some((_, header)) = links.last() else { return Ok(()) };
        let (end, mut previous) = (shown(header), None);
        for (segment, header) in links {
            let moment = shown(&header);
            let chained = Chained { previous, last, end };
            previous = Some(moment);
            self.records.push_back(Listed { segment, at: place_of(&header), moment, chained: Some(chained) });
        }
        Ok(())
    }
}

fn window_of((of, window): &mut (u64, Window), number: u64) -> &mut Window {
    if *of != number {
        (*of, *window) = (number, Window::default());
    }
    window
}

fn place_of(header: &Header) -> Range<u64> {
    header.lsn.0..header.lsn.0 + u64::from(header.length)
}

impl Log {
    /// Position of the first record of `span` that is not early; the end of `span` if all are early. Early records
    /// stand before all others.
    ///
    /// # Errors
    /// As [`History::next_record`].
    pub(crate) fn first_not_early(&self, span: Range<Lsn>, is_early: &dyn Fn(Moment) -> bool) -> Result<Lsn> {
        let mut from = span.start;
        // If a segment begins with an early record, all segments before it are early.
        for number in segment_of(span.start.0) + 1..=segment_of(span.end.0) {
            let start = Lsn(first_record(number));
            if start >= span.end {
                break;
            }
            let part = start..span.end.min(Lsn(first_record(number + 1)));
            match self.first_moment(number, &part)? {
                Some(moment) if !is_early(moment) => break,
                Some(_) => from = start,
                // The segment has only records of a chain that ends later.
                None => {}
            }
        }
        let mut part = from..span.end.min(Lsn(first_record(segment_of(from.0) + 1)));
        while !part.is_empty() {
            let mut found = None;
            self.each_record(&*self.history_segment(segment_of(part.start.0))?, &part, &mut |header| {
                if is_link(header) || is_early(Moment::of(header)) {
                    return ControlFlow::Continue(());
                }
                found = Some(header.lsn);
                ControlFlow::Break(())
            })?;
            if let Some(found) = found {
                return Ok(found);
            }
            part = part.end..span.end.min(Lsn(first_record(segment_of(part.end.0) + 1)));
        }
        Ok(span.end)
    }

    /// Position and time of the first record in a part of a segment; `None` if the part has only records of a chain
    /// that ends later, where they are shown.
    fn first_moment(&self, number: u64, part: &Range<Lsn>) -> Result<Option<Moment>> {
        let mut first = None;
        self.each_record(&*self.history_segment(number)?, part, &mut |header| {
            if is_link(header) {
                return ControlFlow::Continue(());
            }
            first = Some(Moment::of(header));
            ControlFlow::Break(())
        })?;
        Ok(first)
    }

    fn history_segment(&self, number: u64) -> Result<Arc<Segment>> {
        self.shared_segment(number).map_err(|_| StorageError::HistoryLost)
    }

    /// Shows the headers in a part of one segment, which begins with a record, until `visit` breaks off.
    fn each_record(
        &self,
        segment: &Segment,
        part: &Range<Lsn>,
        visit: &mut dyn FnMut(&Header) -> ControlFlow<()>,
    ) -> Result<()> {
        self.each_record_through(&mut Window::default(), segment, part, visit)
    }

    /// As [`Log::each_record`], through a window that other reads share.
    fn each_record_through(
        &self,
        window: &mut Window,
        segment: &Segment,
        part: &Range<Lsn>,
        visit: &mut dyn FnMut(&Header) -> ControlFlow<()>,
    ) -> Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        self.write_through(Lsn(part.end.0 - 1))?;
        let mut position = part.start.0;
        while position < part.end.0 {
            let header = header_at(window, segment, position, part.end)?;
            position = place_of(&header).end;
            match header.kind {
                Kind::Seal => break,
                Kind::Gap => {}
                Kind::Batch | Kind::Term | Kind::Chained { .. } if visit(&header).is_break() => break,
                Kind::Batch | Kind::Term | Kind::Chained { .. } => {}
            }
        }
        Ok(())
    }
}

/// Whether the record belongs to a chain that ends later.
fn is_link(header: &Header) -> bool {
    matches!(header.kind, Kind::Chained { link: Link::First | Link::Middle, .. })
}

fn header_at(window: &mut Window, segment: &Segment, position: u64, until: Lsn) -> Result<Header> {
    let header = Header::decode(window.at(segment, position, HEADER_BYTES, until.0)?, Lsn(position));
    header.ok_or_else(|| no_record(segment, position))
}

fn no_record(segment: &Segment, position: u64) -> StorageError {
    segment.corrupt(position, "no valid record, within the history")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk_room::{DiskRoom, Draw};
    use crate::log::append::{LogOptions, SEGMENTS_PER_SECOND_MAX};
    use crate::log::recovery;
    use crate::{Batch, KeyspaceId, RecordId};
    use bunko_host::Clock;
    use std::collections::BTreeSet;

    #[test]
    fn timestamps_ascend_where_places_pass_a_multiple_of_4_gib_within_one_second() {
        let directory = tempfile::tempdir().expect("temporary directory");
        // Two segments before that multiple, with a clock that stands still.
        let number = 3 * SEGMENTS_PER_SECOND_MAX - 2;
        drop(recovery::create_first(directory.path(), number, &DiskRoom::unlimited()).expect("made"));
        let from = Lsn(first_record(number));
        let found = recovery::recover(directory.path(), from, &mut |_, _| Ok(())).expect("there");
        let log =
            Log::start(found, LogOptions::default(), Clock::machine(), 5500, &DiskRoom::unlimited()).expect("starts");
        let (small, mut large) = (Batch::new(), Batch::new());
        large.insert_record(KeyspaceId(1), RecordId(1), vec![7; (SEGMENT_BYTES - 4096) as usize]);
        let mut moments = Vec::new();
        for batch in [&small, &large, &small, &large, &small, &large, &small] {
            log.append(batch, Draw::Free, 5500, |moment| moments.push(moment)).expect("placed");
        }
        for pair in moments.windows(2) {
            let [earlier, later] = [pair[0], pair[1]];
            assert!(earlier.timestamp(0) < earlier.last_timestamp(), "{earlier:?} is of one second");
            assert!(earlier.last_timestamp() < later.timestamp(0), "{earlier:?} comes before {later:?}");
        }
        let seconds: BTreeSet<_> = moments.iter().map(|moment| moment.timestamp(0).seconds).collect();
        assert_eq!(seconds.into_iter().collect::<Vec<_>>(), [5, 6], "they passed it once");
        log.close().expect("closes");
    }
}
