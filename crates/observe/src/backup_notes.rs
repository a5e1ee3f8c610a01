//! Events of backups and archives that `bunko backup` has told the server of, for metrics. The server itself does not know
//! whether a backup is durable elsewhere.

use bunko_bson::Writer;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Maximum number of archives that are remembered; the archive that was silent for longest is forgotten first.
const ARCHIVES_MAX: usize = 8;

/// The last events, as far back as the start of the server.
#[derive(Debug, Default)]
pub struct BackupNotes(Mutex<Notes>);

#[derive(Debug, Default)]
struct Notes {
    made_ms: Option<u64>,
    failed_ms: Option<u64>,
    /// By the archive's name: the time up to which the archive has all writes.
    archives: BTreeMap<String, Archive>,
    /// The term of the replica set in which the archives reported.
    term: i64,
}

impl Notes {
    /// Forgets the archives of earlier terms: they follow the set to its next primary, and report there.
    fn enter(&mut self, term: i64) {
        if self.term != term {
            self.term = term;
            self.archives.clear();
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Archive {
    complete_ms: u64,
    noted_ms: u64,
}

/// An event that a backup tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupEvent {
    /// A backup is whole and durable.
    Made,
    /// A backup, or the archive of the log, has failed.
    Failed,
    /// The archive has all writes up to this time by the server's clock, in milliseconds since 1970.
    Archived(u64),
    /// The archive was ended by its user.
    Ended,
}

impl BackupNotes {
    /// Notes an event of the archive or backup with that owner, at the time `now_ms` of the server's clock. `term` is the
    /// replica set's; 0 without a set.
    pub fn note(&self, owner: &str, event: BackupEvent, (now_ms, term): (u64, i64)) {
        let mut notes = self.0.lock();
        notes.enter(term);
        match event {
            BackupEvent::Made => notes.made_ms = Some(now_ms),
            BackupEvent::Failed => notes.failed_ms = Some(now_ms),
            BackupEvent::Ended => _ = notes.archives.remove(owner),
            BackupEvent::Archived(complete_ms) => {
                if notes.archives.len() >= ARCHIVES_MAX && !notes.archives.contains_key(owner) {
                    let oldest = notes.archives.iter().min_by_key(|(_, archive)| archive.noted_ms);
                    let oldest = oldest.map(|(owner, _)| owner.clone());
                    oldest.map(|owner| notes.archives.remove(&owner));
                }
                notes.archives.insert(owner.to_owned(), Archive { complete_ms, noted_ms: now_ms });
            }
        }
    }

    /// Writes the fields of `serverStatus`. Events that have not happened are left out. The time and the term are as for
    /// [`Self::note`].
    pub fn write(&self, (now_ms, term): (u64, i64), out: &mut Writer<'_>) {
        let mut notes = self.0.lock();
        notes.enter(term);
        out.append("archives", notes.archives.len() as i64);
        // Shows the archive that is behind the most: an archive that has stopped without a word falls behind more and
        // more.
        if let Some(complete_ms) = notes.archives.values().map(|archive| archive.complete_ms).min() {
            out.append("archiveLagMillis", now_ms.saturating_sub(complete_ms) as i64);
        }
        for (name, time) in [("lastSuccessMillis", notes.made_ms), ("lastFailureMillis", notes.failed_ms)] {
            if let Some(time) = time {
                out.append(name, time as i64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::{DocumentRef, extended_json};

    const TERM: i64 = 1;

    fn shown(notes: &BackupNotes, now_ms: u64) -> String {
        let mut bytes = Vec::new();
        let mut out = Writer::new(&mut bytes);
        notes.write((now_ms, TERM), &mut out);
        out.end();
        extended_json::to_relaxed(DocumentRef::trusted(&bytes).into())
    }

    #[test]
    fn the_archive_that_is_behind_the_most_counts() {
        let notes = BackupNotes::default();
        assert_eq!(shown(&notes, 9), r#"{"archives":0}"#);
        notes.note("a", BackupEvent::Archived(1_000), (1_500, TERM));
        notes.note("b", BackupEvent::Archived(4_000), (4_500, TERM));
        notes.note("a", BackupEvent::Made, (4_600, TERM));
        assert_eq!(shown(&notes, 5_000), r#"{"archives":2,"archiveLagMillis":4000,"lastSuccessMillis":4600}"#);
        notes.note("a", BackupEvent::Ended, (5_000, TERM));
        notes.note("a", BackupEvent::Failed, (5_001, TERM));
        let expected = r#"{"archives":1,"archiveLagMillis":2000,"lastSuccessMillis":4600,"lastFailureMillis":5001}"#;
        assert_eq!(shown(&notes, 6_000), expected);
        for number in 0..2 * ARCHIVES_MAX as u64 {
            notes.note(&number.to_string(), BackupEvent::Archived(7_000), (7_000 + number, TERM));
        }
        assert_eq!(notes.0.lock().archives.len(), ARCHIVES_MAX);
        notes.note("a", BackupEvent::Archived(8_000), (8_000, TERM + 1));
        assert_eq!(notes.0.lock().archives.len(), 1, "the other archives follow another primary, or have ended");
    }
}
