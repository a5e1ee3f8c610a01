//! The opcodes of drivers from before 2017: OP_QUERY, OP_GET_MORE, OP_KILL_CURSORS.
//!
//! A command in an OP_QUERY is a command like any other, answered by an OP_REPLY of one document. A query on a
//! collection becomes the `find` that a newer driver would have sent, so there is one way to read.

use crate::executed::Executed;
use crate::message_room::count_copy;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_command::{Answer, ClientConnection, Request, RunOn, Service};
use bunko_wire::{GetMore, KillCursors, Query, QueryFlags, ReplyFlags, ReplyHead, WireError, write_reply};

/// Runs an OP_QUERY.
pub(crate) fn query(
    service: &Service,
    connection: &mut ClientConnection,
    frame: &[u8],
    run_on: RunOn,
    out: &mut Vec<u8>,
) -> Result<Executed, WireError> {
    let query = Query::parse(frame)?;
    let Some(database) = query.command_database() else {
        let (database, find) = find_command(&query);
        return run_cursor(service, connection, database, &find, run_on, query.request_id, out);
    };
    let body = match query.query.get("$query") {
        Some(ValueRef::Document(body)) => body,
        _ => query.query,
    };
    let mut reply = Vec::new();
    match service.run(connection, Request::new(database, body, None), run_on, &mut reply) {
        Ok(answer) => {
            let head = ReplyHead::COMMAND;
            let _copy = count_copy(&service.facts.memory_limits.server, reply.len());
            write_reply(out, query.request_id, query.request_id, head, |out| out.extend_from_slice(&reply))?;
            Ok(Executed::Done(Answer { follow_up: None, ..answer }))
        }
        Err(halt) => Ok(Executed::of(halt)),
    }
}

/// Runs an OP_GET_MORE.
pub(crate) fn get_more(
    service: &Service,
    connection: &mut ClientConnection,
    frame: &[u8],
    run_on: RunOn,
    out: &mut Vec<u8>,
) -> Result<Executed, WireError> {
    let get_more = GetMore::parse(frame)?;
    let (database, collection) = split(get_more.full_collection_name);
    let mut body = DocumentBuf::new().with("getMore", get_more.cursor_id).with("collection", collection);
    if get_more.number_to_return > 0 {
        body.append("batchSize", get_more.number_to_return);
    }
    run_cursor(service, connection, database, &body, run_on, get_more.request_id, out)
}

/// Runs an OP_KILL_CURSORS, which has no reply.
pub(crate) fn kill_cursors(
    service: &Service,
    connection: &mut ClientConnection,
    frame: &[u8],
) -> Result<Executed, WireError> {
    for id in KillCursors::parse(frame)?.cursor_ids() {
        service.close_cursor(connection, id);
    }
    Ok(Executed::Done(Answer::default()))
}

fn split(namespace: &str) -> (&str, &str) {
    namespace.split_once('.').unwrap_or((namespace, ""))
}

/// The `find` that is equivalent to an OP_QUERY on a collection.
fn find_command<'a>(query: &Query<'a>) -> (&'a str, DocumentBuf) {
    let (database, collection) = split(query.full_collection_name);
    let mut find = DocumentBuf::new().with("find", collection);
    let wrapped = query.query.get("$query").or_else(|| query.query.get("query")).and_then(ValueRef::as_document);
    find.append("filter", wrapped.unwrap_or(query.query));
    if wrapped.is_some() {
        for (old, new) in [("$orderby", "sort"), ("orderby", "sort"), ("$hint", "hint"), ("$maxTimeMS", "maxTimeMS")] {
            if let Some(value) = query.query.get(old) {
                find.append(new, value);
            }
        }
    }
    if let Some(fields) = query.return_fields {
        find.append("projection", fields);
    }
    if query.skip > 0 {
        find.append("skip", query.skip);
    }
    match query.number_to_return {
        0 => {}
        1 => drop(find.append("limit", 1).append("singleBatch", true)),
        count if count < 0 => {
            find.append("limit", i64::from(count).abs()).append("singleBatch", true);
        }
        count => drop(find.append("batchSize", count)),
    }
    for (flag, field) in [
        (QueryFlags::TAILABLE_CURSOR, "tailable"),
        (QueryFlags::AWAIT_DATA, "awaitData"),
        (QueryFlags::NO_CURSOR_TIMEOUT, "noCursorTimeout"),
    ] {
        if query.flags.contains(flag) {
            find.append(field, true);
        }
    }
    (database, find)
}

/// Runs a command that answers with a cursor, and puts its batch into an OP_REPLY.
fn run_cursor(
    service: &Service,
    connection: &mut ClientConnection,
    database: &str,
    body: &DocumentBuf,
    run_on: RunOn,
    request_id: i32,
    out: &mut Vec<u8>,
) -> Result<Executed, WireError> {
    let mut reply = Vec::new();
    let request = Request::new(database, body.as_ref(), None);
    let answer = match service.run(connection, request, run_on, &mut reply) {
        // Clients of the legacy protocol ask for each batch.
        Ok(answer) => Answer { follow_up: None, ..answer },
        Err(halt) => return Ok(Executed::of(halt)),
    };
    let _copy = count_copy(&service.facts.memory_limits.server, reply.len());
    let reply = DocumentRef::trusted(&reply);
    let Some(cursor) = reply.get("cursor").and_then(ValueRef::as_document) else {
        return write_failure(reply, request_id, out);
    };
    let cursor_id = if let Some(ValueRef::Int64(id)) = cursor.get("id") { id } else { 0 };
    let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch")).and_then(ValueRef::as_array);
    let head = ReplyHead { flags: ReplyFlags::AWAIT_CAPABLE, cursor_id, starting_from: 0 };
    write_reply(out, request_id, request_id, head, |out| {
        for document in batch.into_iter().flat_map(|batch| batch.as_document().iter()) {
            if let ValueRef::Document(document) = document.value {
                out.extend_from_slice(document.as_bytes());
            }
        }
    })?;
    Ok(Executed::Done(answer))
}

/// Old drivers look for `$err` and the flags.
fn write_failure(reply: DocumentRef<'_>, request_id: i32, out: &mut Vec<u8>) -> Result<Executed, WireError> {
    let is_cursor_missing = matches!(reply.get("code"), Some(ValueRef::Int32(43)));
    let flags = if is_cursor_missing { ReplyFlags::CURSOR_NOT_FOUND } else { ReplyFlags::QUERY_FAILURE };
    let mut document = DocumentBuf::new();
    document.append("$err", reply.get("errmsg").unwrap_or(ValueRef::String("unknown error")));
    document.extend(reply);
    write_reply(out, request_id, request_id, ReplyHead { flags, ..ReplyHead::COMMAND }, |out| {
        if !is_cursor_missing {
            out.extend_from_slice(document.as_ref().as_bytes());
        }
    })?;
    Ok(Executed::Done(Answer::default()))
}
