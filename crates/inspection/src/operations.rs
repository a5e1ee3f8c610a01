//! Operations of clients, as the profiler and the log of a server show them.

use crate::InspectionError;
use crate::peer::Peer;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, extended_json};
use bunko_client::CommandError;
use std::io::BufRead;

/// Newest entries of a profile that are read, if they are not too long together.
const ENTRIES_MAX: i32 = 10_000;
/// Longest line of a log that is read; MongoDB's lines have at most 10 KB of attributes.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// MongoDB's id of the line `Slow query`.
const SLOW_QUERY: i64 = 51803;

/// Commands that read or write documents.
const KEPT: [&str; 8] = ["find", "aggregate", "count", "distinct", "findAndModify", "mapReduce", "update", "delete"];
/// Updates and deletes with their lists of statements.
const STATEMENTS: [(&str, &str); 2] = [("update", "updates"), ("delete", "deletes")];
/// Fields that tie a command to its session, its time, its sender or its collection, and `upsert`, which would insert a
/// document.
const LEFT_OUT: &[&str] = &[
    "upsert",
    "maxTimeMS",
    "maxTimeMSOpOnly",
    "usesDefaultMaxTimeMS",
    "collectionUUID",
    "clientOperationKey",
    "coordinator",
    "fromMongos",
    "fromRouter",
    "needsMerge",
    "runtimeConstants",
    "startOrContinueTransaction",
    "txnRetryCounter",
    "lsid",
    "$db",
    "$clusterTime",
    "$audit",
    "$client",
    "$configServerState",
    "$readPreference",
    "$configTime",
    "$topologyTime",
    "txnNumber",
    "autocommit",
    "startTransaction",
    "stmtId",
    "stmtIds",
    "readConcern",
    "writeConcern",
    "shardVersion",
    "databaseVersion",
];
/// The value of every field in a redacted log.
const REDACTED: &str = "###";
/// Characters of a command that a report shows.
const SHOWN_MAX: usize = 400;

/// The newest operations in a database's profile.
pub(crate) fn of_profile(
    server: &mut Peer<'_>,
    database: &str,
) -> Result<Result<Vec<DocumentBuf>, CommandError>, InspectionError> {
    // Leaves out the largest fields, which tell nothing here.
    let projection = DocumentBuf::new().with("execStats", 0_i32).with("locks", 0_i32);
    let command = DocumentBuf::new()
        .with("find", "system.profile")
        .with("sort", &DocumentBuf::new().with("$natural", -1_i32))
        .with("projection", &projection)
        .with("limit", ENTRIES_MAX);
    Ok(server.beginning(database, &command)?.map(|beginning| beginning.documents))
}

/// Visits the slow operations of a log in JSON lines. Other lines are skipped.
pub(crate) fn each_of_log(
    log: &mut dyn BufRead,
    visit: &mut dyn FnMut(DocumentRef<'_>) -> Result<(), InspectionError>,
) -> Result<(), InspectionError> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = std::io::Read::take(&mut *log, LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if read.map_err(InspectionError::Log)? == 0 {
            return Ok(());
        }
        let document = std::str::from_utf8(&line).ok().and_then(|line| extended_json::parse_document(line).ok());
        let Some(document) = document else { continue };
        // The server cuts commands that are too long for a line.
        if document.as_ref().get("truncated").is_some() {
            continue;
        }
        let id = document.as_ref().get("id").and_then(bunko_bson::number::as_i64_exact);
        let attributes = document.as_ref().get("attr").and_then(ValueRef::as_document);
        if let (Some(SLOW_QUERY), Some(entry)) = (id, attributes) {
            visit(entry)?;
        }
    }
}

/// A command as text, cut off after `SHOWN_MAX` characters.
pub(crate) fn shortened(command: &DocumentBuf) -> String {
    let text = extended_json::to_relaxed(command.into());
    let shown: String = text.chars().take(SHOWN_MAX).collect();
    if shown.len() < text.len() { shown + " ..." } else { shown }
}

/// The database and the command of an entry; `None` if there is no command that could run again.
pub(crate) fn operation(entry: DocumentRef<'_>) -> Option<(String, DocumentBuf)> {
    // An operation that failed on its server proves nothing if it fails on the rehearsal.
    if entry.get("errCode").is_some() {
        return None;
    }
    let (database, collection) = entry.get("ns")?.as_str()?.split_once('.')?;
    // The clients' tools read these, and rights to them differ.
    if collection.starts_with("system.") || ["local", "config"].contains(&database) {
        return None;
    }
    let field = |name| entry.get(name).and_then(ValueRef::as_document);
    let command = field("originatingCommand").or_else(|| field("command"))?;
    let is_redacted = || command.iter().any(|element| element.value.as_str() == Some(REDACTED));
    if command.get("$truncated").is_some() || is_redacted() {
        return None;
    }
    // The profiler shows one statement of an update or a delete.
    if command.get("q").is_some() {
        let (name, field) = STATEMENTS[usize::from(command.get("u").is_none())];
        let statements: ArrayBuf = [&statement(command)].into_iter().collect();
        return Some((database.to_owned(), DocumentBuf::new().with(name, collection).with(field, &statements)));
    }
    let first = command.first()?;
    if !KEPT.iter().any(|name| name.eq_ignore_ascii_case(first.name)) {
        return None;
    }
    let list = STATEMENTS.iter().find(|(name, _)| *name == first.name).map(|(_, list)| *list);
    let mut rehearsed = DocumentBuf::new();
    for element in command.iter().filter(|element| !LEFT_OUT.contains(&element.name)) {
        if Some(element.name) == list {
            let listed = element.value.as_array()?;
            let statements: Vec<_> = listed.iter().filter_map(ValueRef::as_document).map(statement).collect();
            let statements: ArrayBuf = statements.iter().collect();
            rehearsed.append(element.name, &statements);
        } else {
            rehearsed.append(element.name, element.value);
        }
    }
    // Drivers send statements beside the command, and then the log lacks them.
    let is_whole = list.is_none_or(|list| rehearsed.as_ref().get(list).is_some());
    is_whole.then(|| (database.to_owned(), rehearsed))
}

/// The statement without `upsert`, which would leave a document behind.
fn statement(shown: DocumentRef<'_>) -> DocumentBuf {
    let mut statement = DocumentBuf::new();
    for name in ["q", "u", "c", "multi", "collation", "arrayFilters", "hint", "sort", "limit"] {
        if let Some(value) = shown.get(name) {
            statement.append(name, value);
        }
    }
    if shown.get("u").is_none() && shown.get("limit").is_none() {
        statement.append("limit", 0_i32);
    }
    statement
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::extended_json::parse_document;

    fn of(json: &str) -> Option<String> {
        let (database, command) = operation(parse_document(json).expect("JSON").as_ref())?;
        Some(format!("{database} {}", extended_json::to_relaxed((&command).into())))
    }

    #[test]
    fn operations_become_commands() {
        let find = r#"{"ns": "d.c", "command": {"find": "c", "filter": {"a": 1}, "lsid": {"id": 1}, "$db": "d"}}"#;
        assert_eq!(of(find).as_deref(), Some(r#"d {"find":"c","filter":{"a":1}}"#));
        let more = r#"{"ns": "d.c", "command": {"getMore": 1}, "originatingCommand": {"count": "c"}}"#;
        assert_eq!(of(more).as_deref(), Some(r#"d {"count":"c"}"#));
        let update =
            r#"{"ns": "d.c", "op": "update", "command": {"q": {"a": 1}, "u": {"$set": {"b": 2}}, "multi": true}}"#;
        let expected = r#"d {"update":"c","updates":[{"q":{"a":1},"u":{"$set":{"b":2}},"multi":true}]}"#;
        assert_eq!(of(update).as_deref(), Some(expected));
        let remove = r#"{"ns": "d.c", "op": "remove", "command": {"q": {"a": 1}, "limit": 1}}"#;
        assert_eq!(of(remove).as_deref(), Some(r#"d {"delete":"c","deletes":[{"q":{"a":1},"limit":1}]}"#));
    }

    #[test]
    fn no_command_leaves_a_document_behind() {
        let update = r#"{"ns": "d.$cmd", "command": {"update": "c", "updates": [{"q": {"a": 1}, "u": {"$inc": {"b": 1}}, "upsert": true}], "ordered": true}}"#;
        let expected = r#"d {"update":"c","updates":[{"q":{"a":1},"u":{"$inc":{"b":1}}}],"ordered":true}"#;
        assert_eq!(of(update).as_deref(), Some(expected));
        let change = r#"{"ns": "d.c", "command": {"findAndModify": "c", "query": {"a": 1}, "update": {"b": 1}, "upsert": true}}"#;
        let expected = r#"d {"findAndModify":"c","query":{"a":1},"update":{"b":1}}"#;
        assert_eq!(of(change).as_deref(), Some(expected));
    }

    #[test]
    fn operations_that_cannot_run_again_are_left_out() {
        for entry in [
            r#"{"ns": "d.c", "command": {"find": "c"}, "errCode": 2}"#,
            r#"{"ns": "d.c", "command": {"insert": "c"}}"#,
            r#"{"ns": "d.c", "command": {"$truncated": "find"}}"#,
            r#"{"ns": "d.$cmd", "command": {"update": "c", "ordered": true}}"#,
            r####"{"ns": "d.c", "command": {"find": "###", "filter": {"a": "###"}}}"####,
            r#"{"ns": "d.system.profile", "command": {"find": "system.profile"}}"#,
            r#"{"ns": "d.$cmd", "command": {"ping": 1}}"#,
            "{}",
        ] {
            assert_eq!(of(entry), None, "{entry}");
        }
    }
}
