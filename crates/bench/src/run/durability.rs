//! Durability of acknowledged writes.

use crate::server::ServerDescription;
use bunko_client::WriteConcern;

/// w, j, engine and journal interval in one line; values that the server does not report are "not stated".
pub(super) fn statement(server: &ServerDescription, write_concern: &WriteConcern) -> String {
    let engine = server.storage_engine.as_deref().unwrap_or("not stated");
    let journal = match (server.journal_enabled, server.journal_commit_interval_ms) {
        (Some(false), _) => "off".to_owned(),
        (_, Some(interval)) => format!("synced every {interval} ms"),
        (Some(true), None) => "on, interval not stated".to_owned(),
        (None, None) => "not stated (the server's default)".to_owned(),
    };
    let j = if write_concern.journal.is_none() { ", j not asked for" } else { "" };
    format!("{write_concern}{j}; storage engine {engine}; journal {journal}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durability_is_stated_in_one_line() {
        let concern = WriteConcern::default();
        let unknown = statement(&ServerDescription::default(), &concern);
        let default = "not stated (the server's default)";
        assert_eq!(unknown, format!("w: 1, j not asked for; storage engine not stated; journal {default}"));
        let known = ServerDescription {
            storage_engine: Some("lsm".into()),
            journal_commit_interval_ms: Some(100),
            ..ServerDescription::default()
        };
        let journaled = "j".parse().expect("valid");
        assert_eq!(statement(&known, &journaled), "w: 1, j: true; storage engine lsm; journal synced every 100 ms");
    }
}
