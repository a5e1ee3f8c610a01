//! Compares a server with its model.

use crate::model::{Collection, Model, document};
use crate::server::{Outcome, Server};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use std::collections::{BTreeMap, BTreeSet};

/// Why a comparison did not succeed.
#[derive(Debug)]
pub enum Difference {
    /// The data differs from the model: a promise is broken.
    Wrong(String),
    /// The data could not be read.
    Failed(String),
}

/// Compares everything that clients can see: collections, indexes, documents and counts.
///
/// # Errors
/// The first difference.
pub fn all(server: &Server, model: &Model) -> Result<(), Difference> {
    let found = names(server, &DocumentBuf::new().with("listCollections", 1), "name")?;
    let expected: BTreeSet<String> = model.collections.keys().map(|&name| name.to_owned()).collect();
    expect("the collections", &found, &expected)?;
    for (name, collection) in &model.collections {
        one(server, name, collection)?;
    }
    Ok(())
}

fn one(server: &Server, name: &str, collection: &Collection) -> Result<(), Difference> {
    let indexes = names(server, &DocumentBuf::new().with("listIndexes", name), "name")?;
    let mut expected: BTreeSet<String> = collection.indexes.iter().map(|&field| field.to_owned()).collect();
    expected.insert("_id_".to_owned());
    expect(&format!("the indexes of {name}"), &indexes, &expected)?;
    let find = DocumentBuf::new().with("find", name).with("batchSize", 10_000);
    let reply = ask(server, &find)?;
    documents(name, batch(reply.as_ref()), collection)?;
    let count = ask(server, &DocumentBuf::new().with("count", name))?;
    let count = count.as_ref().get("n").and_then(number);
    expect(&format!("the count of {name}"), &count, &Some(collection.documents.len() as i64))?;
    let expected: BTreeSet<i64> = collection.documents.keys().map(|id| i64::from(*id)).collect();
    let only_id = DocumentBuf::new().with("_id", 1);
    for index in &indexes {
        let hint = DocumentBuf::new().with(if index == "_id_" { "_id" } else { index }, 1);
        let reply = ask(server, &find.clone().with("hint", &hint).with("projection", &only_id))?;
        let found = batch(reply.as_ref()).into_iter().flat_map(ArrayRef::iter);
        let found: Vec<i64> = found.filter_map(|document| number(document.as_document()?.get("_id")?)).collect();
        expect(&format!("the ids of {name} by {index}"), &found.len(), &expected.len())?;
        expect(&format!("the ids of {name} by {index}"), &found.into_iter().collect(), &expected)?;
    }
    let validated = ask(server, &DocumentBuf::new().with("validate", name).with("full", true))?;
    let is_valid = validated.as_ref().get("valid");
    if !matches!(is_valid, Some(ValueRef::Boolean(true))) {
        return Err(Difference::Wrong(format!("{name} is not valid: {validated:?}")));
    }
    Ok(())
}

fn documents(name: &str, found: Option<ArrayRef<'_>>, collection: &Collection) -> Result<(), Difference> {
    let mut by_id = BTreeMap::new();
    for document in found.into_iter().flat_map(ArrayRef::iter).filter_map(ValueRef::as_document) {
        let id = document.get("_id").and_then(number).unwrap_or(-1) as i32;
        if by_id.insert(id, document).is_some() {
            return Err(Difference::Wrong(format!("{name} has _id {id} twice")));
        }
    }
    let ids: Vec<i32> = by_id.keys().copied().collect();
    let expected: Vec<i32> = collection.documents.keys().copied().collect();
    expect(&format!("the ids of {name}"), &ids, &expected)?;
    for (id, content) in &collection.documents {
        if by_id[id].as_bytes() != document(*id, *content).as_ref().as_bytes() {
            let found = by_id[id].get("v");
            return Err(Difference::Wrong(format!(
                "{name} has another document {id}: v is {found:?}, not {content:?}"
            )));
        }
    }
    Ok(())
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<(), Difference> {
    if found == expected {
        return Ok(());
    }
    Err(Difference::Wrong(format!("{what}: {found:?} instead of {expected:?}")))
}

fn ask(server: &Server, command: &DocumentBuf) -> Result<DocumentBuf, Difference> {
    match server.run("test", command.as_ref()) {
        Outcome::Acknowledged(reply) => Ok(reply),
        Outcome::Refused(message) => Err(Difference::Failed(message)),
        Outcome::Unknown => Err(Difference::Failed("no reply".to_owned())),
    }
}

fn number(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int32(number) => Some(i64::from(number)),
        ValueRef::Int64(number) => Some(number),
        _ => None,
    }
}

fn batch(reply: DocumentRef<'_>) -> Option<ArrayRef<'_>> {
    reply.get("cursor")?.as_document()?.get("firstBatch")?.as_array()
}

fn names(server: &Server, command: &DocumentBuf, field: &str) -> Result<BTreeSet<String>, Difference> {
    let reply = ask(server, command)?;
    let names = batch(reply.as_ref()).into_iter().flat_map(ArrayRef::iter);
    Ok(names.filter_map(|item| Some(item.as_document()?.get(field)?.as_str()?.to_owned())).collect())
}
