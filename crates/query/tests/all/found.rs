//! The records that a find yields, and its reads.

use crate::temporary::{document, find_query};
use bunko_catalog::Collection;
use bunko_query::{PlanChoice, plan};
use std::sync::Arc;

/// The records of a find, ascending, the choice of its plan, and the documents and keys that it read.
pub struct Found {
    pub records: Vec<u64>,
    pub choice: PlanChoice,
    pub summary: String,
    pub docs_examined: u64,
    pub keys_examined: u64,
}

/// Runs a find.
pub fn found(collection: &Arc<Collection>, find: &str) -> Found {
    let query = find_query(document(find).as_ref()).expect("a find");
    let mut execution = plan(collection, query).expect("a plan").open().expect("opened");
    let mut records = Vec::new();
    while let Some((record, _)) = execution.next_record().expect("read") {
        records.push(record.0);
    }
    records.sort_unstable();
    let statistics = execution.statistics();
    Found {
        records,
        choice: execution.choice(),
        summary: execution.report().summary,
        docs_examined: statistics.docs_examined,
        keys_examined: statistics.keys_examined,
    }
}

/// The records that match a filter, ascending, without an index.
pub fn scanned(collection: &Arc<Collection>, filter: &str) -> Vec<u64> {
    found(collection, &format!("{{filter: {filter}, hint: {{$natural: 1}}}}")).records
}
