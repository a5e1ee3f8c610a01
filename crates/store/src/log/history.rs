//! The log read as a history: its records between two places, in either direction.

use super::append::Log;
use super::record::{HEADER_BYTES, Header, Kind};
use super::recovery::record_at;
use super::segment::{SEGMENT_BYTES, Segment, first_record, offset_in_segment, segment_of};
use super::walk::Window;
use crate::{Direction, Effects, Lsn, Result, StorageError};
use bunko_bson::Timestamp;
use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::FileExt;
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

/// Reads records one by one. The segment at hand stays until it is read; those behind it may be given up meanwhile.
pub struct History {
    log: Arc<Log>,
    direction: Direction,
    /// What is yet to be read of other segments.
    rest: Range<Lsn>,
    segment: Option<Arc<Segment>>,
    /// What is yet to be read of the segment at hand, in order of the log.
    records: VecDeque<Moment>,
    record: Vec<u8>,
}

impl History {
    /// Reads what stands in `span`, which ends at what has been applied.
    pub(crate) fn new(log: Arc<Log>, span: Range<Lsn>, direction: Direction) -> Self {
        Self { log, direction, rest: span, segment: None, records: VecDeque::new(), record: Vec::new() }
    }

    /// The next record.
    ///
    /// # Errors
    /// [`StorageError::HistoryLost`] where the log was given up before it was read; [`StorageError::Corrupt`].
    pub fn next_record(&mut self) -> Result<Option<(Moment, Effects<'_>)>> {
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
        let (Some(moment), Some(segment)) = (record, &self.segment) else { return Ok(None) };
        self.record.resize((moment.end.0 - moment.lsn.0) as usize, 0);
        let read = segment.file.read_exact_at(&mut self.record, offset_in_segment(moment.lsn.0));
        read.map_err(|error| StorageError::io(&segment.path, error))?;
        let (header, record) =
            record_at(&self.record, 0, moment.lsn).ok_or_else(|| no_record(segment, moment.lsn.0))?;
        Ok(Some((moment, header.effects(record))))
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
        let records = &mut self.records;
        self.log.each_moment(&segment, &part, &mut |moment| {
            records.push_back(moment);
            ControlFlow::Continue(())
        })?;
        self.segment = Some(segment);
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
            let header = header_at(&mut Window::default(), &segment, start.0)?;
            if !is_early(Moment::of(&header)) {
                break;
            }
            from = start;
        }
        let part = from..span.end.min(Lsn(first_record(segment_of(from.0) + 1)));
        let mut found = None;
        self.each_moment(&*self.history_segment(segment_of(from.0))?, &part, &mut |moment| {
            if is_early(moment) {
                return ControlFlow::Continue(());
            }
            found = Some(moment.lsn);
            ControlFlow::Break(())
        })?;
        Ok(found.unwrap_or(part.end))
    }

    fn history_segment(&self, number: u64) -> Result<Arc<Segment>> {
        self.shared_segment(number).map_err(|_| StorageError::HistoryLost)
    }

    /// Shows where the records are in a part of one segment, which begins with one, as long as `visit` wants more.
    fn each_moment(
        &self,
        segment: &Segment,
        part: &Range<Lsn>,
        visit: &mut dyn FnMut(Moment) -> ControlFlow<()>,
    ) -> Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        self.write_through(Lsn(part.end.0 - 1))?;
        let mut window = Window::default();
        let mut position = part.start.0;
        while position < part.end.0 {
            let header = header_at(&mut window, segment, position)?;
            if header.kind == Kind::Seal {
                break;
            }
            let moment = Moment::of(&header);
            position = moment.end.0;
            if visit(moment).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn header_at(window: &mut Window, segment: &Segment, position: u64) -> Result<Header> {
    let header = Header::decode(window.at(segment, position, HEADER_BYTES)?, Lsn(position));
    header.ok_or_else(|| no_record(segment, position))
}

fn no_record(segment: &Segment, position: u64) -> StorageError {
    segment.corrupt(position, "no valid record, within the history")
}
