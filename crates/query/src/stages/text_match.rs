//! TEXT_MATCH: filters documents with some of the terms by the whole text search.

use super::fetch::Fetching;
use super::{DocumentStage, Documents, Fetch, KeysAlone, RecordStage, Row, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::run::{Run, StageStatistics};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value};
use bunko_catalog::Index;
use bunko_errors::Result;
use bunko_matcher::AskedText;
use std::sync::Arc;

/// Checks phrases and negated terms.
pub(crate) struct TextMatch {
    pub number: StageNumber,
    pub index: Arc<Index>,
    /// The values of the fields before the texts.
    pub prefix: Vec<Value>,
    pub asked: Arc<AskedText>,
    pub input: TextInput,
}

/// The documents that the search reads.
pub(crate) enum TextInput {
    /// Documents of records that have its terms.
    Documents(Fetch),
    /// None: the terms decide, and no reader needs the documents.
    Terms(KeysAlone),
}

impl TextInput {
    fn stage(&self) -> &dyn DocumentStage {
        match self {
            Self::Documents(fetch) => fetch,
            Self::Terms(keys) => keys,
        }
    }
}

impl Stage for TextMatch {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "TEXT_MATCH"
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        vec![self.input.stage()]
    }

    fn describe(&self, _query: &FindQuery, facts: &mut Facts<'_>) {
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
        let number = self.number;
        match &self.input {
            TextInput::Documents(fetch) => Box::new(Matching {
                number,
                asked: Arc::clone(&self.asked),
                input: fetch.open_whole(run),
                document: Vec::new(),
            }),
            TextInput::Terms(keys) => Box::new(Passing { number, input: keys.open(run) }),
        }
    }

    fn decided_by_keys(&self) -> Option<&dyn RecordStage> {
        self.input.stage().decided_by_keys()
    }
}

struct Matching {
    number: StageNumber,
    asked: Arc<AskedText>,
    input: Fetching,
    document: Vec<u8>,
}

impl Documents for Matching {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        let AskedText { fields, search } = &*self.asked;
        let operation = Arc::clone(&run.query.scope.operation);
        loop {
            let Some((record, document)) = self.input.next_whole(run)? else {
                run.at(self.number).is_at_end = true;
                return Ok(None);
            };
            if search.matches_beyond_terms(fields, document.fields(), Some(&operation))? {
                run.at(self.number).advanced += 1;
                self.document.clear();
                self.document.extend_from_slice(document.fields().as_bytes());
                return Ok(Some(Row { record, document: DocumentRef::trusted(&self.document) }));
            }
            run.at(self.number).rejected += 1;
        }
    }
}

/// Passes on records that the terms decided.
struct Passing {
    number: StageNumber,
    input: Box<dyn Documents>,
}

impl Documents for Passing {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        let row = self.input.next(run)?;
        match row {
            Some(_) => run.at(self.number).advanced += 1,
            None => run.at(self.number).is_at_end = true,
        }
        Ok(row)
    }
}
