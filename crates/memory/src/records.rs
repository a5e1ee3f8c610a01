//! A record store: pages of 64 consecutive record ids.
//!
//! Ids are assigned in ascending order without gaps, so a page holds its records side by side, and the tree of pages is
//! small enough to stay in the processor's cache. A page takes no room for deleted ids: with fixed slots, deleting nine
//! records of ten at random would free the documents but none of the slots.

use crate::cost::{self, Costs};
use crate::document::Document;
use crate::garbage::Begins;
use crate::size::Size;
use bunko_store::{Direction, RecordId, RecordRange};
use bunko_versions::{Before, Forgotten, Put, Rest, Superseded, Version, Views};
use parking_lot::RwLock;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

const PAGE_RECORDS: u64 = 64;
/// Number of records that a walk visits under one lock: few at first, because many walks end with their first record.
const WALK_RECORDS_MIN: usize = 8;
const WALK_RECORDS_MAX: usize = 64;

/// One record store.
#[derive(Default)]
pub(crate) struct Records {
    pages: RwLock<BTreeMap<u64, Page>>,
    pub size: Size,
}

/// Records by the low bits of their ids.
#[derive(Default)]
struct Page {
    /// One bit for each existing id.
    present: u64,
    /// In order of ids, without gaps.
    records: Vec<Version<Document>>,
}

impl Page {
    /// Index of a record, or `Err` with the index at which it would be inserted.
    fn place(&self, record: u64) -> Result<usize, usize> {
        let bit = 1 << (record % PAGE_RECORDS);
        let place = (self.present & (bit - 1)).count_ones() as usize;
        if self.present & bit == 0 { Err(place) } else { Ok(place) }
    }

    fn insert(&mut self, record: u64, place: usize, version: Version<Document>) {
        self.present |= 1 << (record % PAGE_RECORDS);
        self.records.insert(place, version);
    }

    fn remove(&mut self, record: u64, place: usize) -> Version<Document> {
        self.present &= !(1 << (record % PAGE_RECORDS));
        let removed = self.records.remove(place);
        if self.records.len() * 2 <= self.records.capacity() {
            self.records.shrink_to_fit();
        }
        removed
    }

    /// Ids within the page, and their versions.
    fn entries(&self) -> impl DoubleEndedIterator<Item = (u64, &Version<Document>)> {
        let mut bits = self.present;
        let ids: [u8; PAGE_RECORDS as usize] = std::array::from_fn(|_| {
            let id = bits.trailing_zeros() as u8;
            bits &= bits.wrapping_sub(1);
            id
        });
        self.records.iter().enumerate().map(move |(place, version)| (u64::from(ids[place]), version))
    }
}

impl Records {
    /// Puts or deletes a document. Returns the growth of the record store, and whether the record begins to wait for
    /// versions to be forgotten.
    pub fn put(&self, record: RecordId, lsn: u64, document: Option<Document>, views: Views<'_>) -> (i64, Begins) {
        let document_bytes = document.as_ref().map_or(0, cost::document_bytes);
        let deletes = document.is_none();
        let version = Version::new(lsn, document);
        let mut replaced_bytes = 0;
        let put = {
            let mut pages = self.pages.write();
            let page = pages.entry(record.0 / PAGE_RECORDS).or_default();
            match page.place(record.0) {
                Err(place) => {
                    page.insert(record.0, place, version);
                    Put { before: Before::Nothing, forgotten: None }
                }
                Ok(place) => {
                    let newest = &mut page.records[place];
                    replaced_bytes = newest.value().map_or(0, cost::document_bytes);
                    let before = if newest.is_waiting() { Before::Waiting } else { Before::Value };
                    match newest.supersede(version, views) {
                        Superseded::Kept => Put { before, forgotten: None },
                        Superseded::Forgot(forgotten) => Put { before, forgotten: Some(forgotten) },
                    }
                }
            }
        };
        let added = Costs::of_record().added(&put, cost::document_bytes);
        let growth = document_bytes + added;
        self.size.add(growth, if put.before == Before::Nothing { 0 } else { added + replaced_bytes });
        (growth, Begins::from(&put, deletes))
    }

    pub fn get(&self, record: RecordId, before: u64) -> Option<Document> {
        let pages = self.pages.read();
        let page = pages.get(&(record.0 / PAGE_RECORDS))?;
        page.records[page.place(record.0).ok()?].seen(before)?.value().cloned()
    }

    /// Forgets a record's versions that no view from `oldest_view` on can see. Returns the growth of the record store
    /// (never positive), and the LSN that the next versions to forget wait for, `None` if none are left.
    pub fn forget(&self, record: RecordId, oldest_view: u64) -> (i64, Option<u64>) {
        let Some((forgotten, rest)) = self.take_forgotten(record.0, oldest_view) else { return (0, None) };
        self.size.forgot(&Costs::of_record(), forgotten.as_ref(), rest, cost::document_bytes)
    }

    fn take_forgotten(&self, record: u64, oldest_view: u64) -> Option<(Option<Forgotten<Document>>, Rest)> {
        let mut pages = self.pages.write();
        let page = pages.get_mut(&(record / PAGE_RECORDS))?;
        let place = page.place(record).ok()?;
        let (forgotten, rest) = page.records[place].forget(oldest_view);
        if rest == Rest::Nothing {
            page.remove(record, place);
            if page.records.is_empty() {
                pages.remove(&(record / PAGE_RECORDS));
            }
        }
        Some((forgotten, rest))
    }

    /// Number of records, including deletions that have not been forgotten.
    pub fn record_count(&self) -> usize {
        self.pages.read().values().map(|page| page.records.len()).sum()
    }

    /// Removes about `count` records without regard to views. Returns the number removed.
    pub fn remove_first(&self, count: usize) -> usize {
        let removed: Vec<_> = {
            let mut pages = self.pages.write();
            std::iter::from_fn(|| pages.pop_first()).take(count.div_ceil(PAGE_RECORDS as usize)).collect()
        };
        removed.iter().map(|(_, page)| page.records.len()).sum()
    }
}

/// A walk over the records that a view sees. It holds no lock between calls.
pub(crate) struct RecordWalk {
    records: Arc<Records>,
    /// The first and the last record that may still come; `None` once the end is reached.
    rest: Option<(u64, u64)>,
    direction: Direction,
    before: u64,
    found: VecDeque<(RecordId, Document)>,
    looked_at_next: usize,
}

impl RecordWalk {
    pub fn new(records: Arc<Records>, range: RecordRange, direction: Direction, before: u64) -> Self {
        let first = match range.start {
            Bound::Included(first) => Some(first.0),
            Bound::Excluded(before) => before.0.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let last = match range.end {
            Bound::Included(last) => Some(last.0),
            Bound::Excluded(after) => after.0.checked_sub(1),
            Bound::Unbounded => Some(u64::MAX),
        };
        let rest = first.zip(last).filter(|(first, last)| first <= last);
        Self { records, rest, direction, before, found: VecDeque::new(), looked_at_next: WALK_RECORDS_MIN }
    }

    fn refill(&mut self, (first, last): (u64, u64)) {
        let looked_at = {
            let pages = self.records.pages.read();
            let entries = pages.range(first / PAGE_RECORDS..=last / PAGE_RECORDS).flat_map(|(number, page)| {
                page.entries().map(move |(id, version)| (number * PAGE_RECORDS + id, version))
            });
            let in_range = |(record, _): &(u64, _)| (first..=last).contains(record);
            let mut looked_at = 0;
            let look = |(record, newest): (u64, &Version<Document>)| {
                if let Some(document) = newest.seen(self.before).and_then(Version::value) {
                    self.found.push_back((RecordId(record), document.clone()));
                }
                looked_at += 1;
                (looked_at == self.looked_at_next).then_some(record)
            };
            match self.direction {
                Direction::Forward => entries.filter(in_range).find_map(look),
                Direction::Backward => entries.rev().filter(in_range).find_map(look),
            }
        };
        self.looked_at_next = (2 * self.looked_at_next).min(WALK_RECORDS_MAX);
        self.rest = match (looked_at, self.direction) {
            (None, _) => None,
            (Some(record), Direction::Forward) => record.checked_add(1).map(|first| (first, last)),
            (Some(record), Direction::Backward) => record.checked_sub(1).map(|last| (first, last)),
        }
        .filter(|(first, last)| first <= last);
    }
}

impl Iterator for RecordWalk {
    type Item = (RecordId, Document);

    fn next(&mut self) -> Option<Self::Item> {
        while self.found.is_empty()
            && let Some(rest) = self.rest
        {
            self.refill(rest);
        }
        self.found.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_store::Location;

    fn put(records: &Records, record: u64, lsn: u64, bytes: Option<&[u8]>) -> (i64, Begins) {
        let location = Location { position: lsn, length: 0, checksum: 7 };
        records.put(RecordId(record), lsn, bytes.map(|bytes| Document::new(bytes, location)), Views::from(0))
    }

    fn walked(records: &Arc<Records>, range: RecordRange, direction: Direction, before: u64) -> Vec<u64> {
        RecordWalk::new(Arc::clone(records), range, direction, before).map(|(record, _)| record.0).collect()
    }

    #[test]
    fn pages_take_no_room_for_what_is_gone() {
        let records = Records::default();
        for record in 1..=128 {
            put(&records, record, record, Some(b"document"));
        }
        let full = records.size.bytes();
        for record in (1..=128).filter(|record| record % 8 != 0) {
            put(&records, record, 200 + record, None);
            assert_eq!(records.forget(RecordId(record), 400).1, None);
        }
        assert_eq!(records.record_count(), 16);
        assert_eq!(records.size.bytes(), full / 8);
        assert!(records.pages.read().values().all(|page| page.records.capacity() <= 16));
        assert_eq!(records.get(RecordId(64), 500).map(|document| document.location().position), Some(64));
        assert!(records.get(RecordId(63), 500).is_none());
        for record in (8..=128).step_by(8) {
            put(&records, record, 400 + record, None);
            records.forget(RecordId(record), 600);
        }
        assert_eq!((records.size.bytes(), records.pages.read().len()), (0, 0));
    }

    #[test]
    fn walks_go_both_ways_and_stay_within_their_range() {
        let records = Arc::new(Records::default());
        for record in (1..1000).step_by(3) {
            put(&records, record, record, Some(b"document"));
        }
        let all: Vec<u64> = (1..1000).step_by(3).collect();
        let reversed: Vec<u64> = all.iter().rev().copied().collect();
        assert_eq!(walked(&records, RecordRange::ALL, Direction::Forward, 2000), all);
        assert_eq!(walked(&records, RecordRange::ALL, Direction::Backward, 2000), reversed);
        assert_eq!(walked(&records, RecordRange::ALL, Direction::Backward, 8), [7, 4, 1]);
        let part = |start, end| RecordRange { start, end };
        let (excluded, included) = (Bound::Excluded(RecordId(100)), Bound::Included(RecordId(106)));
        assert_eq!(walked(&records, part(excluded, included), Direction::Forward, 2000), [103, 106]);
        assert_eq!(walked(&records, part(excluded, included), Direction::Backward, 2000), [106, 103]);
        assert!(walked(&records, part(included, excluded), Direction::Forward, 2000).is_empty());
        assert!(walked(&records, part(excluded, excluded), Direction::Forward, 2000).is_empty());
    }

    #[test]
    fn all_that_a_hot_record_was_is_counted_off() {
        let records = Records::default();
        put(&records, 1, 1, Some(&[0; 100]));
        let one = records.size.bytes();
        for lsn in 2..1000 {
            put(&records, 1, lsn, Some(&[0; 100]));
        }
        assert!(records.size.bytes() > 900 * one / 2);
        assert_eq!(records.size.kept_bytes(), records.size.bytes() - one);
        assert_eq!(records.forget(RecordId(1), 500).1, Some(749), "half of them go before the last view is closed");
        assert_eq!(records.forget(RecordId(1), 1000).1, None);
        assert_eq!((records.size.bytes(), records.size.kept_bytes()), (one, 0));
        put(&records, 1, 1001, None);
        assert!(records.size.kept_bytes() > 100);
        records.forget(RecordId(1), 1002);
        assert_eq!((records.size.bytes(), records.size.kept_bytes()), (0, 0));
    }
}
