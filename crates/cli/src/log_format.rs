//! Log lines: JSON with mongod's fields, or text for reading; the last of them stay for `getLog`.

use bunko_bson::datetime::format_iso8601_ms;
use bunko_command::LogLines;
use serde_json::{Map, Value, json};
use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON document a line, with mongod's fields.
    Json,
    /// For reading.
    Text,
}

impl LogFormat {
    /// `systemLog.format`.
    pub fn named(name: &str) -> Self {
        if name == "text" { Self::Text } else { Self::Json }
    }
}

/// Writes each event as one line.
pub struct LogLayer {
    pub format: LogFormat,
    pub output: Mutex<Box<dyn Write + Send>>,
    pub lines: Arc<LogLines>,
    /// Milliseconds since 1970.
    pub clock: fn() -> i64,
}

/// An event's fields: those that have a place of their own in a line, and the rest.
#[derive(Default)]
struct Fields {
    message: String,
    id: u64,
    context: String,
    attributes: Map<String, Value>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), &value) {
            ("message", Value::String(text)) => self.message.clone_from(text),
            ("ctx", Value::String(text)) => self.context.clone_from(text),
            ("id", Value::Number(number)) => self.id = number.as_u64().unwrap_or_default(),
            (name, _) => drop(self.attributes.insert(name.to_owned(), value)),
        }
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
        // Ids are written as plain integer literals.
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
    if !fields.attributes.is_empty()
        && let Some(line) = line.as_object_mut()
    {
        line.insert("attr".into(), Value::Object(fields.attributes.clone()));
    }
    line.to_string()
}

fn text_line(time: &str, severity: &str, component: &str, fields: &Fields) -> String {
    let mut line = format!("{time} {severity} {component:<8} [{}] {}", fields.context, fields.message);
    for (name, value) in &fields.attributes {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        line.extend([" ", name, "=", &text]);
    }
    line
}

impl<S: Subscriber> Layer<S> for LogLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let time = format_iso8601_ms((self.clock)());
        let severity = severity(*event.metadata().level());
        let target = event.metadata().target();
        let component = if target.contains("::") { "-" } else { target };
        let json = json_line(&time, severity, component, &fields);
        let line = match self.format {
            LogFormat::Json => json.clone(),
            LogFormat::Text => text_line(&time, severity, component, &fields),
        };
        self.lines.push(json);
        if let Ok(mut output) = self.output.lock() {
            // A log that cannot be written must not stop the server.
            let _ = writeln!(output, "{line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Fields {
        let attributes = [("remote".to_owned(), json!("127.0.0.1:5"))].into_iter().collect();
        Fields { message: "Connection accepted".into(), id: 22943, context: "listener".into(), attributes }
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
