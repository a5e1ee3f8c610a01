//! Walks a transaction's own changes and its snapshot together. For equal keys the own change wins.

use super::{LayerKey, Written};
use crate::{Direction, KeyCursor, Location, RecordCursor, RecordId, Result};
use bunko_versions::Walk;
use std::cmp::Ordering;
use std::iter::Peekable;
use std::sync::Arc;

/// Compares the next own key with the snapshot's, in walking order; `None` at the end of both. `Equal` hides the
/// snapshot's entry.
fn turn<K: Ord>(own: Option<&K>, base: Option<&K>, direction: Direction) -> Option<Ordering> {
    match (own, base) {
        (None, None) => None,
        (Some(_), None) => Some(Ordering::Less),
        (None, Some(_)) => Some(Ordering::Greater),
        (Some(own), Some(base)) => Some(match direction {
            Direction::Forward => own.cmp(base),
            Direction::Backward => base.cmp(own),
        }),
    }
}

pub(super) struct OverRecords {
    own: Peekable<Walk<RecordId, Written>>,
    base: Box<dyn RecordCursor>,
    direction: Direction,
    /// The snapshot's next record, whose document is in `held_document`.
    held: Option<(RecordId, Location)>,
    held_document: Vec<u8>,
    is_base_over: bool,
    lent: Option<Arc<[u8]>>,
}

impl OverRecords {
    pub fn new(own: Walk<RecordId, Written>, base: Box<dyn RecordCursor>, direction: Direction) -> Self {
        let own = own.peekable();
        Self { own, base, direction, held: None, held_document: Vec::new(), is_base_over: false, lent: None }
    }

    fn hold_next(&mut self) -> Result<()> {
        if self.held.is_some() || self.is_base_over {
            return Ok(());
        }
        match self.base.next()? {
            None => self.is_base_over = true,
            Some((record, location, document)) => {
                self.held_document.clear();
                self.held_document.extend_from_slice(document);
                self.held = Some((record, location));
            }
        }
        Ok(())
    }
}

impl RecordCursor for OverRecords {
    fn next(&mut self) -> Result<Option<(RecordId, Location, &[u8])>> {
        loop {
            if self.own.peek().is_none() && self.held.is_none() && !self.is_base_over {
                // No own changes are left, so nothing has to be held.
                return self.base.next();
            }
            self.hold_next()?;
            let own = self.own.peek().map(|(record, _)| record);
            let Some(turn) = turn(own, self.held.as_ref().map(|(record, _)| record), self.direction) else {
                return Ok(None);
            };
            if turn == Ordering::Greater {
                let held = self.held.take();
                return Ok(held.map(|(record, location)| (record, location, self.held_document.as_slice())));
            }
            if turn == Ordering::Equal {
                self.held = None;
            }
            if let Some((record, Some(written))) = self.own.next() {
                let document = self.lent.insert(written.document);
                return Ok(Some((record, written.location, document)));
            }
        }
    }
}

pub(super) struct OverKeys {
    own: Peekable<Walk<LayerKey, RecordId>>,
    base: Box<dyn KeyCursor>,
    direction: Direction,
    /// The snapshot's next key.
    held: Option<(LayerKey, RecordId)>,
    is_base_over: bool,
    lent: Option<LayerKey>,
}

impl OverKeys {
    pub fn new(own: Walk<LayerKey, RecordId>, base: Box<dyn KeyCursor>, direction: Direction) -> Self {
        Self { own: own.peekable(), base, direction, held: None, is_base_over: false, lent: None }
    }

    fn hold_next(&mut self) -> Result<()> {
        if self.held.is_some() || self.is_base_over {
            return Ok(());
        }
        match self.base.next()? {
            None => self.is_base_over = true,
            Some((key, record)) => self.held = Some((LayerKey::from(key), record)),
        }
        Ok(())
    }
}

impl KeyCursor for OverKeys {
    fn next(&mut self) -> Result<Option<(&[u8], RecordId)>> {
        loop {
            if self.own.peek().is_none() && self.held.is_none() && !self.is_base_over {
                return self.base.next();
            }
            self.hold_next()?;
            let own = self.own.peek().map(|(key, _)| key);
            let Some(turn) = turn(own, self.held.as_ref().map(|(key, _)| key), self.direction) else { return Ok(None) };
            let next = if turn == Ordering::Greater {
                self.held.take()
            } else {
                if turn == Ordering::Equal {
                    self.held = None;
                }
                self.own.next().and_then(|(key, record)| Some((key, record?)))
            };
            if let Some((key, record)) = next {
                let key = self.lent.insert(key);
                return Ok(Some((key, record)));
            }
        }
    }
}
