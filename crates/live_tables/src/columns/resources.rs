//! Memory, checkpoints and traffic.

use crate::reading::{Interval, Reading};
use crate::units::{Units, count, memory, percent, traffic};

/// The limit of the cache: WiredTiger's, or that of the engine lsm.
const CACHE_LIMITS: [&str; 2] = ["wiredTiger.cache.maximum bytes configured", "lsm.cache.maximumBytes"];
/// Checkpoints since the start: of MongoDB 8 and of earlier versions, and of servers without WiredTiger.
const CHECKPOINTS: [&str; 3] = [
    "wiredTiger.checkpoint.total succeed number of checkpoints",
    "wiredTiger.transaction.transaction checkpoints",
    "backgroundFlushing.flushes",
];

pub(super) fn dirty(interval: &Interval<'_>) -> Option<String> {
    let dirty = first(interval.now, &["wiredTiger.cache.tracked dirty bytes in the cache", "bunko.unflushedBytes"])?;
    share_of(dirty, first(interval.now, &CACHE_LIMITS)?)
}

pub(super) fn used(interval: &Interval<'_>) -> Option<String> {
    let of_lsm = || {
        let part = |name: &str| interval.now.number(&format!("lsm.cache.{name}"));
        Some(part("documentsBytes")? + part("logBytes")? + part("treesBytes")?)
    };
    let used = interval.now.number("wiredTiger.cache.bytes currently in the cache").or_else(of_lsm)?;
    share_of(used, first(interval.now, &CACHE_LIMITS)?)
}

/// One number as a share of another.
pub(super) fn share(interval: &Interval<'_>, part: &str, whole: &str) -> Option<String> {
    share_of(interval.now.number(part)?, interval.now.number(whole)?)
}

/// Checkpoints in the interval; `None` also after a start of the server.
pub(super) fn checkpoints(interval: &Interval<'_>) -> Option<String> {
    let path = CHECKPOINTS.into_iter().find(|path| interval.now.number(path).is_some())?;
    interval.difference(path).filter(|checkpoints| *checkpoints >= 0.0).map(count)
}

pub(super) fn memory_of_process(interval: &Interval<'_>, path: &str, units: Units) -> Option<String> {
    interval.now.number(path).map(|mebibytes| memory(mebibytes, units))
}

pub(super) fn traffic_of(interval: &Interval<'_>, path: &str, units: Units) -> Option<String> {
    interval.counter_rate(path).map(|bytes| traffic(bytes, units))
}

fn first(reading: &Reading, paths: &[&str]) -> Option<f64> {
    paths.iter().find_map(|path| reading.number(path))
}

fn share_of(part: f64, whole: f64) -> Option<String> {
    (whole > 0.0).then(|| percent(part / whole))
}
