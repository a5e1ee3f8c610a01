//! `filemd5`: the MD5 of a GridFS file, whose chunks are read in order by an index.
//!
//! With `partialOk`, `md5state` and `startAt` the servers of a cluster continue each other's work: each digests the
//! chunks that it has up to the first missing one, and returns its state.
//! Source: MongoDB manual 8.2, "filemd5"; the GridFS specification.

mod md5_state;

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{BinarySubtype, DocumentBuf, DocumentRef, ValueRef, Writer, hexadecimal, number};
use bunko_catalog::{Collection, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::{FindQuery, plan};
use bunko_request::Request;
use bunko_request::facts::{ANY_FIELDS, CommandFacts};
use bunko_request::fields::Fields;
use bunko_session::Halt;
use md5::{Digest, Md5};
use std::sync::Arc;

/// The default prefix of the names of GridFS collections.
const ROOT: &str = "fs";

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "filemd5", fields: ANY_FIELDS, ..CommandFacts::PLAIN },
    privileges: Privileges::By(|asker, request| asker.on_collection(request.database, &chunks(request), Action::Find)),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    parse_root(invocation)?;
    let namespace = Namespace::new(invocation.request.database, &chunks(&invocation.request))?;
    invocation.refuse_if_long(true)?;
    let extent = parse_extent(invocation);
    let (mut md5, mut count) = match extent {
        Extent::Whole => (Md5::new(), 0),
        Extent::Part => parse_begun(invocation)?,
    };
    if let Some(collection) = invocation.collection_not_view(&namespace)? {
        count = add_chunks(invocation, &collection, extent, count, &mut md5)?;
    }
    if extent == Extent::Part {
        reply.append("md5state", ValueRef::Binary { subtype: 0, bytes: &md5_state::encode(&md5) });
    }
    reply.append("numChunks", count).append("md5", hexadecimal::small(&md5.finalize()).as_str());
    Ok(())
}

/// The collection of the file's chunks.
fn chunks(request: &Request<'_>) -> String {
    let root = request.body.get("root").and_then(ValueRef::as_str).filter(|root| !root.is_empty());
    format!("{}.chunks", root.unwrap_or(ROOT))
}

/// Which chunks to digest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All chunks; a missing one is an error.
    Whole,
    /// Chunks up to the first missing one.
    Part,
}

fn parse_extent(fields: &Fields<'_>) -> Extent {
    if fields.truth("partialOk") { Extent::Part } else { Extent::Whole }
}

/// Refuses a root that is not a string.
/// # Errors
/// `InvalidNamespace`.
fn parse_root(fields: &Fields<'_>) -> Result<()> {
    match fields.value("root") {
        None | Some(ValueRef::String(_)) => Ok(()),
        Some(root) => {
            let message = format!("'root' must be of type String, found {}", root.kind().alias());
            Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message))
        }
    }
}

/// The digest state of another server, and the number of the chunk to continue with.
/// # Errors
/// 50847 and 16247 for a malformed state.
fn parse_begun(fields: &Fields<'_>) -> Result<(Md5, i32)> {
    let md5 = match fields.value("md5state") {
        None => Md5::new(),
        Some(value) => {
            let state = binary(value).ok_or_else(|| not_binary(50847, value))?;
            let refused = || Failure::new(ErrorCode(16247), "md5 state not correct size");
            md5_state::decode(state).ok_or_else(refused)?
        }
    };
    let start = fields.value("startAt").and_then(number::clamp_to_i64).unwrap_or(0);
    Ok((md5, start.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32))
}

/// Digests the file's chunks in order, beginning with number `start`, and returns the number of the next one.
/// # Errors
/// `NoQueryExecutionPlans` without an index on the chunks; 10040 if a chunk is missing; errors of [`data`].
fn add_chunks(
    invocation: &Invocation<'_>,
    collection: &Arc<Collection>,
    extent: Extent,
    start: i32,
    md5: &mut Md5,
) -> Result<i32> {
    let from = DocumentBuf::new().with("$gte", start);
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
    let mut count = start;
    while let Some(chunk) = execution.next()? {
        let n = chunk.get("n").filter(|n| n.is_number()).and_then(number::as_f64).unwrap_or_default();
        if n.trunc() != f64::from(count) {
            if extent == Extent::Part {
                break;
            }
            let message = format!("chunks out of order: {n} where {count} was to come");
            return Err(Failure::new(ErrorCode(10040), message));
        }
        md5.update(data(chunk)?);
        // The largest number has no successor.
        let Some(next) = count.checked_add(1) else { break };
        count = next;
    }
    Ok(count)
}

/// The data of a chunk.
/// # Errors
/// 50848 for a chunk without data, 50849 for data that are not binary.
fn data(chunk: DocumentRef<'_>) -> Result<&[u8]> {
    let Some(value) = chunk.get("data") else {
        let message = "The element that calls binDataClean() must be type of BinData, but type of missing found. \
                       Field name is required";
        return Err(Failure::new(ErrorCode(50848), message));
    };
    binary(value).ok_or_else(|| not_binary(50849, value))
}

fn binary(value: ValueRef<'_>) -> Option<&[u8]> {
    match value {
        // Values of the old subtype begin with a length of 4 bytes.
        ValueRef::Binary { subtype: BinarySubtype::OLD, bytes } => Some(bytes.get(4..).unwrap_or_default()),
        ValueRef::Binary { bytes, .. } => Some(bytes),
        _ => None,
    }
}

fn not_binary(code: i32, value: ValueRef<'_>) -> Failure {
    let found = value.kind().alias();
    let message = format!("The element that calls binDataClean() must be type of BinData, but type of {found} found.");
    Failure::new(ErrorCode(code), message)
}
