//! Reads the records of the log one after the other up to the commit point, for a secondary that applies them.
//!
//! The records of a chain are given together, at the position of the last one. The records of a chain that is still
//! open are remembered by position only.
//!
//! Only headers are verified here. All of a record was verified when it arrived from another member, or by the recovery
//! of a log that already had it.

use super::append::Log;
use super::history::Moment;
use super::record::{HEADER_BYTES, Header, Kind, Link};
use super::recovery::OpenChain;
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
    /// Position and length of the record, or of the last one of a chain.
    last: (Lsn, u32),
    /// Position and length of each earlier record of a chain.
    links: Vec<(Lsn, u32)>,
}

impl Committed {
    pub fn is_chain(&self) -> bool {
        !self.links.is_empty()
    }

    /// Bytes of all records together.
    pub fn length_bytes(&self) -> usize {
        self.parts().map(|(_, length)| length as usize).sum()
    }

    fn parts(&self) -> impl Iterator<Item = (Lsn, u32)> {
        self.links.iter().copied().chain([self.last])
    }
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

    /// Ends reading: returns the position from which a later reader goes on, and the chain that is open there. `unused`
    /// is the record that was read last, if it has not been used; the later reader gets it again.
    pub fn end_at(&mut self, unused: Option<Committed>) -> (Lsn, OpenChain) {
        match unused {
            Some(chain) if chain.is_chain() => (chain.last.0, OpenChain(chain.links)),
            unused => (unused.map_or(self.next, |record| record.last.0), std::mem::take(&mut self.chain)),
        }
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
            let last = (header.lsn, header.length);
            let links = match header.kind {
                Kind::Seal | Kind::Gap => continue,
                Kind::Batch => Vec::new(),
                Kind::Term => {
                    // The primary that began an open chain has stepped down, and no other member completes its chain.
                    self.chain = OpenChain::default();
                    Vec::new()
                }
                Kind::Chained { link: Link::Last, .. } => {
                    let links = std::mem::take(&mut self.chain.0);
                    if links.is_empty() && header.effects_length == 0 && !planted::active(Bug::UnfinishedChainCounts) {
                        return Err(
                            segment.corrupt(header.lsn.0, "the last record of a chain whose others are missing")
                        );
                    }
                    // An earlier version put effects into the last record too.
                    links
                }
                Kind::Chained { .. } if planted::active(Bug::UnfinishedChainCounts) => Vec::new(),
                Kind::Chained { link, .. } => {
                    self.chain.add(&header, link);
                    continue;
                }
            };
            return Ok(Some(Committed { moment: Moment::of(&header), last, links }));
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
        committed.parts().try_for_each(|part| visit(self.effects(log, part)?))
    }

    /// The effects of a record that is not a chain.
    ///
    /// # Errors
    /// As [`CommittedLog::next`].
    pub fn effects_of(&mut self, log: &Log, committed: &Committed) -> Result<Effects<'_>> {
        self.effects(log, committed.last)
    }

    fn effects(&mut self, log: &Log, (lsn, length): (Lsn, u32)) -> Result<Effects<'_>> {
        let number = segment_of(lsn.0);
        let segment = log.shared_segment(number)?;
        if self.window.0 != number {
            self.window = (number, Window::default());
        }
        let record = self.window.1.at(&segment, lsn.0, length as usize, self.next.0)?;
        match Header::decode(record, lsn) {
            Some(header) if header.length == length => Ok(header.effects(record)),
            _ => Err(segment.corrupt(lsn.0, NO_RECORD)),
        }
    }
}

const NO_RECORD: &str = "no valid record, among those that a secondary applies";
