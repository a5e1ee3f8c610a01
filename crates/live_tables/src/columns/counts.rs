//! Operations.

use crate::reading::Interval;
use crate::units::count;

/// Operations of a kind in each second. A server that counts apart what it applied for its set shows `*7` for seven
/// such operations, and `2|7` beside two of clients. Source: mongostat's manual, "Fields".
pub(super) fn written(interval: &Interval<'_>, kind: &str) -> Option<String> {
    let of_clients = count(interval.counter_rate(&format!("opcounters.{kind}"))?);
    let of_set = interval.counter_rate(&format!("opcountersRepl.{kind}")).map(count);
    Some(match of_set.as_deref() {
        Some(of_set) if of_clients == "0" => format!("*{of_set}"),
        Some("0") | None => of_clients,
        Some(of_set) => format!("{of_clients}|{of_set}"),
    })
}

/// Commands in each second; with those for the set after a bar, if the server counts them apart.
pub(super) fn commands(interval: &Interval<'_>) -> Option<String> {
    let of_clients = count(interval.counter_rate("opcounters.command")?);
    let of_set = interval.counter_rate("opcountersRepl.command").map(count);
    Some(of_set.map_or(of_clients.clone(), |of_set| format!("{of_clients}|{of_set}")))
}

/// `3|1`: three readers and a writer.
pub(super) fn readers_and_writers(interval: &Interval<'_>, path: &str) -> Option<String> {
    let part = |name: &str| interval.now.number(&format!("{path}.{name}")).map(count);
    Some(format!("{}|{}", part("readers")?, part("writers")?))
}
