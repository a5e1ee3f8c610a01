//! The log read as a history: its records between two places, in either direction.

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

/// Where a record stands and when it was written. Both only grow along the log; of two records in one second, no other
/// one shares the lower 32 bits of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The record.
    pub lsn: Lsn,
    /// Behind the record.
    pub end: Lsn,
    /// Milliseconds since 1970.
    pub time_ms: u64,
}

impl Moment {
    /// When the effect with that number, from 0, of the record happened: the second, and within it the lower half of a
    /// place in the log, which the record has to itself.
    pub fn timestamp(&self, number: u64) -> Timestamp {
        Timestamp { seconds: (self.time_ms / 1000) as u32, increment: (self.lsn.0 + number) as u32 }
    }

    /// Later than all that happened by the record, earlier than all that did by the next.
    pub fn last_timestamp(&self) -> Timestamp {
        self.timestamp(self.end.0 - self.lsn.0 - 1)
    }

    fn of(header: &Header) -> Self {
        let end = Lsn(header.lsn.0 + u64::from(header.length));
        Self { lsn: header.lsn, end, time_ms: header.time_ms }
    }
}

/// A record that counts: one whose chain was given up is never shown.
pub struct Record<'h> {
    /// Where and when.
    pub moment: Moment,
    /// What it did.
    pub effects: Effects<'h>,
    /// The chain that it is of, if it is.
    pub chained: Option<Chained>,
}

/// What a record of a chain has around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chained {
    /// The record before it, where that is of the chain too, and was not given up with the log before it.
    pub previous: Option<Moment>,
    /// The last one of the chain.
    pub last: Moment,
}

/// A record yet to be read.
struct Listed {
    moment: Moment,
    chained: Option<Chained>,
}

/// Reads records one by one. The segment at hand stays until it is read; those behind it may be given up meanwhile.
pub struct History {
    log: Arc<Log>,
    direction: Direction,
    /// What is yet to be read of other segments.
    rest: Range<Lsn>,
    segment: Option<Arc<Segment>>,
    /// What is yet to be read of the segment at hand, in order of the log.
    records: VecDeque<Listed>,
    /// What was read of the segment at hand.
    window: Window,
    /// Where all ends that is read.
    end: Lsn,
}

impl History {
    /// Reads what stands in `span`, which ends at what has been applied.
    pub(crate) fn new(log: Arc<Log>, span: Range<Lsn>, direction: Direction) -> Self {
        let end = span.end;
        Self { log, direction, rest: span, segment: None, records: VecDeque::new(), window: Window::default(), end }
    }

    /// The next record.
    ///
    /// # Errors
    /// [`StorageError::HistoryLost`] where the log was given up before it was read; [`StorageError::Corrupt`].
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
        let (Some(Listed { moment, chained }), Some(segment)) = (record, &self.segment) else { return Ok(None) };
        // What follows in the file is read next, or has been.
        let until = match self.direction {
            Direction::Forward => self.records.back().map_or(moment.end, |last| last.moment.end),
            Direction::Backward => moment.end,
        };
        let record = self.window.at(segment, moment.lsn.0, (moment.end.0 - moment.lsn.0) as usize, until.0)?;
        let (header, record) = record_at(record, 0, moment.lsn).ok_or_else(|| no_record(segment, moment.lsn.0))?;
        Ok(Some(Record { moment, effects: header.effects(record), chained }))
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
        self.window = Window::default();
        self.log.each_record_through(&mut self.window, &segment, &part, &mut |moment, kind| {
            found.push((moment, kind));
            ControlFlow::Continue(())
        })?;
        self.segment = Some(segment);
        self.list(&found)
    }

    /// Takes up the records of a segment but for those whose chain was given up.
    fn list(&mut self, found: &[(Moment, Kind)]) -> Result<()> {
        // The chain at hand: where its last record is, if it has one.
        let mut open: Option<Option<Moment>> = None;
        let mut previous = None;
        for &(moment, kind) in found {
            let chained = match kind {
                Kind::Batch | Kind::Seal => {
                    open = None;
                    None
                }
                Kind::Chained { link, .. } => {
                    if link == Link::First {
                        (open, previous) = (None, None);
                    } else if open.is_none() {
                        previous = self.log.record_before(moment.lsn)?;
                    }
                    let last = match open {
                        Some(last) => last,
                        None => self.log.end_of_chain((moment, link), self.end)?,
                    };
                    open = (link != Link::Last).then_some(last);
                    let chained = last.map(|last| Chained { previous, last });
                    previous = Some(moment);
                    if chained.is_none() {
                        continue;
                    }
                    chained
                }
            };
            self.records.push_back(Listed { moment, chained });
        }
        Ok(())
    }
}

impl Log {
    /// The first record of `span` that is not too early; its end where all are. What is too early stands before what
    /// is not.
    ///
    /// # Errors
    /// As [`History::next_record`].
    pub(crate) fn first_not_early(&self, span: Range<Lsn>, is_early: &dyn Fn(Moment) -> bool) -> Result<Lsn> {
        let mut from = span.start;
        // What begins early in a segment after the first makes all segments before it too early.
        for number in segment_of(span.start.0) + 1..=segment_of(span.end.0) {
            let start = Lsn(first_record(number));
            if start >= span.end {
                break;
            }
            self.write_through(start)?;
            let segment = self.history_segment(number)?;
            let header = header_at(&mut Window::default(), &segment, start.0, start)?;
            if !is_early(Moment::of(&header)) {
                break;
            }
            from = start;
        }
        let part = from..span.end.min(Lsn(first_record(segment_of(from.0) + 1)));
        let mut found = None;
        self.each_record(&*self.history_segment(segment_of(from.0))?, &part, &mut |moment, kind| {
            if is_early(moment) {
                return ControlFlow::Continue(());
            }
            found = Some((moment.lsn, kind));
            ControlFlow::Break(())
        })?;
        match found {
            // All of a chain happened when its last record did.
            Some((lsn, Kind::Chained { link: Link::Middle | Link::Last, segments_back })) => {
                self.start_of_chain(lsn, segments_back, span.start)
            }
            Some((lsn, _)) => Ok(lsn),
            None => Ok(part.end),
        }
    }

    /// Where the first record of the chain stands that has one at `lsn`; where the history begins if that is later.
    fn start_of_chain(&self, lsn: Lsn, segments_back: u32, start: Lsn) -> Result<Lsn> {
        let number = segment_of(lsn.0) - u64::from(segments_back);
        if segment_of(start.0) > number {
            return Ok(start);
        }
        let part = start.max(Lsn(first_record(number)))..lsn.min(Lsn(first_record(number + 1)));
        let mut first = start;
        self.each_record(&*self.history_segment(number)?, &part, &mut |moment, kind| {
            if matches!(kind, Kind::Chained { link: Link::First, .. }) {
                first = moment.lsn;
            }
            ControlFlow::Continue(())
        })?;
        Ok(first)
    }

    /// The last record of the chain that has that one; `None` where it was given up before `end`.
    fn end_of_chain(&self, (moment, link): (Moment, Link), end: Lsn) -> Result<Option<Moment>> {
        let mut last = (link == Link::Last).then_some(moment);
        let mut from = moment.end;
        let mut is_open = link != Link::Last;
        while is_open && from < end {
            let number = segment_of(from.0);
            let part = from..end.min(Lsn(first_record(number + 1)));
            self.each_record(&*self.history_segment(number)?, &part, &mut |moment, kind| {
                is_open = matches!(kind, Kind::Chained { link: Link::Middle, .. });
                if matches!(kind, Kind::Chained { link: Link::Last, .. }) {
                    last = Some(moment);
                }
                if is_open { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            from = part.end;
        }
        Ok(last)
    }

    /// The record that ends where, or in the segment before that in which, one at `lsn` begins; `None` where it was given up.
    fn record_before(&self, lsn: Lsn) -> Result<Option<Moment>> {
        let own = segment_of(lsn.0);
        let number = if lsn == Lsn(first_record(own)) { own.saturating_sub(1) } else { own };
        let Ok(segment) = self.history_segment(number) else { return Ok(None) };
        let part = Lsn(first_record(number))..lsn.min(Lsn(first_record(number + 1)));
        let mut before = None;
        self.each_record(&segment, &part, &mut |moment, _| {
            before = Some(moment);
            ControlFlow::Continue(())
        })?;
        Ok(before)
    }

    fn history_segment(&self, number: u64) -> Result<Arc<Segment>> {
        self.shared_segment(number).map_err(|_| StorageError::HistoryLost)
    }

    /// Shows where the records are in a part of one segment, which begins with one, as long as `visit` wants more.
    fn each_record(
        &self,
        segment: &Segment,
        part: &Range<Lsn>,
        visit: &mut dyn FnMut(Moment, Kind) -> ControlFlow<()>,
    ) -> Result<()> {
        self.each_record_through(&mut Window::default(), segment, part, visit)
    }

    /// The same, by a window that others read through as well.
    fn each_record_through(
        &self,
        window: &mut Window,
        segment: &Segment,
        part: &Range<Lsn>,
        visit: &mut dyn FnMut(Moment, Kind) -> ControlFlow<()>,
    ) -> Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        self.write_through(Lsn(part.end.0 - 1))?;
        let mut position = part.start.0;
        while position < part.end.0 {
            let header = header_at(window, segment, position, part.end)?;
            if header.kind == Kind::Seal {
                break;
            }
            let moment = Moment::of(&header);
            position = moment.end.0;
            if visit(moment, header.kind).is_break() {
                break;
            }
        }
        Ok(())
    }
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
    use crate::log::append::{LogOptions, SEGMENTS_PER_SECOND_MAX};
    use crate::log::recovery;
    use crate::{Batch, KeyspaceId, RecordId};
    use std::collections::BTreeSet;

    #[test]
    fn timestamps_ascend_where_places_pass_a_multiple_of_4_gib_within_one_second() {
        let directory = tempfile::tempdir().expect("temporary directory");
        // Two segments before that, and a clock that stands still.
        let number = 3 * SEGMENTS_PER_SECOND_MAX - 2;
        drop(recovery::create_first(directory.path(), number).expect("made"));
        let from = Lsn(first_record(number));
        let found = recovery::recover(directory.path(), from, &mut |_, _| Ok(())).expect("there");
        let log = Log::start(found, LogOptions::default(), 5500).expect("starts");
        let (small, mut large) = (Batch::new(), Batch::new());
        large.insert_record(KeyspaceId(1), RecordId(1), vec![7; (SEGMENT_BYTES - 4096) as usize]);
        let mut moments = Vec::new();
        for batch in [&small, &large, &small, &large, &small, &large, &small] {
            log.append(batch, 5500, |moment| moments.push(moment)).expect("placed");
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
