//! The stages that plans are made of, one file each. Every stage has a plan's side, which is shared and explained
//! ([`Stage`]), and a running side, which it opens.

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
mod index_scan;
mod kept_fields;
mod keys_alone;
mod limit;
mod or_scan;
mod projection;
mod read_ahead;
mod residual;
mod return_key;
mod skip;
mod sort;
mod text_match;
mod text_or;
mod whole_document;

pub(crate) use clustered_scan::ClusteredScan;
pub(crate) use collection_scan::CollectionScan;
pub(crate) use covered::{Covered, Shown};
pub(crate) use distinct_scan::DistinctScan;
pub(crate) use eof::Eof;
pub(crate) use express::Express;
pub(crate) use fetch::Fetch;
pub(crate) use geo_near::GeoNear;
pub(crate) use geo_scan::GeoScan;
pub(crate) use index_scan::IndexScan;
pub(crate) use keys_alone::KeysAlone;
pub(crate) use limit::Limit;
pub(crate) use or_scan::OrScan;
pub(crate) use projection::{ProjectionStage, names_fields_alone};
pub(crate) use residual::{DecidedByKeys, Residual};
pub(crate) use return_key::ReturnKey;
pub(crate) use skip::Skip;
pub(crate) use sort::Sort;
pub(crate) use text_match::{TextInput, TextMatch};
pub(crate) use text_or::{ScoreUse, TermScan, TextOr};
pub(crate) use whole_document::WholeDocument;

use crate::execution::{Run, StageStatistics};
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::plan::Effort;
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::Result;
use bunko_store::RecordId;
use std::ops::ControlFlow;

/// A stage's place in its plan: where its statistics are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StageNumber(pub usize);

/// The plan's side of a stage, as explain shows it.
pub(crate) trait Stage: Send + Sync {
    /// The name that explain prints.
    fn name(&self, query: &FindQuery) -> &'static str;
    fn number(&self) -> StageNumber;
    /// The stages that it reads from.
    fn inputs(&self) -> Vec<&dyn Stage>;
    /// Adds what explain says of the stage beyond its name.
    fn describe(&self, query: &FindQuery, facts: &mut Facts<'_>);
    /// Adds what explain says of the stage's run beyond the counters that all stages have.
    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf);
    fn effort(&self) -> Effort;
}

/// A stage that yields documents: at least those of their fields that are needed above it, see [`FindQuery::needed`]. A stage
/// that filters takes a [`WholeDocument`] instead.
pub(crate) trait DocumentStage: Stage {
    fn open(&self, run: &Run) -> Box<dyn Documents>;
    /// The stage below, if every record that it finds matches and is fetched: counting needs no document.
    fn decided_by_keys(&self) -> Option<&dyn RecordStage> {
        None
    }
}

/// A stage that yields records' ids.
pub(crate) trait RecordStage: Stage {
    fn open(&self, run: &Run) -> Box<dyn Records>;
    /// The stage as a scan of one index.
    fn as_index_scan(&self) -> Option<&IndexScan> {
        None
    }
}

/// A record and its document, lent until the next one is asked for.
pub(crate) struct Row<'a> {
    pub record: RecordId,
    pub document: DocumentRef<'a>,
}

impl<'a> Row<'a> {
    /// What a stage's search found, counted: the record, and its document from where the search has left it; nothing at
    /// the end.
    fn found(run: &mut Run, stage: StageNumber, record: Option<RecordId>, document: &'a [u8]) -> Option<Self> {
        let statistics = run.at(stage);
        match record {
            Some(_) => statistics.advanced += 1,
            None => statistics.is_at_end = true,
        }
        record.map(|record| Row { record, document: DocumentRef::trusted(document) })
    }
}

/// What looks at rows in their place, and says whether it wants more.
pub(crate) type RowVisitor<'v> = dyn FnMut(&mut Run, Row<'_>) -> Result<ControlFlow<()>> + 'v;

/// The running side of a stage that yields documents. Not asked again after the end.
pub(crate) trait Documents: Send {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>>;

    /// Shows the rows that are left one by one, until the visitor has enough: a stage that searches need not copy what it
    /// found, as it must for a caller that comes back.
    fn visit(&mut self, run: &mut Run, visitor: &mut RowVisitor<'_>) -> Result<()> {
        while let Some(row) = self.next(run)? {
            if visitor(run, row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Whether it is known, without looking for one, that there is no other.
    fn is_over(&self) -> bool {
        false
    }
}

/// The running side of a stage that yields records' ids, each once.
pub(crate) trait Records: Send {
    fn next(&mut self, run: &mut Run) -> Result<Option<RecordId>>;
}
