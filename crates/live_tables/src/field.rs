//! Fields that `-o` and `-O` choose: columns by their names, and values of `serverStatus` by their paths.

use crate::column::Column;
use crate::columns;
use crate::grid::harmless;
use crate::reading::Interval;
use crate::units::{Units, plain};
use bunko_bson::datetime::format_iso8601_ms;
use bunko_bson::{ValueRef, extended_json, number};

/// Maximum number of fields that one flag may name.
const FIELDS_MAX: usize = 200;

/// The columns of a table.
#[derive(Clone)]
pub enum Choice {
    /// The columns that concern the servers.
    Usual,
    /// All.
    All,
    /// The usual columns, then the given ones.
    Also(Vec<Field>),
    /// Only the given columns.
    Only(Vec<Field>),
}

/// A column of a table, with its header.
#[derive(Clone)]
pub struct Field {
    source: Source,
    header: String,
}

#[derive(Clone)]
enum Source {
    Column(&'static Column),
    Path { path: String, of: Of },
}

/// How a value of `serverStatus` is shown.
#[derive(Clone, Copy)]
enum Of {
    Value,
    Difference,
    Rate,
}

impl Field {
    pub(crate) fn of_column(column: &'static Column) -> Self {
        Self { source: Source::Column(column), header: column.name.to_owned() }
    }

    /// Reads a flag's value: names or paths with commas between them, each with `.diff()` or `.rate()` after a path and
    /// `=HEADER` at the end, if wanted.
    /// # Errors
    /// A sentence that names the field.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        let fields = text.split(',').map(|field| Self::parse(field.trim())).collect::<Result<Vec<_>, _>>()?;
        if fields.len() > FIELDS_MAX {
            return Err(format!("{} fields; at most {FIELDS_MAX} are supported", fields.len()));
        }
        Ok(fields)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let (name, header) = text.split_once('=').map_or((text, None), |(name, header)| (name, Some(header)));
        let header = harmless(header.unwrap_or(name));
        if let Some(column) = columns::named(name) {
            return Ok(Self { source: Source::Column(column), header });
        }
        let (path, of) = match name.strip_suffix("()") {
            Some(call) => match call.rsplit_once('.') {
                Some((path, "diff")) => (path, Of::Difference),
                Some((path, "rate")) => (path, Of::Rate),
                _ => return Err(format!("field '{name}': only .diff() and .rate() are supported")),
            },
            None => (name, Of::Value),
        };
        if path.is_empty() || path.split('.').any(str::is_empty) {
            return Err(format!("field '{name}' is neither a column nor a path in serverStatus"));
        }
        Ok(Self { source: Source::Path { path: path.to_owned(), of }, header })
    }

    /// The name above the column, and in JSON.
    pub(crate) fn header(&self) -> &str {
        &self.header
    }

    /// Whether it needs the name of the server only, so that it has a cell while the server does not answer.
    pub(crate) fn is_host(&self) -> bool {
        matches!(self.source, Source::Column(column) if column.name == "host")
    }

    /// The cell; `None` where the server does not tell the fact.
    pub(crate) fn cell(&self, interval: &Interval<'_>, units: Units) -> Option<String> {
        match &self.source {
            Source::Column(column) => (column.cell)(interval, units).map(|cell| harmless(&cell)),
            Source::Path { path, of: Of::Value } => interval.now.value(path).map(shown),
            Source::Path { path, of: Of::Difference } => interval.difference(path).map(plain),
            Source::Path { path, of: Of::Rate } => interval.rate(path).map(plain),
        }
    }
}

fn shown(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::String(text) => harmless(text),
        ValueRef::DateTime(ms) => format_iso8601_ms(ms),
        ValueRef::Int32(number) => number.to_string(),
        ValueRef::Int64(number) => number.to_string(),
        value => number::as_f64(value).map_or_else(|| harmless(&extended_json::to_relaxed(value)), plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<String>, String> {
        Field::parse_list(text).map(|fields| fields.iter().map(|field| field.header().to_owned()).collect())
    }

    #[test]
    fn fields_have_names_paths_methods_and_headers() {
        let headers = parsed("host, insert=new,network.numRequests=network requests,opcounters.insert.rate(),uptime");
        assert_eq!(headers.expect("valid"), ["host", "new", "network requests", "opcounters.insert.rate()", "uptime"]);
        assert_eq!(parsed("a.b.sum()"), Err("field 'a.b.sum()': only .diff() and .rate() are supported".to_owned()));
        for wrong in ["", "host,", "a..b", ".diff()", "a..rate()", "=x"] {
            let error = parsed(wrong).expect_err(wrong);
            assert!(error.contains("is neither a column nor a path in serverStatus"), "{wrong}: {error}");
        }
        assert!(parsed(&"host,".repeat(200)).is_err());
        assert!(parsed(&vec!["host"; 201].join(",")).is_err_and(|error| error.contains("at most 200")));
    }
}
