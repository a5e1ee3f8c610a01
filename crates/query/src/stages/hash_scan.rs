//! AND_HASH: the records that two scans find, in any order.
//!
//! The records of the first scan are held in a table, and those of the second are looked up in it. If the table is
//! full, the second scan runs for the records held so far, and again for each further part of the first. So the memory
//! has a bound, nothing is put on disk, and only a wrong estimate has several parts. Rejected: a sort of both scans by
//! record, which costs several times as much for each key.

use super::index_scan::Scan;
use super::{IndexScan, RecordStage, Records, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::{Facts, append_count};
use crate::find_query::FindQuery;
use crate::run::{Run, StageStatistics};
use bunko_bson::DocumentBuf;
use bunko_errors::Result;
use bunko_matcher::planted::{Fault, active};
use bunko_operation::{Gatherer, OperationContext};
use bunko_store::RecordId;
use std::collections::HashSet;
use std::sync::Arc;

/// Bytes that the table takes for each record.
const RECORD_BYTES: usize = 2 * size_of::<RecordId>();

/// The scan with fewer records comes first.
pub(crate) struct HashScan {
    pub number: StageNumber,
    pub scans: [Arc<IndexScan>; 2],
}

impl Stage for HashScan {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "AND_HASH"
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        self.scans.iter().map(|scan| scan.as_ref() as &dyn Stage).collect()
    }

    fn describe(&self, query: &FindQuery, facts: &mut Facts<'_>) {
        append_count(facts, "memLimit", bytes_max(&query.scope.operation) as u64);
    }

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        append_count(facts, "memUsage", statistics.gathered_bytes);
    }

    fn effort(&self) -> Effort {
        Effort::Searching
    }
}

impl RecordStage for HashScan {
    fn open(&self, _run: &Run) -> Box<dyn Records> {
        Box::new(Intersection {
            number: self.number,
            first: self.scans[0].open_scan(),
            second: Arc::clone(&self.scans[1]),
            held: HashSet::new(),
            left: 0,
            lookups: None,
        })
    }
}

/// The limit of a sort also holds here.
fn bytes_max(operation: &OperationContext) -> usize {
    operation.stage_bytes_max(Gatherer::Sort)
}

struct Intersection {
    number: StageNumber,
    first: Scan,
    second: Arc<IndexScan>,
    /// Records of the first scan.
    held: HashSet<RecordId>,
    /// Number of held records that the second scan has not found.
    left: usize,
    /// The second scan, while its records are looked up.
    lookups: Option<Scan>,
}

impl Intersection {
    /// Holds the next records of the first scan; returns whether there are any.
    fn gather(&mut self, run: &mut Run) -> Result<bool> {
        let query = Arc::clone(&run.query);
        let operation = &query.scope.operation;
        let most = (bytes_max(operation) / RECORD_BYTES).max(1);
        self.held.clear();
        while self.held.len() < most {
            let Some(record) = self.first.next(run)? else { break };
            if self.held.len() == self.held.capacity() {
                // The table doubles, and the old table is freed only when the new one is filled.
                operation.will_take(2 * RECORD_BYTES * self.held.capacity())?;
            }
            self.held.insert(record);
        }
        self.left = self.held.len();
        let statistics = run.at(self.number);
        statistics.gathered_bytes = statistics.gathered_bytes.max((self.held.len() * RECORD_BYTES) as u64);
        Ok(self.left > 0)
    }
}

impl Records for Intersection {
    fn next(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        loop {
            if let Some(lookups) = &mut self.lookups {
                while self.left > 0
                    && let Some(record) = lookups.next(run)?
                {
                    if self.held.contains(&record) || active(Fault::SecondScanPasses) {
                        self.left -= 1;
                        run.at(self.number).advanced += 1;
                        return Ok(Some(record));
                    }
                    run.at(self.number).rejected += 1;
                }
            }
            self.lookups = None;
            if !self.gather(run)? {
                run.at(self.number).is_at_end = true;
                return Ok(None);
            }
            self.lookups = Some(self.second.open_scan());
        }
    }
}
