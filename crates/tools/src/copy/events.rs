//! The source's change stream: which documents and definitions have changed.

use super::pair::End;
use crate::ToolError;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Timestamp, Value, ValueRef, number};
use bunko_client::ClientError;
use std::time::Duration;

/// Events in one reply, at most; each has an `_id` and names.
const EVENTS_MAX: i32 = 5000;
/// MongoDB's `ChangeStreamHistoryLost`.
const HISTORY_LOST: i32 = 286;

/// One event.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// A document was inserted, changed or deleted.
    Document {
        database: String,
        collection: String,
        id: Value,
    },
    /// The definition of a collection or view, or an index, was made or changed.
    Definition {
        database: String,
        collection: String,
    },
    Dropped {
        database: String,
        collection: String,
    },
    Renamed {
        database: String,
        collection: String,
        to_database: String,
        to: String,
    },
    DatabaseDropped {
        database: String,
    },
}

/// The events of one reply.
pub(super) struct Batch {
    pub(super) events: Vec<Event>,
    /// Resume token after the events.
    pub(super) token: DocumentBuf,
    /// Cluster time of the token.
    pub(super) until: Timestamp,
    /// The source's `operationTime` in the reply.
    pub(super) now: Timestamp,
}

/// An open change stream.
pub(super) struct Stream {
    cursor: i64,
    first: Option<Batch>,
}

impl Stream {
    /// Opens a stream after `token`, or at a time if there is none.
    /// # Errors
    /// The server's, or the connection's; `Failed` if the source has no longer what is to be read.
    pub(super) fn open(source: &mut End, token: Option<&DocumentBuf>, noted: Timestamp) -> Result<Self, ToolError> {
        let mut stage = DocumentBuf::new().with("allChangesForCluster", true).with("showExpandedEvents", true);
        match token {
            Some(token) => stage.append("resumeAfter", token),
            None => stage.append("startAtOperationTime", ValueRef::Timestamp(noted)),
        };
        // The documents are read later, all states of each at once.
        let mut left_out = DocumentBuf::new();
        for field in ["fullDocument", "updateDescription", "operationDescription", "lsid", "txnNumber", "wallTime"] {
            left_out.append(field, 0_i32);
        }
        let stages = [DocumentBuf::new().with("$changeStream", &stage), DocumentBuf::new().with("$project", &left_out)];
        let command = DocumentBuf::new()
            .with("aggregate", 1_i32)
            .with("pipeline", &stages.iter().collect::<ArrayBuf>())
            .with("cursor", &DocumentBuf::new().with("batchSize", 0_i32));
        let reply = source.run("admin", &command).map_err(advised)?;
        let (cursor, first) = read(reply.as_ref())?;
        Ok(Self { cursor, first: Some(first) })
    }

    /// Waits for the next events, at most `awaited`; returns a batch without events if none came.
    /// # Errors
    /// As [`Self::open`].
    pub(super) fn next(&mut self, source: &mut End, awaited: Duration) -> Result<Batch, ToolError> {
        if let Some(first) = self.first.take().filter(|first| !first.events.is_empty()) {
            return Ok(first);
        }
        let command = DocumentBuf::new()
            .with("getMore", self.cursor)
            .with("collection", "$cmd.aggregate")
            .with("batchSize", EVENTS_MAX)
            .with("maxTimeMS", awaited.as_millis() as i64);
        let reply = source.run("admin", &command).map_err(advised)?;
        let (cursor, batch) = read(reply.as_ref())?;
        if cursor == 0 {
            return Err(ToolError::Failed("the source has ended its change stream".into()));
        }
        Ok(batch)
    }
}

fn advised(error: ToolError) -> ToolError {
    match &error {
        ToolError::Server { cause, .. } if matches!(&**cause, ClientError::Command(refusal) if refusal.code == HISTORY_LOST) => {
            ToolError::Failed(format!(
                "the source's oplog no longer has the changes since the copy stopped ({cause}): --anew begins anew; a \
                 larger oplog lets a copy rest for longer"
            ))
        }
        _ => error,
    }
}

fn read(reply: DocumentRef<'_>) -> Result<(i64, Batch), ToolError> {
    read_batch(reply)
        .ok_or_else(|| ToolError::Failed("the source's change stream gave a reply without a position".into()))?
}

fn read_batch(reply: DocumentRef<'_>) -> Option<Result<(i64, Batch), ToolError>> {
    let cursor = reply.get("cursor")?.as_document()?;
    let id = number::as_i64_exact(cursor.get("id")?)?;
    let token = cursor.get("postBatchResumeToken")?.as_document()?;
    let ValueRef::Timestamp(now) = reply.get("operationTime")? else { return None };
    let until = time_of(token)?;
    let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"))?.as_array()?;
    let events: Result<_, _> = batch.iter().filter_map(ValueRef::as_document).map(event).collect();
    Some(events.map(|events| (id, Batch { events, token: token.to_owned(), until, now })))
}

/// The time of a resume token: the digits after the type of its first part.
/// Source: the tokens that MongoDB gives to clients.
fn time_of(token: DocumentRef<'_>) -> Option<Timestamp> {
    let data = token.get("_data")?.as_str()?.strip_prefix("82")?;
    let digits = |range| u32::from_str_radix(data.get(range)?, 16).ok();
    Some(Timestamp { seconds: digits(0..8)?, increment: digits(8..16)? })
}

fn event(event: DocumentRef<'_>) -> Result<Event, ToolError> {
    let kind = event.get("operationType").and_then(ValueRef::as_str).unwrap_or_default();
    let of = |field| {
        let namespace = event.get(field).and_then(ValueRef::as_document);
        let text = |name| namespace.and_then(|namespace| namespace.get(name)?.as_str());
        (text("db").unwrap_or_default().to_owned(), text("coll").unwrap_or_default().to_owned())
    };
    let (database, collection) = of("ns");
    Ok(match kind {
        "insert" | "update" | "replace" | "delete" => {
            let key = event.get("documentKey").and_then(ValueRef::as_document);
            let id = key.and_then(|key| key.get("_id"));
            let id = id.ok_or_else(|| ToolError::Failed(format!("an event without a documentKey: {event:?}")))?;
            Event::Document { database, collection, id: id.to_value() }
        }
        "create" | "createIndexes" | "dropIndexes" | "modify" => Event::Definition { database, collection },
        "drop" => Event::Dropped { database, collection },
        "rename" => {
            let (to_database, to) = of("to");
            Event::Renamed { database, collection, to_database, to }
        }
        "dropDatabase" => Event::DatabaseDropped { database },
        other => {
            return Err(ToolError::Failed(format!(
                "{database}.{collection}: following an event '{other}' is not supported yet"
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::extended_json::parse_document;

    fn shown(json: &str) -> String {
        match event(parse_document(json).expect("JSON").as_ref()) {
            Ok(event) => format!("{event:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn events_tell_what_has_changed() {
        for kind in ["insert", "update", "replace", "delete"] {
            let json =
                format!(r#"{{"operationType":"{kind}","ns":{{"db":"a","coll":"b"}},"documentKey":{{"_id":7}}}}"#);
            assert_eq!(shown(&json), r#"Document { database: "a", collection: "b", id: Int32(7) }"#);
        }
        let renamed = r#"{"operationType":"rename","ns":{"db":"a","coll":"b"},"to":{"db":"c","coll":"d"}}"#;
        let expected = r#"Renamed { database: "a", collection: "b", to_database: "c", to: "d" }"#;
        assert_eq!(shown(renamed), expected);
        let dropped = r#"{"operationType":"dropDatabase","ns":{"db":"a"}}"#;
        assert_eq!(shown(dropped), r#"DatabaseDropped { database: "a" }"#);
        let unknown = r#"{"operationType":"shardCollection","ns":{"db":"a","coll":"b"}}"#;
        assert_eq!(shown(unknown), "a.b: following an event 'shardCollection' is not supported yet");
    }

    #[test]
    fn a_token_has_its_time() {
        let token = parse_document(r#"{"_data":"826B0DAB4600003F7F2B042C01002904"}"#).expect("JSON");
        assert_eq!(time_of(token.as_ref()), Some(Timestamp { seconds: 0x6b0d_ab46, increment: 0x3f7f }));
        assert_eq!(time_of(parse_document(r#"{"_data":"8"}"#).expect("JSON").as_ref()), None);
    }
}
