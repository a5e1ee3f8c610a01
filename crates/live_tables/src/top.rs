//! `bunko top`: the time that each collection took in an interval.

use crate::Format;
use crate::error::TableError;
use crate::grid::{Grid, harmless};
use crate::observer::patient;
use crate::pace::Pace;
use crate::screen::{Reader, Screen};
use bunko_bson::datetime::format_iso8601;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_client::{ClientError, Connection, Uri};
use bunko_host::Clock;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum number of collections that a table for reading shows; JSON has all.
const ROWS_MAX: usize = 10;
const MICROS_PER_MS: i64 = 1_000;

/// Options of `bunko top`.
pub struct TopOptions {
    /// The server; of a set, the member that its read preference chooses.
    pub uri: Uri,
    /// Time between two readings.
    pub interval: Duration,
    /// The number of tables after which it ends; `None` for no end.
    pub rows: Option<u64>,
    /// How the tables are written.
    pub format: Format,
}

/// Time in microseconds, and operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Work {
    micros: i64,
    operations: i64,
}

/// Time and operations of one collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    total: Work,
    read: Work,
    write: Work,
}

type Usages = BTreeMap<String, Usage>;

/// Shows tables until the last one, or until they have no reader any more.
/// # Errors
/// `Server`, if the server cannot be read at the start; `Output`.
pub fn top(options: &TopOptions, clock: &Clock, screen: &mut dyn Screen) -> Result<(), TableError> {
    let uri = patient(options.uri.clone());
    let mut connection = Some(Connection::connect(&uri).map_err(TableError::Server)?);
    let mut before = Some(read(&uri, &mut connection).map_err(TableError::Server)?);
    let mut pace = Pace::new(clock.clone(), options.interval);
    let (mut left, mut is_gone) = (options.rows, false);
    while left != Some(0) {
        pace.wait();
        let reader = match read(&uri, &mut connection) {
            Ok(now) => {
                if std::mem::take(&mut is_gone) {
                    screen.note(&format!("{} answers again", uri.address()));
                }
                let used = before.as_ref().map(|before| difference(before, &now));
                before = Some(now);
                match used {
                    Some(used) => {
                        left = left.map(|left| left - 1);
                        let date = format_iso8601((clock.now_ms() / 1000 * 1000) as i64);
                        screen.show(&table(&used, &date, options.format)).map_err(TableError::Output)?
                    }
                    None => screen.reader(),
                }
            }
            Err(error) => {
                (before, connection) = (None, None);
                if !std::mem::replace(&mut is_gone, true) {
                    screen.note(&format!("{error}; waiting for it"));
                }
                screen.reader()
            }
        };
        if reader == Reader::Gone {
            return Ok(());
        }
    }
    Ok(())
}

fn read(uri: &Uri, connection: &mut Option<Connection>) -> Result<Usages, ClientError> {
    let open = match connection {
        Some(open) => open,
        none => none.insert(Connection::connect(uri)?),
    };
    let reply = open.run_command("admin", DocumentBuf::new().with("top", 1_i32).as_ref())?;
    Ok(usages(reply.as_ref()))
}

fn usages(reply: DocumentRef<'_>) -> Usages {
    let totals = reply.get("totals").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
    let usage = |of: DocumentRef<'_>| {
        let work = |name: &str| {
            let work = of.get(name).and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
            let field = |name: &str| work.get(name).and_then(number::truncate_to_i64).unwrap_or_default();
            Work { micros: field("time"), operations: field("count") }
        };
        Usage { total: work("total"), read: work("readLock"), write: work("writeLock") }
    };
    // `note` stands beside the collections.
    totals.iter().filter_map(|element| Some((element.name.to_owned(), usage(element.value.as_document()?)))).collect()
}

/// Time and operations of each collection between two readings. If a collection's numbers fell, it was dropped or the
/// server started anew: then it counts from zero.
fn difference(before: &Usages, now: &Usages) -> Usages {
    let less = |now: Work, before: Work| {
        let is_anew = now.micros < before.micros || now.operations < before.operations;
        let before = if is_anew { Work::default() } else { before };
        Work { micros: now.micros - before.micros, operations: now.operations - before.operations }
    };
    let of = |(name, now): (&String, &Usage)| {
        let before = before.get(name).copied().unwrap_or_default();
        let used = Usage {
            total: less(now.total, before.total),
            read: less(now.read, before.read),
            write: less(now.write, before.write),
        };
        (name.clone(), used)
    };
    now.iter().map(of).collect()
}

/// The table of an interval that ended at `date`.
fn table(used: &Usages, date: &str, format: Format) -> String {
    match format {
        Format::Text => text(used, date),
        Format::Json => json_line(used, date),
    }
}

fn text(used: &Usages, date: &str) -> String {
    let mut order: Vec<_> = used.iter().collect();
    order.sort_by_key(|(name, usage)| (-usage.total.micros, (*name).clone()));
    let ms = |work: Work| format!("{}ms", work.micros / MICROS_PER_MS);
    let row = |(name, usage): &(&String, &Usage)| {
        vec![harmless(name), ms(usage.total), ms(usage.read), ms(usage.write), String::new()]
    };
    let rows: Vec<_> = order.iter().take(ROWS_MAX).map(row).collect();
    let headers = ["ns", "   total", "    read", "   write", &format!("   {date}")].map(str::to_owned);
    let table = Grid::default().group(&headers, &rows);
    let lines = table.lines().map(str::trim_end);
    lines.fold(String::new(), |text, line| text + line + "\n") + "\n"
}

/// As mongotop's: times in milliseconds.
fn json_line(used: &Usages, date: &str) -> String {
    let work = |work: Work| json!({ "time": work.micros / MICROS_PER_MS, "count": work.operations });
    let usage =
        |usage: &Usage| json!({ "total": work(usage.total), "read": work(usage.read), "write": work(usage.write) });
    let totals: Map<String, Value> = used.iter().map(|(name, used)| (name.clone(), usage(used))).collect();
    format!("{}\n", json!({ "totals": totals, "time": date }))
}

#[cfg(test)]
mod tests;
