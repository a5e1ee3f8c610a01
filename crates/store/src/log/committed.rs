//! Reads the records of the log one after the other up to the commit point, for a secondary that applies them.
//!
//! The records of a chain are given together, at the position of the last one. The records of a chain that is still
//! open are remembered by position only.

use super::append::Log;
use super::history::Moment;
use super::record::{HEADER_BYTES, Header, Kind, Link};
use super::recovery::{OpenChain, record_at};
use super::segment::segment_of;
use super::walk::Window;
use crate::planted::{self, Bug};
use crate::{Effects, Lsn, Result};

/// The place up to which the log has been read.
pub(crate) struct CommittedLog {
    /// Position of the next record to be read.
    next: Lsn,
    pub chain: OpenChain,
    /// The number of the segment that was read last, and a part of it.
    window: (u64, Window),
}

/// A record, or all records of a chain, to be applied as one.
pub(crate) struct Committed {
    /// Position and time at which they count.
    pub moment: Moment,
    /// Position and length of each record.
    pub parts: Vec<(Lsn, u32)>,
}

impl CommittedLog {
    /// Reads from `next` on, the position of a record or the end of the log.
    pub fn new((next, chain): (Lsn, OpenChain)) -> Self {
        Self { next, chain, window: (0, Window::default()) }
    }

    /// The position up to which the log has been read.
    pub fn position(&self) -> Lsn {
        self.next
    }

    /// Forgets the bytes that were read ahead, because the log has been truncated.
    pub fn forget_window(&mut self) {
        self.window = (0, Window::default());
    }

    /// The next record or chain that ends at or before `up_to`; `None` if there is none.
    ///
    /// # Errors
    /// [`crate::StorageError::Corrupt`] if there is no valid record where one should be; errors of the files.
    pub fn next(&mut self, log: &Log, up_to: Lsn) -> Result<Option<Committed>> {
        while self.next < up_to {
            let number = segment_of(self.next.0);
            let segment = log.shared_segment(number)?;
            if self.window.0 != number {
                self.window = (number, Window::default());
            }
            let header = self.window.1.at(&segment, self.next.0, HEADER_BYTES, up_to.0)?;
            let header = Header::decode(header, self.next);
            let header = header.ok_or_else(|| segment.corrupt(self.next.0, NO_RECORD))?;
            let behind = header.behind();
            let is_above = matches!(header.kind, Kind::Batch | Kind::Term | Kind::Chained { .. }) && behind > up_to;
            if is_above && !planted::active(Bug::AppliedBeyondCommit) {
                return Ok(None);
            }
            self.next = behind;
            let own = (header.lsn, header.length);
            let parts = match header.kind {
                Kind::Seal | Kind::Gap => continue,
                Kind::Batch => vec![own],
                Kind::Term => {
                    // The primary that began an open chain has ended, and no other member ends it.
                    self.chain = OpenChain::default();
                    vec![own]
                }
                Kind::Chained { link: Link::Last, .. } => {
                    let mut parts = std::mem::take(&mut self.chain.0);
                    if parts.is_empty() && header.effects_length == 0 && !planted::active(Bug::UnfinishedChainCounts) {
                        return Err(
                            segment.corrupt(header.lsn.0, "the last record of a chain whose others are missing")
                        );
                    }
                    // An earlier version put effects into the last record too.
                    parts.push(own);
                    parts
                }
                Kind::Chained { .. } if planted::active(Bug::UnfinishedChainCounts) => vec![own],
                Kind::Chained { link, .. } => {
                    self.chain.add(&header, link);
                    continue;
                }
            };
            return Ok(Some(Committed { moment: Moment::of(&header), parts }));
        }
        Ok(None)
    }

    /// Calls `visit` with the effects of each part.
    ///
    /// # Errors
    /// As [`CommittedLog::next`] and as `visit`.
    pub fn each_part(
        &mut self,
        log: &Log,
        committed: &Committed,
        visit: &mut dyn FnMut(Effects<'_>) -> Result<()>,
    ) -> Result<()> {
        for (lsn, length) in &committed.parts {
            let number = segment_of(lsn.0);
            let segment = log.shared_segment(number)?;
            if self.window.0 != number {
                self.window = (number, Window::default());
            }
            let bytes = self.window.1.at(&segment, lsn.0, *length as usize, self.next.0)?;
            let (header, record) = record_at(bytes, 0, *lsn).ok_or_else(|| segment.corrupt(lsn.0, NO_RECORD))?;
            visit(header.effects(record))?;
        }
        Ok(())
    }
}

const NO_RECORD: &str = "no valid record, among those that a secondary applies";
