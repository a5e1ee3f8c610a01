//! `bunko stat`: a row for each server and interval.

use crate::error::TableError;
use crate::field::{Choice, Field};
use crate::grid::{Grid, harmless};
use crate::pace::Pace;
use crate::screen::{Reader, Screen};
use crate::units::Units;
use crate::{Format, columns};
use bunko_bson::datetime::format_iso8601_ms;
use bunko_client::{ClientError, Uri};
use bunko_host::Clock;
use serde_json::{Map, Value, json};
use std::time::Duration;
use watched::Watched;

mod watched;

/// Cell of a fact that a server does not tell.
const UNKNOWN: &str = "-";

/// Whether the names of the columns are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headers {
    /// Again and again.
    Shown,
    /// Never.
    Hidden,
}

/// The servers of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members {
    /// The hosts of the connection string.
    Named,
    /// The hosts of the connection string, and all members of their sets.
    Discovered,
}

/// Options of `bunko stat`.
pub struct StatOptions {
    /// The servers, and how to reach them.
    pub uri: Uri,
    /// Which servers are shown.
    pub members: Members,
    /// Time between two readings.
    pub interval: Duration,
    /// The number of groups of rows after which the table ends; `None` for no end.
    pub rows: Option<u64>,
    /// The columns.
    pub choice: Choice,
    /// How the table is written.
    pub format: Format,
    /// Whether headers are shown.
    pub headers: Headers,
    /// How sizes are written.
    pub units: Units,
}

/// Shows the table until its last row, or until it has no reader any more.
/// # Errors
/// `Server`, if no server can be read at the start; `Output`; `Thread`.
pub fn stat(options: &StatOptions, clock: &Clock, screen: &mut dyn Screen) -> Result<(), TableError> {
    let mut watched = Watched::start(options, clock).map_err(TableError::Thread)?;
    let mut pace = Pace::new(clock.clone(), options.interval);
    let mut grid = Grid::default();
    let round = watched.read().map_err(TableError::Thread)?;
    if let Some(error) = round.error {
        return Err(TableError::Server(error));
    }
    let (mut left, mut notes) = (options.rows, round.notes);
    while left != Some(0) {
        for note in &notes {
            screen.note(note);
        }
        pace.wait();
        notes = watched.read().map_err(TableError::Thread)?.notes;
        let group = match options.format {
            Format::Text => text(options, &watched, &mut grid),
            Format::Json => json_line(options, &watched),
        };
        let reader = match group {
            Some(lines) => screen.show(&lines).map_err(TableError::Output)?,
            None => screen.reader(),
        };
        if reader == Reader::Gone {
            return Ok(());
        }
        if watched.has_rows() {
            left = left.map(|left| left - 1);
        }
    }
    Ok(())
}

/// The rows of an interval; `None` while no server answers.
fn text(options: &StatOptions, watched: &Watched, grid: &mut Grid) -> Option<String> {
    if !watched.has_rows() {
        return None;
    }
    let fields = fields(options, watched);
    let row = |server: &watched::Server| -> Vec<String> {
        let cell = |field: &Field| match server.interval() {
            Some(interval) => field.cell(&interval, options.units),
            None => field.is_host().then(|| harmless(&server.host)),
        };
        fields.iter().map(|field| cell(field).unwrap_or_else(|| UNKNOWN.to_owned())).collect()
    };
    let rows: Vec<_> = watched.servers.iter().map(row).collect();
    let headers: Vec<_> = fields.iter().map(|field| field.header().to_owned()).collect();
    Some(match options.headers {
        Headers::Shown => grid.group(&headers, &rows),
        Headers::Hidden => grid.rows(&headers, &rows),
    })
}

/// One object with an object for each server, as mongostat's.
fn json_line(options: &StatOptions, watched: &Watched) -> Option<String> {
    let fields = fields(options, watched);
    let mut line = Map::new();
    for server in &watched.servers {
        let facts = match (server.interval(), &server.trouble) {
            (Some(interval), _) => {
                let fact = |field: &Field| {
                    if field.header() == "time" {
                        return (field.header().to_owned(), json!(format_iso8601_ms(interval.now.date_ms as i64)));
                    }
                    let cell = field.cell(&interval, options.units);
                    (field.header().to_owned(), cell.map_or(Value::Null, Value::String))
                };
                Value::Object(fields.iter().filter(|field| !field.is_host()).map(fact).collect())
            }
            (None, Some(trouble)) => json!({ "error": trouble }),
            // The server has just begun to answer: there is no interval yet.
            (None, None) => continue,
        };
        line.insert(server.host.clone(), facts);
    }
    (!line.is_empty()).then(|| format!("{}\n", Value::Object(line)))
}

fn fields(options: &StatOptions, watched: &Watched) -> Vec<Field> {
    let usual = |is_wanted: &dyn Fn(&columns::Shown) -> bool| -> Vec<Field> {
        columns::COLUMNS.iter().filter(|column| is_wanted(&column.shown)).map(Field::of_column).collect()
    };
    let concerns = |shown: &columns::Shown| watched.concerns(*shown, options.members);
    match &options.choice {
        Choice::Usual => usual(&concerns),
        Choice::All => usual(&|_| true),
        Choice::Also(more) => usual(&concerns).into_iter().chain(more.iter().cloned()).collect(),
        Choice::Only(fields) => fields.clone(),
    }
}

/// A server's error in a sentence that names the server.
fn sentence(host: &str, error: &ClientError) -> String {
    let error = error.to_string();
    if error.contains(host) { error } else { format!("{host}: {error}") }
}
