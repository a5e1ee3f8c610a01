//! Applies changes of documents: each changed document of the target gets the state that the source's has now.
//!
//! The documents of one batch are cut into chunks that threads apply at the same time. No two chunks have an `_id` in
//! common, so the newest state is the last one. A collection whose documents have an order (capped), or in which
//! different bytes may be one `_id` (a collation), is one thread's work.

use super::conflicts;
use super::documents::{self, Place, equal_to, id, key};
use super::listing::{self, Kind};
use super::pair::Pair;
use super::{Copy, majority_after};
use crate::ToolError;
use crate::restore::outcome::write_errors;
use bunko_bson::{DocumentBuf, Timestamp, Value, ValueRef};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Documents that are read and written by one command, at most.
const CHUNK_DOCUMENTS: usize = 500;

/// The documents that have changed, by collection.
#[derive(Default)]
pub(super) struct Changes {
    collections: BTreeMap<(String, String), Changed>,
}

/// The changed documents of one collection, in the order of their first events.
#[derive(Default)]
struct Changed {
    ids: Vec<Value>,
    /// Keys of the `_id`s in `ids`; equal numbers of different types have one key.
    keys: HashSet<Vec<u8>>,
}

impl Changes {
    pub(super) fn add(&mut self, database: String, collection: String, id: Value) {
        let changed = self.collections.entry((database, collection)).or_default();
        if changed.keys.insert(key(id.as_ref())) {
            changed.ids.push(id);
        }
    }
}

/// Chunks that one thread applies one after another.
struct Job {
    place: Place,
    chunks: Vec<Vec<Value>>,
}

/// Applies the changes, with all events until that time.
/// # Errors
/// The servers', the connections', `Interrupted`.
pub(super) fn apply(copy: &Copy<'_>, pairs: &mut [Pair], changes: Changes, until: Timestamp) -> Result<(), ToolError> {
    let jobs = jobs(copy, &mut pairs[0], changes)?;
    let next = AtomicUsize::new(0);
    let conflicts = Mutex::new(Vec::new());
    let concern = majority_after(until);
    let work = |pair: &mut Pair| -> Result<(), ToolError> {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            for chunk in &job.chunks {
                let refused = replace(pair, &job.place, chunk, &concern)?;
                if !refused.is_empty() {
                    conflicts.lock().push((job.place.clone(), refused));
                }
            }
        }
        Ok(())
    };
    let workers = jobs.len().clamp(1, pairs.len());
    std::thread::scope(|scope| {
        let threads: Vec<_> = pairs[..workers].iter_mut().map(|pair| scope.spawn(|| work(pair))).collect();
        let results = threads.into_iter().map(|thread| thread.join().expect("a worker does not panic"));
        results.fold(Ok(()), Result::and)
    })?;
    // The other documents of the batch have their new states now, so most conflicts are gone.
    for (place, ids) in conflicts.into_inner() {
        conflicts::settle(copy, &mut pairs[0], &place, ids)?;
    }
    Ok(())
}

fn jobs(copy: &Copy<'_>, pair: &mut Pair, changes: Changes) -> Result<Vec<Job>, ToolError> {
    let mut jobs = Vec::new();
    for ((database, collection), changed) in changes.collections {
        if !copy.scope.takes(&database, &collection) {
            continue;
        }
        let listed = listing::one(pair.source(), &database, &collection)?;
        let listed = listed.filter(|listed| listed.kind == Kind::Collection);
        let place = Place { database, collection, is_there: listed.is_some() };
        let chunks = changed.ids.chunks(CHUNK_DOCUMENTS).map(<[Value]>::to_vec);
        if listed.is_some_and(|listed| listed.is_capped() || listed.has_collation()) {
            jobs.push(Job { place, chunks: chunks.collect() });
        } else {
            jobs.extend(chunks.map(|chunk| Job { place: place.clone(), chunks: vec![chunk] }));
        }
    }
    Ok(jobs)
}

/// Gives the target's documents the states of the source's. Returns the `_id`s whose documents the target refuses.
fn replace(pair: &mut Pair, place: &Place, ids: &[Value], concern: &DocumentBuf) -> Result<Vec<Value>, ToolError> {
    let Some(found) = documents::read(pair, place, ids, concern)? else {
        let (left, right) = ids.split_at(ids.len() / 2);
        let mut refused = replace(pair, place, left, concern)?;
        refused.extend(replace(pair, place, right, concern)?);
        return Ok(refused);
    };
    let encoded = |id: ValueRef<'_>| DocumentBuf::new().with("_id", id).into_bytes();
    let there: HashSet<_> = found.iter().filter_map(|document| id(document.as_ref())).map(encoded).collect();
    // Deletions come first: a document may have got another `_id` that is equal, as 1 and 1.0 are.
    let gone = ids.iter().filter(|id| !there.contains(&encoded(id.as_ref())));
    documents::delete(pair, place, gone.map(Value::as_ref))?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let mut statements = Vec::new();
    for document in &found {
        let id = id(document.as_ref()).expect("it was found by its _id");
        let statement =
            DocumentBuf::new().with("q", &equal_to(id)).with("u", document).with("upsert", true).into_bytes();
        statements.extend(statement);
    }
    let command = pair.target().storing("update", &place.collection);
    let reply = pair.target().write(&place.database, &command, ("updates", &statements))?;
    let refused = write_errors(reply.as_ref())
        .into_iter()
        .filter_map(|(number, _)| found.get(number).and_then(|document| id(document.as_ref())).map(ValueRef::to_value));
    Ok(refused.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_changed_once_however_often_it_comes() {
        let mut changes = Changes::default();
        let ids = [Value::Int32(2), Value::Int32(1), Value::Int64(2), Value::Double(1.0), Value::Int32(3)];
        for id in ids {
            changes.add("a".into(), "b".into(), id);
        }
        let changed = changes.collections.remove(&("a".to_owned(), "b".to_owned())).expect("a collection");
        assert_eq!(format!("{:?}", changed.ids), "[Int32(2), Int32(1), Int32(3)]");
    }
}
