//! EXPRESS_IXSCAN: `{_id: value}`, one key and one document.

use super::{DocumentStage, Documents, Row, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::run::{Run, StageStatistics};
use bunko_bson::key_string::Direction;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_catalog::{Index, from_storage, shorten_key};
use bunko_errors::Result;
use bunko_store::View;
use std::sync::Arc;

/// Looks up one `_id`.
pub(crate) struct Express {
    number: StageNumber,
    index: Arc<Index>,
    key: Arc<[u8]>,
}

impl Express {
    pub fn new(number: StageNumber, index: Arc<Index>, id: &Value) -> Self {
        let mut key = Vec::with_capacity(24);
        index.strings.append_key(&mut key, id.as_ref(), Direction::Ascending);
        shorten_key(&mut key);
        Self { number, index, key: key.into() }
    }
}

impl Stage for Express {
    fn name(&self, _query: &FindQuery) -> &'static str {
        if self.index.is_clustered { "EXPRESS_CLUSTERED_IXSCAN" } else { "EXPRESS_IXSCAN" }
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        Vec::new()
    }

    fn describe(&self, _query: &FindQuery, facts: &mut Facts<'_>) {
        // This stage shows the key pattern as a string; the other stages show a document.
        let pattern = ValueText(ValueRef::Document(self.index.key_pattern())).to_string();
        facts.append("keyPattern", &pattern).append("indexName", &self.index.name);
    }

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        facts
            .append("keysExamined", statistics.keys_examined as i32)
            .append("docsExamined", statistics.docs_examined as i32);
    }

    fn effort(&self) -> Effort {
        Effort::Lookups(1)
    }
}

impl DocumentStage for Express {
    fn open(&self, _run: &Run) -> Box<dyn Documents> {
        Box::new(Lookup {
            number: self.number,
            index: Arc::clone(&self.index),
            key: Some(Arc::clone(&self.key)),
            document: Vec::new(),
        })
    }
}

struct Lookup {
    number: StageNumber,
    index: Arc<Index>,
    /// The key, until it has been looked up.
    key: Option<Arc<[u8]>>,
    document: Vec<u8>,
}

impl Documents for Lookup {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        run.at(self.number).is_at_end = true;
        let Some(key) = self.key.take() else { return Ok(None) };
        let Some(record) = run.snapshot.key(self.index.keyspace, &key).map_err(from_storage)? else {
            return Ok(None);
        };
        let keyspace = run.collection.records();
        let location = run.snapshot.record(keyspace, record, &mut self.document).map_err(from_storage)?;
        run.note_key(self.number);
        let statistics = run.at(self.number);
        if location.is_none() {
            return Ok(None);
        }
        statistics.docs_examined += 1;
        statistics.advanced += 1;
        Ok(Some(Row { record, document: DocumentRef::trusted(&self.document) }))
    }

    fn is_over(&self) -> bool {
        self.key.is_none()
    }
}
