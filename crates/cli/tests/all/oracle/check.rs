//! The check after a crash.

use super::collection::{Collection, DATABASE, collections};
use super::document::parse;
use super::ledger::{Documents, Key, is_explained};
use super::{BROKEN, connect};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_client::{ClientError, Connection};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Numbers of the existing documents.
pub type Found = BTreeMap<Key, i64>;

const NAMESPACE_NOT_FOUND: i32 = 26;

/// Checks that every document is in a state that was `asked` for, no older than its `promised` one, and complete, and
/// that indexes and counts agree with the documents.
/// # Errors
/// [`BROKEN`], and which documents are lost, damaged, or not requested.
pub fn check(address: SocketAddr, promised: &Documents, asked: &Documents) -> Result<Found, String> {
    let found = read_all(address).and_then(|found| compare(&found, promised, asked).map(|()| found));
    found.map_err(|error| format!("{BROKEN}: {error}"))
}

/// All documents, read in every way.
fn read_all(address: SocketAddr) -> Result<Found, String> {
    let mut connection = connect(address);
    let mut found = Found::new();
    for (position, collection) in collections().iter().enumerate() {
        let name = &collection.name;
        let in_collection = |error: ClientError| format!("{name}: {error}");
        let scanned = scan(&mut connection, collection)?;
        for (id, number) in &scanned {
            let read = read(&mut connection, collection, *id).map_err(in_collection)?;
            if read != Some((*id, *number)) {
                return Err(format!("{name}: a scan finds {id} with number {number}, its _id leads to {read:?}"));
            }
        }
        let counted = count(&mut connection, collection).map_err(in_collection)?;
        if counted != scanned.len() as i64 {
            return Err(format!("{name}: count says {counted}, a scan finds {}", scanned.len()));
        }
        validate(&mut connection, collection)?;
        found.extend(scanned.into_iter().map(|(id, number)| ((position, id), number)));
    }
    Ok(found)
}

fn compare(found: &Found, promised: &Documents, asked: &Documents) -> Result<(), String> {
    let keys: BTreeSet<_> = found.keys().chain(asked.keys()).collect();
    let wrong = keys.into_iter().filter(|key| {
        let state = found.get(key).copied();
        !is_explained(state, promised.get(key), asked.get(key))
    });
    let wrong: Vec<_> =
        wrong.map(|key| format!("{key:?} is {:?}, asked for was {:?}", found.get(key), asked.get(key))).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let first = &wrong[..wrong.len().min(5)];
    Err(format!("{} documents found, {} lost or not as asked for, among them: {first:#?}", found.len(), wrong.len()))
}

fn scan(connection: &mut Connection, collection: &Collection) -> Result<BTreeMap<i32, i64>, String> {
    let name = &collection.name;
    let find = DocumentBuf::new().with("find", &**name).with("batchSize", 10_000);
    let mut scanned = BTreeMap::new();
    for document in connection.find_all(DATABASE, find.as_ref()).map_err(|error| format!("{name}: {error}"))? {
        let document = document.map_err(|error| format!("{name}: {error}"))?;
        let (id, number) = parse(document.as_ref()).ok_or_else(|| {
            let start: String = format!("{document:?}").chars().take(300).collect();
            format!("{name}: half a document: {start}")
        })?;
        if scanned.insert(id, number).is_some() {
            return Err(format!("{name}: two documents have the _id {id}"));
        }
    }
    Ok(scanned)
}

fn read(connection: &mut Connection, collection: &Collection, id: i32) -> Result<Option<(i32, i64)>, ClientError> {
    let filter = DocumentBuf::new().with("_id", id);
    let find = DocumentBuf::new().with("find", &*collection.name).with("filter", &filter);
    let first = connection.find_all(DATABASE, find.as_ref())?.next().transpose()?;
    Ok(first.and_then(|document| parse(document.as_ref())))
}

fn count(connection: &mut Connection, collection: &Collection) -> Result<i64, ClientError> {
    let count = DocumentBuf::new().with("count", &*collection.name);
    let reply = connection.run_command(DATABASE, count.as_ref())?;
    Ok(match reply.as_ref().get("n") {
        Some(ValueRef::Int32(n)) => n.into(),
        Some(ValueRef::Int64(n)) => n,
        _ => -1,
    })
}

fn validate(connection: &mut Connection, collection: &Collection) -> Result<(), String> {
    let validate = DocumentBuf::new().with("validate", &*collection.name).with("full", true);
    match connection.run_command(DATABASE, validate.as_ref()) {
        Ok(reply) if matches!(reply.as_ref().get("valid"), Some(ValueRef::Boolean(true))) => Ok(()),
        // The crash came after the drop and before the collection was created again.
        Err(ClientError::Command(error)) if error.code == NAMESPACE_NOT_FOUND => Ok(()),
        other => Err(format!("{}: validate: {other:?}", collection.name)),
    }
}
