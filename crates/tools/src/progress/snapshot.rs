//! A run's counts at one moment.

use super::Activity;
use std::time::Duration;

/// One namespace at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceSnapshot {
    /// `database.collection`.
    pub name: String,
    /// Documents done.
    pub documents: u64,
    /// Bytes of these documents.
    pub bytes: u64,
    /// Documents that were refused.
    pub failures: u64,
    /// Documents to be done; 0 where that is not known.
    pub documents_expected: u64,
    /// Bytes to be done; 0 where that is not known.
    pub bytes_expected: u64,
    /// Documents that an earlier run did, included in `documents`.
    pub documents_before: u64,
    /// Bytes of the documents that an earlier run did.
    pub bytes_before: u64,
    /// Whether no more documents of the namespace will come.
    pub is_finished: bool,
    /// Whether the namespace was given up before its end.
    pub is_abandoned: bool,
}

/// A whole run at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Time since the run began.
    pub elapsed: Duration,
    /// Namespaces, in the order in which work on them began.
    pub namespaces: Vec<NamespaceSnapshot>,
    /// Time of all threads together, by activity in the order of [`Activity::ALL`].
    pub spent: [Duration; Activity::ALL.len()],
    /// Consumed bytes of the source, as stored (compressed).
    pub source_bytes: u64,
    /// Bytes of the whole source; 0 if that is not known.
    pub source_bytes_expected: u64,
}

impl NamespaceSnapshot {
    /// Whether all documents and indexes are done, and none was refused.
    pub fn is_complete(&self) -> bool {
        self.is_finished && !self.is_abandoned && self.failures == 0
    }

    /// Part that is done, from 0 to 1; `None` if that is not known. The expected size is an estimate, so only a
    /// finished namespace gives 1.
    pub fn fraction(&self) -> Option<f64> {
        if self.is_finished { Some(1.0) } else { fraction(self.bytes, self.bytes_expected) }
    }
}

impl Snapshot {
    /// Documents of all namespaces.
    pub fn documents(&self) -> u64 {
        self.namespaces.iter().map(|namespace| namespace.documents).sum()
    }

    /// Bytes of all namespaces' documents.
    pub fn bytes(&self) -> u64 {
        self.namespaces.iter().map(|namespace| namespace.bytes).sum()
    }

    /// Documents and bytes that this run has done.
    pub(super) fn done_now(&self) -> (u64, u64) {
        let before = |each: &NamespaceSnapshot| (each.documents_before, each.bytes_before);
        let before = self.namespaces.iter().map(before).fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
        (self.documents().saturating_sub(before.0), self.bytes().saturating_sub(before.1))
    }

    /// Documents of all namespaces that were refused.
    pub fn failures(&self) -> u64 {
        self.namespaces.iter().map(|namespace| namespace.failures).sum()
    }

    /// Done and expected bytes: of the source if its length is known, else of documents.
    fn work(&self) -> (u64, u64) {
        if self.source_bytes_expected > 0 {
            return (self.source_bytes, self.source_bytes_expected);
        }
        // A finished namespace counts with its actual size, not with its expected one.
        let expected = self.namespaces.iter().map(|namespace| {
            if namespace.is_finished { namespace.bytes } else { namespace.bytes_expected.max(namespace.bytes) }
        });
        (self.bytes(), expected.sum())
    }

    /// Part of the run that is done, from 0 to 1; `None` if that is not known.
    pub fn fraction(&self) -> Option<f64> {
        if self.source_bytes_expected == 0 && self.namespaces.iter().any(|namespace| namespace.fraction().is_none()) {
            return None;
        }
        let (done, expected) = self.work();
        fraction(done, expected)
    }

    /// Time that the rest takes at the pace since `earlier`; `None` if that cannot be calculated.
    pub fn remaining_time(&self, earlier: &Self) -> Option<Duration> {
        self.fraction()?;
        let (done, expected) = self.work();
        let advanced = |snapshot: &Self| match self.source_bytes_expected {
            0 => snapshot.done_now().1,
            _ => snapshot.source_bytes,
        };
        let advanced = advanced(self).checked_sub(advanced(earlier)).filter(|&advanced| advanced > 0)?;
        let interval = self.elapsed.saturating_sub(earlier.elapsed);
        let seconds = interval.as_secs_f64() * expected.saturating_sub(done) as f64 / advanced as f64;
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// The activity on which the threads spent most time since `earlier`, and its share of all their time.
    pub fn bottleneck(&self, earlier: &Self) -> Option<(Activity, f64)> {
        let spent = |activity: Activity| {
            let index = activity as usize;
            self.spent[index].saturating_sub(earlier.spent[index]).as_secs_f64()
        };
        let total: f64 = Activity::ALL.into_iter().map(spent).sum();
        let most = Activity::ALL.into_iter().max_by(|&left, &right| spent(left).total_cmp(&spent(right)))?;
        (total > 0.0).then(|| (most, spent(most) / total))
    }
}

/// At most 0.999, because an estimate may be too low.
fn fraction(done: u64, expected: u64) -> Option<f64> {
    (expected > 0).then(|| (done as f64 / expected as f64).min(0.999))
}
