//! `dataSize`: bytes and number of a collection's documents. Both are kept, so only those of a part are read.

use crate::authorization::{Privileges, collections};
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use crate::made_while_read;
use bunko_bson::{DocumentRef, ValueRef, Writer};
use bunko_catalog::{Collection, Namespace};
use bunko_errors::{ErrorCode, Failure};
use bunko_query::{FindQuery, Hint, plan};
use std::sync::Arc;

pub(super) const COMMAND: Command = Command {
    name: "dataSize",
    aliases: &["datasize"],
    fields: &["keyPattern", "min", "max", "estimate"],
    databases: Databases::Any,
    transaction: TransactionUse::Refused,
    privileges: Privileges::By(collections::data_size),
    run,
};

/// A range of index keys.
struct Part<'a> {
    key_pattern: DocumentRef<'a>,
    min: DocumentRef<'a>,
    max: DocumentRef<'a>,
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let argument = invocation.argument();
    if argument.is_nullish() {
        let message = "BSON field 'dataSize.dataSize' is missing but a required field";
        return Err(Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message).into());
    }
    let ValueRef::String(name) = argument else {
        return Err(invocation.mismatch("dataSize", argument, "type 'string'").into());
    };
    let namespace = Namespace::parse(name)?;
    made_while_read::check(invocation, &namespace, invocation.command)?;
    let is_estimate = invocation.boolean("estimate", false)?;
    let part = part(invocation)?;
    let (bytes, count) = match (invocation.collection_not_view(&namespace)?, part) {
        (None, _) => (0, 0),
        (Some(collection), None) => (collection.data_bytes(), collection.count()),
        (Some(collection), Some(part)) => {
            invocation.refuse_if_long(true)?;
            size_of_part(invocation, &collection, &part)?
        }
    };
    reply
        .append("estimate", is_estimate)
        .append("size", bytes as i64)
        .append("numObjects", count as i64)
        .append("millis", invocation.started().elapsed().as_millis() as i64);
    Ok(())
}

fn part<'a>(invocation: &Invocation<'a>) -> Result<Option<Part<'a>>, Failure> {
    let key_pattern = invocation.document("keyPattern")?;
    let (min, max) = match (invocation.document("min")?, invocation.document("max")?) {
        (None, None) => return Ok(None),
        (Some(min), Some(max)) => (min, max),
        _ => return Err(Failure::bad_value("only one of min or max specified")),
    };
    let key_pattern = key_pattern.ok_or_else(no_index)?;
    Ok(Some(Part { key_pattern, min, max }))
}

fn no_index() -> Failure {
    Failure::new(ErrorCode::OPERATION_FAILED, "couldn't find valid index containing key pattern")
}

fn size_of_part(
    invocation: &Invocation<'_>,
    collection: &Arc<Collection>,
    part: &Part<'_>,
) -> Result<(u64, u64), Failure> {
    let hint = Hint::parse(ValueRef::Document(part.key_pattern))?;
    let has_index = collection.ready_indexes().iter().any(|index| {
        let key = index.document.as_ref().get("key").and_then(ValueRef::as_document);
        key.is_some_and(|key| key.as_bytes() == part.key_pattern.as_bytes())
    });
    if !has_index {
        return Err(no_index());
    }
    let mut query = FindQuery::new(DocumentRef::EMPTY, invocation.scope())?;
    query.hint = hint;
    query.set_key_bounds(part.min, part.max);
    let plan = match plan(collection, Arc::new(query)) {
        Ok(plan) => plan,
        // There is nothing between a bound and itself, nor beyond it.
        Err(failure) if failure.code() == ErrorCode(51175) => return Ok((0, 0)),
        Err(failure) => return Err(failure),
    };
    let mut execution = plan.open()?;
    let (mut bytes, mut count) = (0, 0);
    while let Some(document) = execution.next()? {
        bytes += document.len_bytes() as u64;
        count += 1;
    }
    Ok((bytes, count))
}
