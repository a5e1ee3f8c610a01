//! `filemd5`: the MD5 of a file of GridFS, whose pieces are read in order by an index.
//!
//! Servers of a cluster go on with each other's work by `md5state` and `partialOk`; one server has all pieces.
//! Source: MongoDB manual 8.2, "filemd5"; the GridFS specification.

use crate::authorization::{Privileges, collections};
use crate::dispatch::{ANY_FIELDS, Command, Databases, Halt, Request, TransactionUse};
use crate::invocation::Invocation;
use bunko_bson::{BinarySubtype, DocumentBuf, DocumentRef, ValueRef, Writer, hexadecimal, number};
use bunko_catalog::{Collection, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::{FindQuery, plan};
use md5::{Digest, Md5};
use std::sync::Arc;

/// What the collections of a file are called after where nothing is said.
const ROOT: &str = "fs";

pub(super) const COMMAND: Command = Command {
    name: "filemd5",
    aliases: &[],
    fields: ANY_FIELDS,
    databases: Databases::Any,
    transaction: TransactionUse::Refused,
    privileges: Privileges::By(collections::file_md5),
    run,
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    if let Some(root) = invocation.request.body.get("root").filter(|root| root.as_str().is_none()) {
        let message = format!("'root' must be of type String, found {}", root.kind().alias());
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message).into());
    }
    for name in ["md5state", "startAt"] {
        if invocation.field(name).is_some() {
            return Err(invocation.unsupported(name).into());
        }
    }
    if invocation.truth("partialOk") {
        return Err(invocation.unsupported("partialOk").into());
    }
    let namespace = Namespace::new(invocation.request.database, &chunks(&invocation.request))?;
    invocation.refuse_if_long(true)?;
    let (mut md5, mut count) = (Md5::new(), 0);
    if let Some(collection) = invocation.collection_not_view(&namespace)? {
        count = add_chunks(invocation, &collection, &mut md5)?;
    }
    reply.append("numChunks", count).append("md5", hexadecimal::small(&md5.finalize()).as_str());
    Ok(())
}

/// The collection of a file's pieces.
pub(crate) fn chunks(request: &Request<'_>) -> String {
    let root = request.body.get("root").and_then(ValueRef::as_str).filter(|root| !root.is_empty());
    format!("{}.chunks", root.unwrap_or(ROOT))
}

/// Adds the pieces of the file in order; how many there are.
/// # Errors
/// `NoQueryExecutionPlans` without an index that leads to them; 10040 where one is missing; 50848 for one without data.
fn add_chunks(invocation: &Invocation<'_>, collection: &Arc<Collection>, md5: &mut Md5) -> Result<i32> {
    let from = DocumentBuf::new().with("$gte", 0);
    let filter = DocumentBuf::new().with("files_id", invocation.argument()).with("n", &from);
    let order = DocumentBuf::new().with("files_id", 1).with("n", 1);
    let mut query = FindQuery::new(filter.as_ref(), invocation.scope())?;
    query.set_sort(order.as_ref())?;
    let plan = plan(collection, query)?;
    if !plan.uses_index() {
        let message = format!("filemd5 needs an index of {} on {{files_id: 1, n: 1}}", collection.namespace());
        return Err(Failure::new(ErrorCode::NO_QUERY_EXECUTION_PLANS, message));
    }
    let mut execution = plan.open()?;
    let mut count = 0;
    while let Some(chunk) = execution.next()? {
        let n = chunk.get("n").filter(|n| n.is_number()).and_then(number::as_f64).unwrap_or_default();
        if n.trunc() != f64::from(count) {
            let message = format!("chunks out of order: {n} where {count} was to come");
            return Err(Failure::new(ErrorCode(10040), message));
        }
        md5.update(data(chunk)?);
        count += 1;
    }
    Ok(count)
}

fn data(chunk: DocumentRef<'_>) -> Result<&[u8]> {
    match chunk.get("data") {
        // The old subtype has its length within.
        Some(ValueRef::Binary { subtype: BinarySubtype::OLD, bytes }) => Ok(bytes.get(4..).unwrap_or_default()),
        Some(ValueRef::Binary { bytes, .. }) => Ok(bytes),
        other => {
            let found = other.map_or("missing", |other| other.kind().alias());
            Err(Failure::new(ErrorCode(50848), format!("'data' of a chunk must be of type binData, found {found}")))
        }
    }
}
