//! The counters and gauges of `serverStatus` that reports show.

use super::description::at;
use bunko_bson::{DocumentRef, number};
use std::collections::BTreeMap;

/// Whether a number only grows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The number only grows: shown as a rate per second.
    Counter,
    /// The number may fall: shown as it is.
    Gauge,
}

/// Path in `serverStatus`, kind. Fields that a server lacks are left out.
const FIELDS: &[(&[&str], Kind)] = &[
    (&["opcounters", "insert"], Kind::Counter),
    (&["opcounters", "query"], Kind::Counter),
    (&["opcounters", "update"], Kind::Counter),
    (&["opcounters", "delete"], Kind::Counter),
    (&["opcounters", "getmore"], Kind::Counter),
    (&["opcounters", "command"], Kind::Counter),
    (&["connections", "current"], Kind::Gauge),
    (&["globalLock", "currentQueue", "total"], Kind::Gauge),
    (&["globalLock", "activeClients", "total"], Kind::Gauge),
    (&["transactions", "totalCommitted"], Kind::Counter),
    (&["transactions", "totalAborted"], Kind::Counter),
    (&["network", "bytesIn"], Kind::Counter),
    (&["network", "bytesOut"], Kind::Counter),
    (&["extra_info", "page_faults"], Kind::Counter),
    (&["wiredTiger", "cache", "bytes currently in the cache"], Kind::Gauge),
    (&["wiredTiger", "cache", "tracked dirty bytes in the cache"], Kind::Gauge),
    (&["wiredTiger", "cache", "application threads page write from cache to disk count"], Kind::Counter),
    (&["wiredTiger", "block-manager", "bytes read"], Kind::Counter),
    (&["wiredTiger", "block-manager", "bytes written"], Kind::Counter),
    (&["wiredTiger", "log", "log bytes written"], Kind::Counter),
    (&["wiredTiger", "log", "log sync operations"], Kind::Counter),
    (&["wiredTiger", "transaction", "transaction checkpoints"], Kind::Counter),
    (&["dur", "commits"], Kind::Counter),
    (&["dur", "journaledMB"], Kind::Counter),
    (&["backgroundFlushing", "flushes"], Kind::Counter),
    (&["bunko", "log", "nextLsn"], Kind::Counter),
    (&["bunko", "log", "writtenGroups"], Kind::Counter),
    (&["bunko", "log", "syncedGroups"], Kind::Counter),
    (&["bunko", "log", "segmentWaits"], Kind::Counter),
    (&["bunko", "log", "segments"], Kind::Gauge),
    (&["bunko", "checkpoints", "count"], Kind::Counter),
    (&["bunko", "stalledWrites"], Kind::Counter),
    (&["bunko", "unflushedBytes"], Kind::Gauge),
    (&["bunko", "engineBytes"], Kind::Gauge),
    (&["lsm", "cache", "documentsBytes"], Kind::Gauge),
    (&["lsm", "cache", "logBytes"], Kind::Gauge),
    (&["lsm", "cache", "treesBytes"], Kind::Gauge),
    (&["lsm", "cache", "hits"], Kind::Counter),
    (&["lsm", "cache", "misses"], Kind::Counter),
    (&["lsm", "cache", "bytesRead"], Kind::Counter),
    (&["lsm", "extents", "count"], Kind::Gauge),
    (&["lsm", "extents", "fileBytes"], Kind::Gauge),
    (&["lsm", "extents", "bytesWritten"], Kind::Counter),
    (&["lsm", "extents", "rewritten"], Kind::Counter),
    (&["lsm", "extents", "documentsMoved"], Kind::Counter),
    (&["lsm", "liveDocumentsInLogBytes"], Kind::Gauge),
    (&["lsm", "trees", "fileBytes"], Kind::Gauge),
    (&["lsm", "trees", "compactions"], Kind::Counter),
];

/// Paths of counters of journal syncs; each server has at most one of them.
const JOURNAL_SYNCS: &[&str] = &["bunko.log.syncedGroups", "wiredTiger.log.log sync operations", "dur.commits"];

/// One reply to `serverStatus`.
pub(crate) struct StatusReading(BTreeMap<String, (Kind, f64)>);

impl StatusReading {
    pub fn read(reply: DocumentRef<'_>) -> Self {
        let number = |path: &[&str]| at(reply, path).and_then(number::as_f64);
        Self(FIELDS.iter().filter_map(|(path, kind)| Some((path.join("."), (*kind, number(path)?)))).collect())
    }

    /// Values since an earlier reading: gauges as they are, counters per second.
    pub fn since(&self, before: &Self, seconds: f64) -> BTreeMap<String, f64> {
        let value = |name: &String, kind: Kind, value: f64| match kind {
            Kind::Gauge => Some(value),
            Kind::Counter => Some((value - before.0.get(name)?.1) / seconds),
        };
        self.0.iter().filter_map(|(name, &(kind, now))| Some((name.clone(), value(name, kind, now)?))).collect()
    }

    /// Number of journal syncs since an earlier reading.
    pub fn journal_syncs_since(&self, before: &Self) -> Option<u64> {
        let counted =
            |reading: &Self| JOURNAL_SYNCS.iter().find_map(|name| reading.0.get(*name).map(|(_, count)| *count));
        Some((counted(self)? - counted(before)?).max(0.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentBuf;

    #[test]
    fn counters_become_rates_and_gauges_stay() {
        let reply = |inserts: i32, current: i64, syncs: f64| {
            let log = DocumentBuf::new().with("log sync operations", syncs);
            DocumentBuf::new()
                .with("opcounters", &DocumentBuf::new().with("insert", inserts))
                .with("connections", &DocumentBuf::new().with("current", current))
                .with("wiredTiger", &DocumentBuf::new().with("log", &log))
        };
        let before = StatusReading::read(reply(100, 9, 3.0).as_ref());
        let now = StatusReading::read(reply(300, 5, 8.0).as_ref());
        let since = now.since(&before, 2.0);
        assert_eq!((since["opcounters.insert"], since["connections.current"]), (100.0, 5.0));
        assert!(!since.contains_key("opcounters.query"));
        assert_eq!(now.journal_syncs_since(&before), Some(5));
    }
}
