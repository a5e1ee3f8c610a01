//! TEXT_MATCH: of the documents that have some of the terms, those that match the whole search.

use super::{DocumentStage, Documents, Row, Stage, StageNumber};
use crate::execution::{Run, StageStatistics};
use crate::find_query::FindQuery;
use crate::plan::Effort;
use bunko_bson::{ArrayBuf, DocumentBuf, Value};
use bunko_catalog::Index;
use bunko_errors::Result;
use bunko_matcher::AskedText;
use std::sync::Arc;

/// Checks phrases, and what must not be there.
pub(crate) struct TextMatch {
    pub number: StageNumber,
    pub index: Arc<Index>,
    /// The values of the fields before the texts.
    pub prefix: Vec<Value>,
    pub asked: Arc<AskedText>,
    pub input: Box<dyn DocumentStage>,
}

impl Stage for TextMatch {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "TEXT_MATCH"
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        vec![self.input.as_ref()]
    }

    fn describe(&self, _query: &FindQuery, facts: &mut DocumentBuf) {
        let fields = self.index.kind.text().map(|text| text.prefix.as_slice()).unwrap_or_default();
        let prefix = fields
            .iter()
            .zip(&self.prefix)
            .fold(DocumentBuf::new(), |prefix, (field, value)| prefix.with(&field.path, value));
        let search = &self.asked.search;
        let list = |words: &mut dyn Iterator<Item = &String>| words.map(String::as_str).collect::<ArrayBuf>();
        let query = DocumentBuf::new()
            .with("terms", &list(&mut search.terms.iter()))
            .with("negatedTerms", &list(&mut search.negated_terms.iter()))
            .with("phrases", &list(&mut search.phrases.iter()))
            .with("negatedPhrases", &list(&mut search.negated_phrases.iter()));
        facts
            .append("indexPrefix", &prefix)
            .append("indexName", self.index.name.as_str())
            .append("parsedTextQuery", &query);
        if let Some(version) = self.index.document.as_ref().get("textIndexVersion") {
            facts.append("textIndexVersion", version);
        }
    }

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        facts.append("docsRejected", statistics.rejected as i32);
    }

    fn effort(&self) -> Effort {
        Effort::Searching
    }
}

impl DocumentStage for TextMatch {
    fn open(&self, run: &Run) -> Box<dyn Documents> {
        Box::new(Matching {
            number: self.number,
            asked: Arc::clone(&self.asked),
            input: self.input.open(run),
            document: Vec::new(),
        })
    }
}

struct Matching {
    number: StageNumber,
    asked: Arc<AskedText>,
    input: Box<dyn Documents>,
    document: Vec<u8>,
}

impl Documents for Matching {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        let AskedText { fields, search } = &*self.asked;
        let operation = Arc::clone(&run.query.scope.operation);
        loop {
            let Some(row) = self.input.next(run)? else {
                run.at(self.number).is_at_end = true;
                return Ok(None);
            };
            if search.matches_beyond_terms(fields, row.document, Some(&operation))? {
                run.at(self.number).advanced += 1;
                let record = row.record;
                self.document.clear();
                self.document.extend_from_slice(row.document.as_bytes());
                return Ok(Some(Row { record, document: bunko_bson::DocumentRef::trusted(&self.document) }));
            }
            run.at(self.number).rejected += 1;
        }
    }
}
