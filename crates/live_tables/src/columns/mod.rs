//! The table of all columns. `docs/reference/stat-top-sample.md` is made from it.

mod counts;
mod membership;
mod resources;

use crate::column::Column;
pub(crate) use crate::column::Shown;
use crate::units::{Units, count};
use bunko_bson::datetime::format_iso8601_ms;

const fn column(
    name: &'static str,
    meaning: &'static str,
    shown: Shown,
    cell: fn(&crate::reading::Interval<'_>, Units) -> Option<String>,
) -> Column {
    Column { name, meaning, shown, cell }
}

/// All columns, in their order.
pub(crate) const COLUMNS: &[Column] = &[
    column("host", "The server", Shown::OfSeveral, |interval, _| Some(interval.host.to_owned())),
    column("engine", "The storage engine", Shown::OnRequest, |interval, _| {
        interval.now.text("storageEngine.name").map(str::to_owned)
    }),
    column("insert", "Documents inserted in each second", Shown::Always, |interval, _| {
        counts::written(interval, "insert")
    }),
    column("query", "Queries in each second", Shown::Always, |interval, _| counts::written(interval, "query")),
    column("update", "Updates in each second", Shown::Always, |interval, _| counts::written(interval, "update")),
    column("delete", "Deletes in each second", Shown::Always, |interval, _| counts::written(interval, "delete")),
    column("getmore", "Further batches of cursors in each second", Shown::Always, |interval, _| {
        interval.counter_rate("opcounters.getmore").map(count)
    }),
    column("command", "Other commands in each second", Shown::Always, |interval, _| counts::commands(interval)),
    column(
        "dirty",
        "Changes that the next checkpoint writes, as a share of the cache's limit",
        Shown::Always,
        |interval, _| resources::dirty(interval),
    ),
    column("used", "The cache's contents, as a share of its limit", Shown::Always, |interval, _| {
        resources::used(interval)
    }),
    column("held", "Memory that operations hold, as a share of the budget for them", Shown::OfBunko, |interval, _| {
        resources::share(interval, "bunko.memory.heldBytes", "bunko.memory.limitBytes")
    }),
    column("flushes", "Checkpoints that ended in the interval", Shown::Always, |interval, _| {
        resources::checkpoints(interval)
    }),
    column("vsize", "Virtual memory of the process", Shown::Always, |interval, units| {
        resources::memory_of_process(interval, "mem.virtual", units)
    }),
    column("res", "Resident memory of the process", Shown::Always, |interval, units| {
        resources::memory_of_process(interval, "mem.resident", units)
    }),
    column("faults", "Page faults in each second", Shown::OnRequest, |interval, _| {
        interval.counter_rate("extra_info.page_faults").map(count)
    }),
    column("qrw", "Readers and writers that wait", Shown::Always, |interval, _| {
        counts::readers_and_writers(interval, "globalLock.currentQueue")
    }),
    column("arw", "Readers and writers that work", Shown::Always, |interval, _| {
        counts::readers_and_writers(interval, "globalLock.activeClients")
    }),
    column("net_in", "Bytes received in each second", Shown::Always, |interval, units| {
        resources::traffic_of(interval, "network.bytesIn", units)
    }),
    column("net_out", "Bytes sent in each second", Shown::Always, |interval, units| {
        resources::traffic_of(interval, "network.bytesOut", units)
    }),
    column("conn", "Open connections", Shown::Always, |interval, _| {
        interval.now.number("connections.current").map(count)
    }),
    column("set", "The replica set", Shown::InSet, |interval, _| interval.now.text("repl.setName").map(str::to_owned)),
    column(
        "repl",
        "The member's state: PRI, SEC, ARB, REC (recovering or starting), DOWN; RTR is a router",
        Shown::InSet,
        |interval, _| membership::state(interval.now),
    ),
    column("lag", "How far the member is behind the primary", Shown::InSet, |interval, _| {
        membership::lag(interval.now)
    }),
    column("time", "When the server was read, in UTC", Shown::Always, |interval, _| Some(moment(interval.now.date_ms))),
];

/// The names of all columns with what they mean, one sentence each.
pub fn columns() -> impl Iterator<Item = (&'static str, &'static str)> {
    COLUMNS.iter().map(|column| (column.name, column.meaning))
}

/// The column of that name.
pub(crate) fn named(name: &str) -> Option<&'static Column> {
    COLUMNS.iter().find(|column| column.name == name)
}

/// `Jan 31 23:59:59.123`.
fn moment(date_ms: u64) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let iso = format_iso8601_ms(date_ms as i64);
    let month = iso.get(5..7).and_then(|month| month.parse::<usize>().ok()).and_then(|month| MONTHS.get(month - 1));
    let (day, time) = (iso.get(8..10).unwrap_or_default(), iso.get(11..23).unwrap_or_default());
    format!("{} {day} {time}", month.unwrap_or(&"?"))
}

#[cfg(test)]
mod tests;
