//! A slow operation as a span, for a collector of OpenTelemetry. It has names, counts and durations, and no values of the
//! command; the message of an error may have some, so only the error's code and name are told.
//! Source: OpenTelemetry semantic conventions 1.37, "Semantic conventions for MongoDB client operations".

use crate::entry::Entry;
use crate::observation::Observation;
use bunko_bson::{Value, ValueRef};
use bunko_traces::{Attribute, AttributeValue, OperationTrace, Span, SpanKind, TraceParent};
use std::net::SocketAddr;

/// Maximum number of bytes of a text in a span.
const TEXT_BYTES_MAX: usize = 1024;

/// The span of a finished operation. A statement's span is below that of its command.
pub fn of(entry: &Entry<'_>, random: &dyn Fn() -> u64) -> Span {
    let trace = entry.sender.trace.get_or_init(|| OperationTrace::begin(parent(entry), random));
    let is_statement = entry.outcome.reply_bytes.is_none();
    let end_ns = entry.sender.ended_ms.unsigned_abs() * 1_000_000;
    Span {
        context: if is_statement { trace.of_statement(random) } else { trace.of_command() },
        name: short(&format!("{} {}", entry.operation, entry.collection.unwrap_or(entry.database))),
        kind: if is_statement { SpanKind::Internal } else { SpanKind::Server },
        start_ns: end_ns.saturating_sub(entry.outcome.elapsed.as_nanos() as u64),
        end_ns,
        attributes: attributes(entry),
        error: entry.outcome.failure.map(|failure| failure.code().name()),
    }
}

/// The application's span. A `getMore` without one continues the command that opened its cursor.
fn parent(entry: &Entry<'_>) -> Option<TraceParent> {
    let own = entry.sender.comment.map(Value::as_ref);
    let opened_by = entry.observation.originating_command.as_ref();
    let comment = own.or_else(|| opened_by?.as_ref().get("comment"))?;
    let text = match comment {
        ValueRef::Document(comment) => comment.get("traceparent")?.as_str()?,
        comment => comment.as_str()?,
    };
    TraceParent::parse(text)
}

fn attributes(entry: &Entry<'_>) -> Vec<Attribute> {
    let sender = &entry.sender;
    let mut attributes = Attributes(Vec::with_capacity(24));
    attributes.put("db.namespace", short(entry.database));
    attributes.put_some("db.collection.name", entry.collection.map(short));
    attributes.put("db.operation.name", entry.operation);
    if let Some(failure) = entry.outcome.failure {
        let code = failure.code().0.to_string();
        attributes.put("db.response.status_code", code.clone());
        attributes.put("error.type", code);
    }
    if let Ok(client) = sender.peer.to_string().parse::<SocketAddr>() {
        attributes.put("client.address", client.ip().to_string());
        attributes.put("client.port", i64::from(client.port()));
    }
    attributes.put("bunko.connection_id", i64::from(sender.connection));
    attributes.put_some("bunko.app_name", sender.application.map(short));
    attributes.put_some("bunko.query_shape_hash", entry.shape_hash.and_then(|hash| hash()));
    put_plan(&mut attributes, entry.observation);
    put_counts(&mut attributes, entry.observation);
    if let Some(bytes) = entry.outcome.reply_bytes {
        attributes.put("bunko.request_bytes", sender.request_bytes as i64);
        attributes.put("bunko.response_bytes", bytes as i64);
    }
    attributes.put_some("bunko.cpu_ns", sender.processor_time.map(|time| time.as_nanos() as i64));
    attributes.0
}

fn put_plan(attributes: &mut Attributes, observation: &Observation) {
    let of_lookup = observation.plan_of_lookup();
    let Some(plan) = observation.plan.as_deref().or(of_lookup.as_ref()) else { return };
    attributes.put("bunko.plan_summary", short(&plan.summary));
    let hash = plan.hashes.as_ref().get("planCacheShapeHash").and_then(ValueRef::as_str);
    attributes.put_some("bunko.plan_cache_shape_hash", hash);
    attributes.put("bunko.has_sort_stage", plan.sorts);
    attributes.put("bunko.used_disk", observation.has_used_disk || plan.used_disk);
}

fn put_counts(attributes: &mut Attributes, observation: &Observation) {
    let counts = &observation.counts;
    let above_zero = |count: u64| (count > 0).then_some(count);
    for (name, count) in [
        ("db.response.returned_rows", observation.returned),
        ("bunko.keys_examined", observation.examined.map(|examined| examined.keys)),
        ("bunko.docs_examined", observation.examined.map(|examined| examined.documents)),
        ("bunko.matched", counts.matched),
        ("bunko.modified", counts.modified),
        ("bunko.upserted", counts.upserted),
        ("bunko.inserted", counts.inserted),
        ("bunko.deleted", counts.deleted),
        ("bunko.keys_inserted", above_zero(counts.keys_inserted)),
        ("bunko.keys_deleted", above_zero(counts.keys_deleted)),
    ] {
        attributes.put_some(name, count.map(|count| count as i64));
    }
}

struct Attributes(Vec<Attribute>);

impl Attributes {
    fn put(&mut self, name: &'static str, value: impl Into<AttributeValue>) {
        self.0.push((name, value.into()));
    }

    fn put_some(&mut self, name: &'static str, value: Option<impl Into<AttributeValue>>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }
}

fn short(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Outcome, Sender};
    use crate::lock_modes::Locking;
    use bunko_bson::DocumentBuf;
    use bunko_errors::{ErrorCode, Failure};
    use std::cell::OnceCell;
    use std::time::Duration;

    const TRACE_PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    /// The span of a `find` that failed, with that comment, and that opened cursor.
    fn span(comment: Option<&Value>, opened_by: Option<DocumentBuf>, reply_bytes: Option<usize>) -> Span {
        let observation = Observation { returned: Some(2), originating_command: opened_by, ..Observation::default() };
        let failure = Failure::new(ErrorCode::BAD_VALUE, "the value 'secret' is bad");
        of(
            &Entry {
                op: "query",
                log_type: "command",
                component: "COMMAND",
                operation: "find",
                database: "shop",
                namespace: "shop.things.sold".to_owned(),
                collection: Some("things.sold"),
                command: DocumentBuf::new().with("find", "things.sold").with("filter", "secret"),
                small_fields: None,
                shape_hash: Some(&|| Some("C0FFEE".to_owned())),
                sender: Sender {
                    connection: 7,
                    peer: &"[::1]:5000",
                    ip: None,
                    application: Some("till"),
                    user: None,
                    protocol: "op_msg",
                    request_bytes: 100,
                    comment,
                    trace: &OnceCell::new(),
                    ended_ms: 1_000,
                    processor_time: None,
                },
                observation: &observation,
                outcome: Outcome { elapsed: Duration::from_millis(250), failure: Some(&failure), reply_bytes },
                locking: Locking::Read,
                is_profiled: true,
            },
            &|| 3,
        )
    }

    #[test]
    fn a_command_is_told_without_its_values() {
        let span = span(None, None, Some(30));
        assert_eq!((span.name.as_str(), span.kind), ("find things.sold", SpanKind::Server));
        assert_eq!((span.start_ns, span.end_ns), (750_000_000, 1_000_000_000));
        assert_eq!(span.error.as_deref(), Some("BadValue"));
        let attribute =
            |name: &str| span.attributes.iter().find(|(own, _)| *own == name).map(|(_, value)| value.clone());
        for (name, value) in [
            ("db.namespace", "shop".into()),
            ("db.collection.name", "things.sold".into()),
            ("db.operation.name", "find".into()),
            ("db.response.status_code", "2".into()),
            ("error.type", "2".into()),
            ("db.response.returned_rows", 2.into()),
            ("client.address", "::1".into()),
            ("client.port", 5000.into()),
            ("bunko.app_name", "till".into()),
            ("bunko.query_shape_hash", "C0FFEE".into()),
            ("bunko.response_bytes", 30.into()),
        ] {
            assert_eq!(attribute(name), Some(value), "{name}");
        }
        assert!(!format!("{span:?}").contains("secret"), "{span:?}");
    }

    #[test]
    fn the_comment_names_the_parent() {
        let text = Value::String(TRACE_PARENT.to_owned());
        let field = Value::Document(DocumentBuf::new().with("by", "till").with("traceparent", TRACE_PARENT));
        let opened_by = DocumentBuf::new().with("find", "things").with("comment", TRACE_PARENT);
        for context in [
            span(Some(&text), None, Some(1)).context,
            span(Some(&field), None, Some(1)).context,
            span(None, Some(opened_by.clone()), Some(1)).context,
        ] {
            assert_eq!(context.parent, Some(0x00f0_67aa_0ba9_02b7_u64.to_be_bytes()));
            assert_eq!(context.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes());
        }
        let other = Value::String("nightly report".to_owned());
        assert_eq!(span(Some(&other), Some(opened_by), Some(1)).context.parent, None);
    }

    #[test]
    fn a_statement_is_below_its_command() {
        let span = span(None, None, None);
        assert_eq!(span.kind, SpanKind::Internal);
        assert!(span.context.parent.is_some() && !span.context.is_parent_remote);
    }
}
