//! The numbers of one entry.

use super::PlanFacts;
use bunko_bson::{Decimal128, DocumentBuf, ValueRef};
use bunko_operation::BatchWork;

/// A query that has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Finished {
    batches: u64,
    first_micros: u64,
    total_micros: u64,
    processor_nanos: Option<u64>,
    keys_examined: u64,
    docs_examined: u64,
    returned: u64,
    has_used_disk: bool,
    ended_ms: i64,
    pub(super) plan: PlanFacts,
}

impl Finished {
    pub(super) fn add(&mut self, batch: &BatchWork) {
        let micros = batch.elapsed.as_micros() as u64;
        if self.batches == 0 {
            self.first_micros = micros;
        }
        self.batches += 1;
        self.total_micros += micros;
        if let Some(time) = batch.processor_time {
            self.processor_nanos = Some(self.processor_nanos.unwrap_or(0) + time.as_nanos() as u64);
        }
        self.keys_examined += batch.examined.keys;
        self.docs_examined += batch.examined.documents;
        self.returned += batch.returned;
        self.has_used_disk |= batch.has_used_disk;
        self.ended_ms = batch.ended_ms;
    }
}

/// A number of each query, summed up.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    total: u64,
    max: u64,
    min: Option<u64>,
    squares: u128,
}

impl Sum {
    fn add(&mut self, number: u64) {
        self.total = self.total.saturating_add(number);
        self.max = self.max.max(number);
        self.min = Some(self.min.map_or(number, |min| min.min(number)));
        self.squares = self.squares.saturating_add(u128::from(number) * u128::from(number));
    }

    fn to_document(self) -> DocumentBuf {
        DocumentBuf::new()
            .with("sum", self.total as i64)
            .with("max", self.max as i64)
            .with("min", self.min.unwrap_or(0) as i64)
            .with("sumOfSquares", ValueRef::Decimal128(decimal(self.squares)))
    }
}

/// How many queries had a property, and how many had not.
#[derive(Clone, Copy, Debug, Default)]
struct Flag {
    yes: u64,
    no: u64,
}

impl Flag {
    fn add(&mut self, has_it: bool) {
        *(if has_it { &mut self.yes } else { &mut self.no }) += 1;
    }

    fn to_document(self) -> DocumentBuf {
        DocumentBuf::new().with("true", self.yes as i64).with("false", self.no as i64)
    }
}

/// The numbers of all queries with one key.
#[derive(Clone, Debug)]
pub struct Metrics {
    last_micros: u64,
    executions: u64,
    total_micros: Sum,
    first_micros: Sum,
    returned: Sum,
    keys_examined: Sum,
    docs_examined: Sum,
    processor_nanos: Sum,
    sorts: Flag,
    used_disk: Flag,
    from_trial: Flag,
    from_cache: Flag,
    first_seen_ms: i64,
    last_seen_ms: i64,
}

impl Metrics {
    pub(super) fn new(first: &Finished) -> Self {
        Self {
            last_micros: 0,
            executions: 0,
            total_micros: Sum::default(),
            first_micros: Sum::default(),
            returned: Sum::default(),
            keys_examined: Sum::default(),
            docs_examined: Sum::default(),
            processor_nanos: Sum::default(),
            sorts: Flag::default(),
            used_disk: Flag::default(),
            from_trial: Flag::default(),
            from_cache: Flag::default(),
            first_seen_ms: first.ended_ms,
            last_seen_ms: first.ended_ms,
        }
    }

    pub(super) fn add(&mut self, finished: &Finished) {
        self.last_micros = finished.total_micros;
        self.executions += 1;
        self.total_micros.add(finished.total_micros);
        self.first_micros.add(finished.first_micros);
        self.returned.add(finished.returned);
        self.keys_examined.add(finished.keys_examined);
        self.docs_examined.add(finished.docs_examined);
        if let Some(nanos) = finished.processor_nanos {
            self.processor_nanos.add(nanos);
        }
        self.sorts.add(finished.plan.sorts);
        self.used_disk.add(finished.has_used_disk);
        self.from_trial.add(finished.plan.from_trial);
        self.from_cache.add(finished.plan.from_cache);
        self.last_seen_ms = finished.ended_ms;
    }

    /// The document `metrics` of an entry.
    pub fn to_document(&self) -> DocumentBuf {
        let mut document = DocumentBuf::new();
        document.append("lastExecutionMicros", self.last_micros as i64).append("execCount", self.executions as i64);
        for (name, sum) in [
            ("totalExecMicros", self.total_micros),
            ("firstResponseExecMicros", self.first_micros),
            ("docsReturned", self.returned),
            ("keysExamined", self.keys_examined),
            ("docsExamined", self.docs_examined),
            ("cpuNanos", self.processor_nanos),
        ] {
            document.append(name, &sum.to_document());
        }
        for (name, flag) in [
            ("hasSortStage", self.sorts),
            ("usedDisk", self.used_disk),
            ("fromMultiPlanner", self.from_trial),
            ("fromPlanCache", self.from_cache),
        ] {
            document.append(name, &flag.to_document());
        }
        document
            .append("firstSeenTimestamp", ValueRef::DateTime(self.first_seen_ms))
            .append("latestSeenTimestamp", ValueRef::DateTime(self.last_seen_ms));
        document
    }
}

/// A number as `NumberDecimal`, rounded to 34 digits.
fn decimal(number: u128) -> Decimal128 {
    Decimal128::parse(&number.to_string()).unwrap_or(Decimal128::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_become_decimals() {
        for number in [0, 1, 4254 * 4254, 1_000_000_000_000_000_000, 12_345_678_901_234_567_890_123_456] {
            assert_eq!(decimal(number).to_string(), number.to_string());
        }
    }
}
