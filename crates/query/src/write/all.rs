//! Changing all documents that a search finds, several at a time.

use super::search::{Changes, Decision, Search, Sighting, Wanted};
use super::{Writes, version_document};
use bunko_catalog::{Collection, FoundRecords};
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;

/// Whether a search may have more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Some,
    Nothing,
}

impl Search {
    /// Takes the next records, at most `count_max`, with their documents if the search has these.
    fn gather(&mut self, found: &mut FoundRecords, count_max: u64) -> Result<Rest> {
        while (found.len() as u64) < count_max && !found.is_full() {
            match self {
                Self::One(record) => match record.take() {
                    Some(record) => found.push(record, &[]),
                    None => return Ok(Rest::Nothing),
                },
                Self::Plan(execution) => {
                    let Some((record, document)) = execution.next_record()? else { return Ok(Rest::Nothing) };
                    found.push(record, document.as_bytes());
                    if let Some(location) = execution.place_of(record) {
                        found.stands_at(location);
                    }
                }
            }
        }
        Ok(Rest::Some)
    }
}

impl Writes<'_> {
    /// Lets `decide` judge the newest version of every record that the search finds, until `changed_max` are changed.
    ///
    /// If the disk is too full for a deletion, the store gives back the space of deleted documents and the search
    /// starts again.
    pub(super) fn change_found(
        &mut self,
        (collection, wanted): (&Arc<Collection>, &Wanted<'_>),
        search: &mut Search,
        changed_max: u64,
        decide: &mut Decision<'_>,
    ) -> Result<(Changes, Rest)> {
        let (mut changes, mut found) = (Changes::default(), FoundRecords::default());
        let (mut changed_before, mut reliefs) = (0, self.catalog.store().reliefs());
        while changes.changed < changed_max {
            found.clear();
            let gathered = search.gather(&mut found, changed_max - changes.changed);
            // Records gathered before a failure are changed as if each had been changed when it was found, unless the
            // whole command will be run again.
            if gathered.as_ref().is_err_and(Failure::is_too_long) {
                return gathered.map(|rest| (changes, rest));
            }
            self.check_interrupt()?;
            let outcome = self.change_these((collection, wanted), &found, &mut changes, decide);
            if changes.changed > changed_before && self.makes_room((wanted, reliefs), search, &outcome) {
                (changed_before, reliefs) = (changes.changed, self.catalog.store().reliefs());
                *search = Self::search(wanted, collection, &self.scope)?;
                continue;
            }
            wanted.executed(outcome)?;
            if gathered? == Rest::Nothing {
                return Ok((changes, Rest::Nothing));
            }
        }
        Ok((changes, Rest::Some))
    }

    /// Gives the space of deleted documents back to a full disk. Ends the search first, since its snapshot keeps that
    /// space in use.
    fn makes_room(&self, (wanted, reliefs): (&Wanted<'_>, u64), search: &mut Search, outcome: &Result<()>) -> bool {
        let is_due = match outcome {
            Ok(()) => self.catalog.store().is_relief_wanted(reliefs),
            Err(failure) => failure.code() == ErrorCode::OUT_OF_DISK_SPACE,
        };
        if !is_due || !wanted.deletes_all() {
            return false;
        }
        *search = Search::One(None);
        // If no space was given back, the next batch fails with the error.
        let is_relieved = self.catalog.store().relieve().unwrap_or(false);
        is_relieved || outcome.is_ok()
    }

    fn change_these(
        &mut self,
        (collection, wanted): (&Collection, &Wanted<'_>),
        found: &FoundRecords,
        changes: &mut Changes,
        decide: &mut Decision<'_>,
    ) -> Result<()> {
        let (scope, has_version) = (Arc::clone(&self.scope), self.has_version);
        let mut sightings = vec![Sighting::Gone; found.len()];
        let (mut next, mut go_together) = (0, found.len() > 1);
        while next < found.len() {
            if go_together {
                let together = self.catalog.change_several(
                    collection,
                    (found, next),
                    &*scope.operation,
                    &mut |number, document| {
                        let (sighting, verdict) = wanted.judge(document, decide)?;
                        if has_version {
                            version_document::check(document, &verdict)?;
                        }
                        sightings[number] = sighting;
                        Ok(verdict)
                    },
                )?;
                self.note_written(together.lsn);
                let behind = next + together.count;
                sightings[next..behind].iter().for_each(|sighting| changes.add(Changes::of(*sighting)));
                if let Some(failure) = together.failure {
                    return Err(failure);
                }
                // If the first record has to be changed alone, the others probably have to be too.
                go_together = behind > next;
                next = behind;
            }
            if next < found.len() {
                changes.add(Changes::of(self.change_one(collection, found.get(next), wanted, decide)?));
                next += 1;
            }
        }
        Ok(())
    }
}
