//! The scenario's own database on a target: made, emptied, checked, dropped.

use crate::BenchError;
use crate::operation::create_index;
use crate::server::{at, integer};
use bunko_bson::{ArrayRef, DocumentBuf, ValueRef};
use bunko_client::Connection;
use bunko_dataset::Dataset;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};

/// Holds nothing but what the lab put there.
pub const DATABASE: &str = "bunko_bench";
pub(crate) const COLLECTION: &str = "documents";
/// Documents read back after each phase.
const SAMPLE: usize = 64;

/// What the server's database of that name is to the lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Somebody else's: refused.
    Refuse,
    /// The command line named it to be dropped.
    Drop,
}

/// Makes sure that the database is the lab's own, and empty.
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

/// A collection without documents, with its indexes.
pub(crate) fn empty_collection(control: &mut Connection, indexes: &[String]) -> Result<(), BenchError> {
    match run(control, &DocumentBuf::new().with("drop", COLLECTION)) {
        // Servers before 7.0 refuse to drop what is not there; some give no code.
        Err(BenchError::Client(bunko_client::ClientError::Command(error)))
            if error.code == 26 || error.message == "ns not found" => {}
        result => result?,
    }
    run(control, &DocumentBuf::new().with("create", COLLECTION))?;
    for keys in indexes {
        let command = create_index(COLLECTION, keys);
        run(control, &command.map_err(|detail| BenchError::Option { name: "set", detail })?)?;
    }
    Ok(())
}

/// How many documents the server finds; the collection's statistics, which a crash can falsify, are not asked.
pub(crate) fn count(control: &mut Connection) -> Result<u64, BenchError> {
    let query = DocumentBuf::new().with("_id", &DocumentBuf::new().with("$exists", true));
    let command = DocumentBuf::new().with("count", COLLECTION).with("query", &query);
    let reply = control.run_command(DATABASE, command.as_ref())?;
    Ok(integer(reply.as_ref().get("n")).and_then(|count| count.try_into().ok()).unwrap_or(0))
}

/// Reads documents back and compares them with the dataset's, but for the fields `except`; `places` are theirs
/// in the dataset, of which a sample is taken. How many were compared, and what differs first.
pub(crate) fn verify(
    control: &mut Connection,
    dataset: &Dataset,
    places: &Sample<'_>,
    except: &[&str],
) -> Result<(u64, Option<String>), BenchError> {
    let chosen = places.choose();
    // Few at a time: sixteen documents of 16 MB would take a quarter of a gigabyte here.
    let at_once = ((32 << 20) / dataset.document_bytes().max(1)).clamp(1, SAMPLE);
    for some in chosen.chunks(at_once) {
        for &place in some {
            let id = dataset.id(place);
            let command = DocumentBuf::new()
                .with("find", COLLECTION)
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
pub(crate) fn read_all(control: &mut Connection) -> Result<u64, BenchError> {
    let command = DocumentBuf::new().with("find", COLLECTION).with("filter", &DocumentBuf::new());
    let mut documents = 0;
    for document in control.find_all(DATABASE, command.as_ref())? {
        document?;
        documents += 1;
    }
    Ok(documents)
}

/// `dbStats`; empty where the server lacks it.
pub(crate) fn statistics(control: &mut Connection) -> DocumentBuf {
    let command = DocumentBuf::new().with("dbStats", 1_i32);
    control.run_command(DATABASE, command.as_ref()).unwrap_or_default()
}

/// Drops it.
pub(crate) fn drop(control: &mut Connection) -> Result<(), BenchError> {
    run(control, &DocumentBuf::new().with("dropDatabase", 1_i32))
}

/// Which documents may be looked at.
pub(crate) struct Sample<'a> {
    /// How many there are.
    pub count: u64,
    /// Their places in the dataset.
    pub place: &'a dyn Fn(u64) -> u64,
    pub seed: u64,
}

impl Sample<'_> {
    /// The first, the last and others at random.
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

/// Whether the server has the database. A server without `listDatabases` is asked for its collections.
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
