//! The stages of plans, one file each. Every stage has a plan side, which is shared and explained ([`Stage`]), and a
//! running side, which the plan side opens.

mod and_scan;
mod assisted_scan;
mod clustered_scan;
mod collection_scan;
mod covered;
mod distinct_scan;
mod eof;
mod express;
mod fetch;
mod geo_near;
mod geo_scan;
mod hash_scan;
mod index_scan;
mod kept_fields;
mod keys_alone;
mod limit;
mod projection;
mod random_scan;
mod read_ahead;
mod residual;
mod return_key;
mod skip;
mod sort;
mod stored_count;
mod text_match;
mod text_or;
mod union_scan;
mod whole_document;

pub(crate) use and_scan::AndScan;
pub(crate) use clustered_scan::ClusteredScan;
pub(crate) use collection_scan::CollectionScan;
pub(crate) use covered::{Covered, Shown};
pub(crate) use distinct_scan::DistinctScan;
pub(crate) use eof::Eof;
pub(crate) use express::Express;
pub(crate) use fetch::Fetch;
pub(crate) use geo_near::GeoNear;
pub(crate) use geo_scan::GeoScan;
pub(crate) use hash_scan::HashScan;
pub(crate) use index_scan::IndexScan;
pub(crate) use keys_alone::KeysAlone;
pub(crate) use limit::Limit;
pub(crate) use projection::ProjectionStage;
pub(crate) use random_scan::RandomScan;
pub(crate) use residual::{DecidedByKeys, Residual};
pub(crate) use return_key::ReturnKey;
pub(crate) use skip::Skip;
pub(crate) use sort::Sort;
pub(crate) use stored_count::StoredCount;
pub(crate) use text_match::{TextInput, TextMatch};
pub(crate) use text_or::{ScoreUse, TermScan, TextOr};
pub(crate) use union_scan::{MergeScan, OrScan, Overlap};
pub(crate) use whole_document::WholeDocument;

use crate::effort::Effort;
use crate::explain::Facts;
use crate::find_query::FindQuery;
pub(crate) use crate::run::StageNumber;
use crate::run::{Run, StageStatistics};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::Result;
use bunko_store::RecordId;
use std::ops::ControlFlow;

/// The plan side of a stage, as explain shows it.
pub(crate) trait Stage: Send + Sync {
    /// The name that explain prints.
    fn name(&self, query: &FindQuery) -> &'static str;
    fn number(&self) -> StageNumber;
    /// The stages from which this stage reads.
    fn inputs(&self) -> Vec<&dyn Stage>;
    /// Adds the fields that explain shows beside the stage's name.
    fn describe(&self, query: &FindQuery, facts: &mut Facts<'_>);
    /// Adds the fields that explain shows of the stage's run beside the common counters.
    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf);
    fn effort(&self) -> Effort;
}

/// A stage that yields documents. They have at least the fields needed above it, see [`FindQuery::needed`]. A stage
/// that filters takes a [`WholeDocument`] instead.
pub(crate) trait DocumentStage: Stage {
    fn open(&self, run: &Run) -> Box<dyn Documents>;
    /// The input stage, if every record that it finds matches and is fetched: counting needs no documents.
    fn decided_by_keys(&self) -> Option<&dyn RecordStage> {
        None
    }
}

/// A stage that yields record ids.
pub(crate) trait RecordStage: Stage {
    fn open(&self, run: &Run) -> Box<dyn Records>;
    /// The stage itself if it scans one index; else `None`.
    fn as_index_scan(&self) -> Option<&IndexScan> {
        None
    }
}

/// A record and its document, lent until the next call.
pub(crate) struct Row<'a> {
    pub record: RecordId,
    pub document: DocumentRef<'a>,
}

impl<'a> Row<'a> {
    /// Makes a row from the record and document that a stage's search found, and counts it. `None` at the end.
    fn found(run: &mut Run, stage: StageNumber, record: Option<RecordId>, document: &'a [u8]) -> Option<Self> {
        let statistics = run.at(stage);
        match record {
            Some(_) => statistics.advanced += 1,
            None => statistics.is_at_end = true,
        }
        record.map(|record| Row { record, document: DocumentRef::trusted(document) })
    }
}

/// Examines a row where it lies, and says whether to go on.
pub(crate) type RowVisitor<'v> = dyn FnMut(&mut Run, Row<'_>) -> Result<ControlFlow<()>> + 'v;

/// The running side of a stage that yields documents. Callers stop at the end.
pub(crate) trait Documents: Send {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>>;

    /// Shows the remaining rows one by one until the visitor breaks. A stage that searches can avoid copying its rows
    /// here, unlike in `next`.
    fn visit(&mut self, run: &mut Run, visitor: &mut RowVisitor<'_>) -> Result<()> {
        while let Some(row) = self.next(run)? {
            if visitor(run, row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The number of remaining rows if it is known without a search; the stage has ended then.
    fn take_count(&mut self, _run: &mut Run) -> Option<u64> {
        None
    }

    /// Whether the stage has ended for certain; does not search for another row.
    fn is_over(&self) -> bool {
        false
    }
}

/// The running side of a stage that yields record ids, each once.
pub(crate) trait Records: Send {
    fn next(&mut self, run: &mut Run) -> Result<Option<RecordId>>;
}
