//! The scenario's own database on a target: creates, empties, checks and drops it.

use crate::BenchError;
use crate::operation::create_index;
use crate::server::{at, integer};
use bunko_bson::{ArrayRef, DocumentBuf, ValueRef};
use bunko_client::Connection;
use bunko_dataset::Dataset;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use std::ops::Range;

/// The lab's database.
pub const DATABASE: &str = "bunko_bench";
/// Name of the collection, or prefix of several collections' names.
const COLLECTION: &str = "documents";
/// Documents read back after each phase.
const SAMPLE: usize = 64;

/// The collections that hold the dataset: each holds as many of its documents, in the order of the dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Collections {
    count: u64,
    documents_in_each: u64,
}

impl Collections {
    /// `count` collections for the given number of documents; at least one document in each.
    pub fn new(count: u64, documents: u64) -> Self {
        Self { count, documents_in_each: documents.div_ceil(count).max(1) }
    }

    /// The collection that holds the document at this place of the dataset.
    pub fn of(self, place: u64) -> usize {
        (place / self.documents_in_each).min(self.count - 1) as usize
    }

    /// Names of the collections, in the order of [`Self::of`].
    pub fn names(self) -> Vec<String> {
        match self.count {
            1 => vec![COLLECTION.to_owned()],
            count => (0..count).map(|number| format!("{COLLECTION}{number}")).collect(),
        }
    }

    /// The collection for operations that use only one.
    pub fn first(self) -> String {
        self.names().swap_remove(0)
    }

    /// The leading part of a range of numbers that belongs to one collection. `place` maps a number to its place in the
    /// dataset, and must be increasing.
    pub fn split(self, numbers: &Range<u64>, place: impl Fn(u64) -> u64) -> Range<u64> {
        let of_first = self.of(place(numbers.start));
        if self.of(place(numbers.end - 1)) == of_first {
            return numbers.clone();
        }
        let others = numbers.clone().take_while(|&number| self.of(place(number)) == of_first);
        numbers.start..numbers.start + others.count() as u64
    }
}

/// How an existing database of that name is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The run is refused, because the database may be the user's.
    Refuse,
    /// The command line allows dropping it.
    Drop,
}

/// Makes sure that the database does not exist, or drops it if that is allowed.
pub(crate) fn create(control: &mut Connection, existing: Existing) -> Result<(), BenchError> {
    match (exists(control)?, existing) {
        (true, Existing::Refuse) => {
            let address = control.address().to_owned();
            Err(BenchError::DatabaseExists { database: DATABASE.to_owned(), address })
        }
        (true, Existing::Drop) => drop(control),
        (false, _) => Ok(()),
    }
}

/// Makes collections without documents, with their indexes.
pub(crate) fn empty_collections(
    control: &mut Connection,
    collections: Collections,
    indexes: &[String],
) -> Result<(), BenchError> {
    collections.names().iter().try_for_each(|name| empty_collection(control, name, indexes))
}

fn empty_collection(control: &mut Connection, collection: &str, indexes: &[String]) -> Result<(), BenchError> {
    match run(control, &DocumentBuf::new().with("drop", collection)) {
        // Servers before 7.0 refuse to drop a missing collection; some give no code.
        Err(BenchError::Client(bunko_client::ClientError::Command(error)))
            if error.code == 26 || error.message == "ns not found" => {}
        result => result?,
    }
    run(control, &DocumentBuf::new().with("create", collection))?;
    for keys in indexes {
        let command = create_index(collection, keys);
        run(control, &command.map_err(|detail| BenchError::Option { name: "set", detail })?)?;
    }
    Ok(())
}

/// Number of documents that a query counts. A crash can falsify the collections' statistics, so they are not used.
pub(crate) fn count(control: &mut Connection, collections: Collections) -> Result<u64, BenchError> {
    count_with(control, collections, &DocumentBuf::new())
}

/// As [`count`], on a member of a set that is not the primary.
pub(crate) fn count_on_follower(member: &mut Connection, collections: Collections) -> Result<u64, BenchError> {
    let mode = DocumentBuf::new().with("mode", "primaryPreferred");
    count_with(member, collections, &DocumentBuf::new().with("$readPreference", &mode))
}

/// As [`count`], with the fields of `more` in the command.
fn count_with(control: &mut Connection, collections: Collections, more: &DocumentBuf) -> Result<u64, BenchError> {
    let mut documents = 0;
    for name in collections.names() {
        let query = DocumentBuf::new().with("_id", &DocumentBuf::new().with("$exists", true));
        let mut command = DocumentBuf::new().with("count", &name).with("query", &query);
        for field in more.as_ref() {
            command.append(field.name, field.value);
        }
        let reply = control.run_command(DATABASE, command.as_ref())?;
        documents += integer(reply.as_ref().get("n")).and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
    }
    Ok(documents)
}

/// Reads a sample of the documents at `places` of the dataset and compares them with it, except for the fields
/// `except`. Returns how many were compared, and the first difference.
pub(crate) fn verify(
    control: &mut Connection,
    dataset: &Dataset,
    collections: Collections,
    places: &Sample<'_>,
    except: &[&str],
) -> Result<(u64, Option<String>), BenchError> {
    let (chosen, names) = (places.choose(), collections.names());
    // Few at a time: sixteen documents of 16 MB would take a quarter of a gigabyte of memory.
    let at_once = ((32 << 20) / dataset.document_bytes().max(1)).clamp(1, SAMPLE);
    for some in chosen.chunks(at_once) {
        for &place in some {
            let id = dataset.id(place);
            let command = DocumentBuf::new()
                .with("find", &names[collections.of(place)])
                .with("filter", &DocumentBuf::new().with("_id", id.as_value()))
                .with("limit", 1_i32);
            let reply = control.run_command(DATABASE, command.as_ref())?;
            let found = at(reply.as_ref(), &["cursor", "firstBatch"]).and_then(ValueRef::as_array);
            let found = found.and_then(|batch| batch.get(0)?.as_document());
            let differs = match found {
                Some(found) => dataset.verify(place, found, except).err(),
                None => Some("it is not in the collection".to_owned()),
            };
            if let Some(differs) = differs {
                return Ok((chosen.len() as u64, Some(format!("_id {:?}: {differs}", id.as_value()))));
            }
        }
    }
    Ok((chosen.len() as u64, None))
}

/// Reads every document once.
pub(crate) fn read_all(control: &mut Connection, collections: Collections) -> Result<u64, BenchError> {
    let mut documents = 0;
    for name in collections.names() {
        let command = DocumentBuf::new().with("find", &name).with("filter", &DocumentBuf::new());
        for document in control.find_all(DATABASE, command.as_ref())? {
            document?;
            documents += 1;
        }
    }
    Ok(documents)
}

/// The reply to `dbStats`; empty if the server lacks it.
pub(crate) fn statistics(control: &mut Connection) -> DocumentBuf {
    let command = DocumentBuf::new().with("dbStats", 1_i32);
    control.run_command(DATABASE, command.as_ref()).unwrap_or_default()
}

/// Drops the database.
pub(crate) fn drop(control: &mut Connection) -> Result<(), BenchError> {
    run(control, &DocumentBuf::new().with("dropDatabase", 1_i32))
}

/// Documents from which a sample is taken.
pub(crate) struct Sample<'a> {
    /// Number of documents.
    pub count: u64,
    /// Maps a number below `count` to a place in the dataset.
    pub place: &'a dyn Fn(u64) -> u64,
    pub seed: u64,
}

impl Sample<'_> {
    /// Chooses the first, the last and others at random.
    fn choose(&self) -> Vec<u64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let mut numbers: Vec<u64> = match self.count {
            0 => Vec::new(),
            count => [0, count - 1].into_iter().chain((2..SAMPLE).map(|_| random.next_u64() % count)).collect(),
        };
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(self.place).collect()
    }
}

/// Whether the server has the database. If it lacks `listDatabases`, its collections are listed.
fn exists(control: &mut Connection) -> Result<bool, BenchError> {
    let listed = control.run_command("admin", DocumentBuf::new().with("listDatabases", 1_i32).as_ref());
    if let Ok(listed) = listed {
        let names = listed.as_ref().get("databases").and_then(ValueRef::as_array);
        let named = |value: ValueRef<'_>| value.as_document()?.get("name")?.as_str().map(|name| name == DATABASE);
        return Ok(names.is_some_and(|names| names.iter().any(|value| named(value).unwrap_or(false))));
    }
    let collections = control.run_command(DATABASE, DocumentBuf::new().with("listCollections", 1_i32).as_ref())?;
    let batch = at(collections.as_ref(), &["cursor", "firstBatch"]).and_then(ValueRef::as_array);
    Ok(batch.map_or(0, ArrayRef::count) > 0)
}

fn run(control: &mut Connection, command: &DocumentBuf) -> Result<(), BenchError> {
    control.run_command(DATABASE, command.as_ref())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_spread_over_collections_in_runs() {
        assert_eq!(Collections::new(1, 10).names(), ["documents"]);
        let three = Collections::new(3, 10);
        assert_eq!(three.names(), ["documents0", "documents1", "documents2"]);
        assert_eq!((0..12).map(|place| three.of(place)).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    }

    #[test]
    fn a_batch_ends_where_its_collection_does() {
        let three = Collections::new(3, 10);
        let every = |number| number;
        assert_eq!(three.split(&(0..3), every), 0..3);
        assert_eq!(three.split(&(2..9), every), 2..4);
        assert_eq!(three.split(&(8..10), every), 8..10);
        // Numbers of the second of two generators.
        assert_eq!(three.split(&(0..5), |number| number * 2 + 1), 0..2);
    }
}
