//! Log lines: JSON with mongod's fields, or text for reading. The last lines are kept for `getLog`.

use crate::configuration::LogFormat;
use crate::log_file::LogOutput;
use bunko_bson::datetime::format_iso8601_ms;
use bunko_observe::LogLines;
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// Fields whose text is a JSON document, which is nested in the line: mongod's names for a client's metadata and the
/// configuration.
const DOCUMENTS: [&str; 2] = ["doc", "options"];

/// The tag of lines that `getLog: "startupWarnings"` returns, which shells print.
pub const STARTUP_WARNING: &str = "startupWarnings";

/// Writes each event as one line.
pub struct LogLayer {
    pub format: LogFormat,
    pub output: Arc<LogOutput>,
    pub lines: Arc<LogLines>,
    /// Milliseconds since 1970.
    pub clock: fn() -> i64,
}

/// An event's fields: those with a place of their own in a line, and the rest.
#[derive(Default)]
struct Fields {
    message: String,
    id: u64,
    context: String,
    tag: Option<String>,
    attributes: Map<String, Value>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), &value) {
            ("message", Value::String(text)) => self.message.clone_from(text),
            ("ctx", Value::String(text)) => self.context.clone_from(text),
            ("tags", Value::String(text)) => self.tag = Some(text.clone()),
            ("id", Value::Number(number)) => self.id = number.as_u64().unwrap_or_default(),
            // Several attributes in one JSON document.
            ("attributes", Value::String(text)) => {
                let attributes: Option<Map<String, Value>> = serde_json::from_str(text).ok();
                self.attributes.extend(attributes.into_iter().flatten());
            }
            (name, Value::String(text)) if DOCUMENTS.contains(&name) => {
                let document = serde_json::from_str(text).unwrap_or_else(|_| value.clone());
                self.attributes.insert(name.to_owned(), document);
            }
            (name, _) => drop(self.attributes.insert(name.to_owned(), value)),
        }
    }
}

/// Fields that may contain data that clients sent or stored. Names of clients, namespaces and codes stay.
const OF_CLIENTS: [&str; 4] = ["command", "errInfo", "errMsg", "originatingCommand"];
/// Components whose errors may contain such data: those of commands, and panics.
const COMPONENTS_OF_CLIENTS: [&str; 5] = ["ASSERT", "COMMAND", "ACCESS", "INDEX", "WRITE"];
/// Placeholder for a value, as in MongoDB.
const REDACTED: &str = "###";

impl Fields {
    /// Replaces clients' data with the placeholder.
    fn redact(&mut self, component: &str) {
        for (name, value) in &mut self.attributes {
            let is_error = name == "error" && COMPONENTS_OF_CLIENTS.contains(&component);
            if is_error || OF_CLIENTS.contains(&name.as_str()) {
                redact(value);
            }
        }
    }
}

/// Replaces all values but keeps field names, as MongoDB does.
fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(redact),
        Value::Array(values) => values.iter_mut().for_each(redact),
        value => *value = REDACTED.into(),
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, Value::String(format!("{value:?}")));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, Value::String(value.to_owned()));
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        // Event ids are plain integer literals in the source, which `tracing` records as signed numbers.
        self.put(field, u64::try_from(value).map_or_else(|_| json!(value), |value| json!(value)));
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, json!(value));
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, json!(value));
    }
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, json!(value));
    }
}

/// mongod's severity letters.
fn severity(level: Level) -> &'static str {
    match level {
        Level::ERROR => "E",
        Level::WARN => "W",
        Level::INFO => "I",
        Level::DEBUG => "D1",
        Level::TRACE => "D2",
    }
}

fn json_line(time: &str, severity: &str, component: &str, fields: &Fields) -> String {
    let mut line = json!({
        "t": {"$date": time}, "s": severity, "c": component, "id": fields.id, "ctx": fields.context, "msg": fields.message
    });
    if !fields.attributes.is_empty() {
        line["attr"] = Value::Object(fields.attributes.clone());
    }
    if let Some(tag) = &fields.tag {
        line["tags"] = json!([tag]);
    }
    line.to_string()
}

fn text_line(time: &str, severity: &str, component: &str, fields: &Fields) -> String {
    let mut line = format!("{time} {severity} {component:<8} [{}] ", fields.context);
    put_on_line(&mut line, &fields.message);
    for (name, value) in &fields.attributes {
        line.extend([" ", name, "="]);
        match value.as_str() {
            Some(text) => put_on_line(&mut line, text),
            None => put_on_line(&mut line, &value.to_string()),
        }
    }
    line
}

/// Appends a text without starting a new line. A name that a client made up must not look like a line of its own, nor
/// control the operator's terminal.
fn put_on_line(line: &mut String, text: &str) {
    for character in text.chars() {
        let leaves_line = character.is_control() || matches!(character, '\u{2028}' | '\u{2029}');
        if leaves_line { line.extend(character.escape_default()) } else { line.push(character) }
    }
}

impl LogLayer {
    /// Reports how many lines were dropped, before the first one that may be written again.
    fn tell_of_dropped(&self, time: &str) {
        let dropped = self.output.take_dropped();
        if dropped == 0 {
            return;
        }
        let fields = Fields {
            message: "Log lines were dropped, because they could not be written in time".into(),
            id: 135,
            context: "log".into(),
            tag: None,
            attributes: [("lines".to_owned(), json!(dropped))].into_iter().collect(),
        };
        if self.output.try_write_line(&self.line(time, "W", "CONTROL", &fields)).is_err() {
            self.output.count_dropped(dropped);
        }
    }

    fn line(&self, time: &str, severity: &str, component: &str, fields: &Fields) -> String {
        match self.format {
            LogFormat::Json => json_line(time, severity, component, fields),
            LogFormat::Text => text_line(time, severity, component, fields),
        }
    }
}

impl<S: Subscriber> Layer<S> for LogLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if self.lines.is_redacted() {
            fields.redact(event.metadata().target());
        }
        let time = format_iso8601_ms((self.clock)());
        let severity = severity(*event.metadata().level());
        let target = event.metadata().target();
        let component = if target.contains("::") { "-" } else { target };
        self.tell_of_dropped(&time);
        let json = json_line(&time, severity, component, &fields);
        let text = || text_line(&time, severity, component, &fields);
        match self.format {
            LogFormat::Json => self.output.write_line(&json),
            LogFormat::Text => self.output.write_line(&text()),
        }
        if fields.tag.as_deref() == Some(STARTUP_WARNING) {
            self.lines.push_startup_warning(json.clone());
            if self.output.is_file() {
                // The user at the terminal should see the warning, too.
                eprintln!("{}", text());
            }
        }
        self.lines.push(json);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Fields {
        let attributes = [("remote".to_owned(), json!("127.0.0.1:5"))].into_iter().collect();
        let (message, context) = ("Connection accepted".into(), "listener".into());
        Fields { message, id: 22943, context, tag: None, attributes }
    }

    #[test]
    fn a_tag_stands_behind_the_attributes() {
        let fields = Fields { tag: Some(STARTUP_WARNING.into()), ..fields() };
        let line = json_line("T", "W", "CONTROL", &fields);
        assert!(line.ends_with(r#""attr":{"remote":"127.0.0.1:5"},"tags":["startupWarnings"]}"#), "{line}");
    }

    /// Names come from clients, also from clients that have not logged in.
    #[test]
    fn a_line_stays_one_line() {
        let mut fields = fields();
        fields
            .attributes
            .insert("user".into(), json!("x\n2026-01-01T00:00:00.000Z I ACCESS [conn1] forged\u{1b}[2K\u{2028}"));
        fields.message = "one\r\ntwo".into();
        for line in [text_line("T", "I", "ACCESS", &fields), json_line("T", "I", "ACCESS", &fields)] {
            assert!(!line.contains(|character: char| character.is_control()), "{line}");
        }
        let line = text_line("T", "I", "ACCESS", &fields);
        assert!(line.ends_with(r"user=x\n2026-01-01T00:00:00.000Z I ACCESS [conn1] forged\u{1b}[2K\u{2028}"), "{line}");
    }

    #[test]
    fn values_of_clients_are_taken_out() {
        let mut fields = fields();
        fields.attributes.insert("command".into(), json!({"find": "c", "filter": {"a": ["canary", 5]}}));
        fields.attributes.insert("error".into(), json!("dup key: { a: \"canary\" }"));
        fields.redact("INDEX");
        let line = json_line("T", "I", "INDEX", &fields);
        assert!(line.contains(r#""remote":"127.0.0.1:5""#) && !line.contains("canary"), "{line}");
        assert!(line.contains(r####""filter":{"a":["###","###"]}"####), "{line}");
    }

    #[test]
    fn both_formats() {
        assert_eq!(
            json_line("2026-01-01T00:00:00.000Z", "I", "NETWORK", &fields()),
            r#"{"t":{"$date":"2026-01-01T00:00:00.000Z"},"s":"I","c":"NETWORK","id":22943,"ctx":"listener","msg":"Connection accepted","attr":{"remote":"127.0.0.1:5"}}"#
        );
        assert_eq!(
            text_line("2026-01-01T00:00:00.000Z", "I", "NETWORK", &fields()),
            "2026-01-01T00:00:00.000Z I NETWORK  [listener] Connection accepted remote=127.0.0.1:5"
        );
    }
}
