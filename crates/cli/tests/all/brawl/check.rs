//! Whether the contents are those that were acknowledged, and whether every index agrees with its collection.

use super::document::{DOCUMENTS, document};
use super::fighter::Known;
use super::model::{Contents, Place};
use super::ring::{BROKEN, COLLECTIONS, CROWDS, DATABASE, DUPLICATE_KEY, MOVING, command, connect, insert};
use bunko_bson::{DocumentBuf, ValueRef, number};
use bunko_client::{ClientError, Connection, check_reply};
use bunko_testkit::shell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Longest wait for the index builds that a crash interrupted.
const BUILDS_TIMEOUT: Duration = Duration::from_mins(1);
/// An `_id` that no document has.
const PROBE: i32 = -1;

/// Documents by their `_id`, in shell syntax.
type Scanned = BTreeMap<i32, DocumentBuf>;

/// Whether the server has been started again since the last check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    Restart,
    Pause,
}

/// # Errors
/// [`BROKEN`], and which documents are lost, not requested, or missing from an index.
pub fn check(address: SocketAddr, known: &Known, since: Since) -> Result<usize, String> {
    settle(address, known, since).map_err(|error| format!("{BROKEN}: {error}"))
}

/// Compares contents and indexes; returns the number of compared indexes.
fn settle(address: SocketAddr, known: &Known, since: Since) -> Result<usize, String> {
    let mut connection = connect(address);
    let mut indexes = 0;
    let mut found = Place::default();
    let names = list(&mut connection, "{listCollections: 1, nameOnly: true}")?;
    let names: Vec<String> = names.iter().map(|collection| text(collection, "name")).collect();
    for (name, _) in COLLECTIONS.iter().chain(CROWDS) {
        if !names.iter().any(|there| there == name) {
            return Err(format!("collection {name} is gone"));
        }
    }
    for name in &names {
        let scanned = scan(&mut connection, name, "{$natural: 1}")?;
        indexes += compare_indexes(&mut connection, name, &scanned).map_err(|error| format!("{name}: {error}"))?;
        let contents = contents(name, &scanned)?;
        if let Some(moving) = MOVING.into_iter().find(|moving| moving == name) {
            if found.name.is_some() {
                return Err(format!("the collection that moves is at both of {MOVING:?}"));
            }
            found = Place { name: Some(moving), contents };
        } else if let Some((name, engine)) = COLLECTIONS.iter().chain(CROWDS).find(|(fixed, _)| fixed == name) {
            if *engine == Some("memory") && since == Since::Restart {
                known.model.forget(name);
            }
            known.model.settle(name, &contents)?;
        }
    }
    known.moving.lock().expect("not poisoned").settle(found)?;
    Ok(indexes)
}

/// The documents' numbers; every field must follow from `_id` and number.
fn contents(name: &str, scanned: &Scanned) -> Result<Contents, String> {
    let mut contents = Contents::new();
    for (id, found) in scanned {
        let number = found.as_ref().get("n").and_then(number::as_i64_exact).unwrap_or_default();
        let expected = document(*id, number);
        if sorted(found) != sorted(&expected) {
            return Err(format!("{name}: half a document: {found:?}, expected {expected:?}"));
        }
        contents.insert(*id, number);
    }
    Ok(contents)
}

/// The fields by name, because an update leaves them in another order than an insert.
fn sorted(document: &DocumentBuf) -> BTreeMap<String, String> {
    document.as_ref().iter().map(|field| (field.name.to_owned(), shell::print(field.value))).collect()
}

/// Checks that every index finds the documents that a scan finds, and that `validate` agrees.
fn compare_indexes(connection: &mut Connection, name: &str, scanned: &Scanned) -> Result<usize, String> {
    let validated = run(connection, &format!("{{validate: '{name}', full: true}}"))?;
    if !matches!(validated.as_ref().get("valid"), Some(ValueRef::Boolean(true))) {
        return Err(format!("validate: {validated:?}"));
    }
    let counted = run(connection, &format!("{{count: '{name}'}}"))?;
    if counted.as_ref().get("n").and_then(number::as_i64_exact) != Some(scanned.len() as i64) {
        return Err(format!("{counted:?}, a scan finds {}", scanned.len()));
    }
    let indexes = finished_indexes(connection, name)?;
    for index in &indexes {
        let index_name = text(index, "name");
        let by_index = scan(connection, name, &format!("'{index_name}'"))?;
        if by_index != *scanned {
            let ids = |documents: &Scanned| documents.keys().copied().collect::<BTreeSet<_>>();
            let lost: Vec<_> = ids(scanned).difference(&ids(&by_index)).copied().take(10).collect();
            let (there, all) = (by_index.len(), scanned.len());
            return Err(format!("index {index_name} leads to {there} of {all} documents, not to {lost:?}"));
        }
        if matches!(index.as_ref().get("unique"), Some(ValueRef::Boolean(true))) {
            is_unique(connection, name, &index_name, scanned)?;
        }
    }
    by_equality(connection, name, scanned)?;
    Ok(indexes.len())
}

/// All indexes, once no build is running.
fn finished_indexes(connection: &mut Connection, name: &str) -> Result<Vec<DocumentBuf>, String> {
    let deadline = Instant::now() + BUILDS_TIMEOUT;
    loop {
        let indexes = list(connection, &format!("{{listIndexes: '{name}'}}"))?;
        let is_built = |connection: &mut Connection, index: &DocumentBuf| {
            let hint = text(index, "name");
            run(connection, &format!("{{find: '{name}', hint: '{hint}', limit: 1}}")).is_ok()
        };
        if indexes.iter().all(|index| is_built(connection, index)) {
            return Ok(indexes);
        }
        if Instant::now() > deadline {
            return Err(format!("a build does not end: {indexes:?}"));
        }
        // The error gets engine, seed and round from the caller, which a panic here would not have.
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Checks that no two documents have one key, and that the server refuses another document with a used key.
fn is_unique(connection: &mut Connection, name: &str, index: &str, scanned: &Scanned) -> Result<(), String> {
    let has_numbers = index != "unique";
    let key = |document: &DocumentBuf| {
        let field = |name: &str| document.as_ref().get(name).and_then(number::as_i64_exact).unwrap_or_default();
        (field("k"), if has_numbers { field("n") } else { 0 })
    };
    let keys: BTreeSet<_> = scanned.values().map(key).collect();
    if keys.len() != scanned.len() {
        return Err(format!("unique index {index}: {} documents have {} keys", scanned.len(), keys.len()));
    }
    for taken in scanned.values().step_by(97) {
        let mut probe = DocumentBuf::new().with("_id", PROBE);
        for field in taken.as_ref().iter().filter(|field| field.name != "_id") {
            probe.append(field.name, field.value);
        }
        match connection.run_command(DATABASE, insert(name, &[probe]).as_ref()) {
            Ok(reply) if check_reply(reply.as_ref()).is_err_and(|failure| failure.code == DUPLICATE_KEY) => {}
            other => return Err(format!("unique index {index} takes the key of {taken:?} twice: {other:?}")),
        }
    }
    Ok(())
}

/// Checks that every way to look up a key or a tag finds one set of documents.
fn by_equality(connection: &mut Connection, name: &str, scanned: &Scanned) -> Result<(), String> {
    for value in (0..DOCUMENTS).step_by(167) {
        for filter in [format!("{{k: {value}}}"), format!("{{tags: {}}}", value % 64)] {
            let mut by = |hint: &str| -> Result<BTreeSet<i32>, String> {
                let found = list(connection, &format!("{{find: '{name}', filter: {filter}{hint}, batchSize: 5000}}"))?;
                Ok(found.iter().map(id).collect())
            };
            let (planned, scanned_for) = (by("")?, by(", hint: {$natural: 1}")?);
            if planned != scanned_for {
                let all = scanned.len();
                return Err(format!("{filter} of {all}: {planned:?} by an index, {scanned_for:?} by a scan"));
            }
        }
    }
    Ok(())
}

fn scan(connection: &mut Connection, name: &str, hint: &str) -> Result<Scanned, String> {
    let found = list(connection, &format!("{{find: '{name}', hint: {hint}, batchSize: 10000}}"))?;
    let count = found.len();
    let scanned: Scanned = found.into_iter().map(|document| (id(&document), document)).collect();
    if scanned.len() == count { Ok(scanned) } else { Err(format!("{name} by {hint}: a document is found twice")) }
}

fn id(document: &DocumentBuf) -> i32 {
    document.as_ref().get("_id").and_then(number::as_i64_exact).unwrap_or_default() as i32
}

fn text(document: &DocumentBuf, field: &str) -> String {
    document.as_ref().get(field).and_then(ValueRef::as_str).unwrap_or_default().to_owned()
}

fn run(connection: &mut Connection, text: &str) -> Result<DocumentBuf, String> {
    connection.run_command(DATABASE, command(text).as_ref()).map_err(|error| format!("{text}: {error}"))
}

fn list(connection: &mut Connection, text: &str) -> Result<Vec<DocumentBuf>, String> {
    let complain = |error: ClientError| format!("{text}: {error}");
    let cursor = connection.find_all(DATABASE, command(text).as_ref()).map_err(complain)?;
    cursor.collect::<Result<_, _>>().map_err(complain)
}
