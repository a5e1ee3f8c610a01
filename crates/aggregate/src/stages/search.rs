//! `$search` and `$searchMeta`: documents found by a search index, and facts about the whole result. The crate `search`
//! parses and runs the query; the documents come from [`crate::Sources`].

use super::{Definition, Reads, Stage, Stages};
use crate::metadata::Carried;
use crate::{DocumentStream, Environment, Searched, SourceName};
use bunko_bson::{DocumentBuf, StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, Offered};
use bunko_search::{
    Hit, Search, SearchIndexDefinition, SearchQuery, SearchStage, Shown, has_true, metadata_of_nothing,
};
use std::sync::Arc;

pub(super) const DOCUMENTS: Definition = Definition {
    facts: &bunko_stages::SEARCH,
    strings: StringUse::AsBytes,
    parse: |value, environment| parse("$search", SearchStage::Documents, value, environment),
};
pub(super) const METADATA: Definition = Definition {
    facts: &bunko_stages::SEARCH_META,
    strings: StringUse::AsBytes,
    parse: |value, environment| parse("$searchMeta", SearchStage::Metadata, value, environment),
};

/// The stage as sent. The server parses only what it needs itself; the rest is parsed once the collection is known to
/// exist, since on MongoDB a search node parses it.
struct Searching {
    name: &'static str,
    asked: SearchStage,
    specification: DocumentBuf,
}

/// Size of a parsed query as a multiple of its document's size: operators, paths and words become separate values.
const QUERY_PARTS: usize = 16;

/// Errors: `FailedToParse` for an array, 10065 for another value that is not a document; 13111 for an option of the
/// server that is not a boolean.
fn parse(name: &'static str, asked: SearchStage, value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let specification = match value {
        ValueRef::Document(specification) => specification,
        ValueRef::Array(_) => {
            let message = format!("{name} value must be an object. Found: array");
            return Err(Failure::failed_to_parse(message));
        }
        other => {
            let message = format!("invalid parameter: expected an object ({name}), found: {}", other.kind().alias());
            return Err(Failure::new(ErrorCode(10065), message));
        }
    };
    if asked == SearchStage::Documents {
        for option in ["scoreDetails", "returnStoredSource"] {
            if let Some(value) = specification.get(option).filter(|value| !matches!(value, ValueRef::Boolean(_))) {
                let message = format!(
                    "Wrong type for field ({option}) bool != {}, in the specification of {name}",
                    value.kind().alias()
                );
                return Err(Failure::new(ErrorCode(13111), message));
            }
        }
    }
    if let Some(over) = &environment.over {
        environment.sources.note(over, &environment.scope.strings)?;
    }
    environment.operation().will_take(specification.len_bytes())?;
    Ok(vec![Box::new(Searching { name, asked, specification: specification.to_owned() })])
}

impl Stage for Searching {
    fn name(&self) -> &'static str {
        self.name
    }

    fn open(self: Arc<Self>, _: Box<dyn DocumentStream>, environment: &Arc<Environment>) -> Box<dyn DocumentStream> {
        Box::new(Results { stage: self, environment: Arc::clone(environment), state: SearchPhase::Begins })
    }

    fn brings_documents(&self) -> bool {
        true
    }

    fn add_dependencies(&self, _: &mut Dependencies) -> Reads {
        Reads::OnlyThese
    }

    fn metadata(&self) -> Carried {
        let details = has_true(self.specification.as_ref(), "scoreDetails");
        match self.asked {
            SearchStage::Metadata => Carried::Lost,
            SearchStage::Documents if details => Carried::Made(Offered::SCORE.and(Offered::SCORE_DETAILS)),
            SearchStage::Documents => Carried::Made(Offered::SCORE),
        }
    }
}

struct Results {
    stage: Arc<Searching>,
    environment: Arc<Environment>,
    state: SearchPhase,
}

/// `Begins` → `Found` → `Over`; `Begins` → `Over` if there is nothing to find.
enum SearchPhase {
    Begins,
    Found { search: Box<Search>, searched: Box<dyn Searched>, hits: std::vec::IntoIter<Hit>, metadata: DocumentBuf },
    Over,
}

impl Results {
    /// Runs the search. Returns the document that comes before all results, if there is one.
    fn begin(&mut self) -> Result<Option<DocumentBuf>> {
        self.state = SearchPhase::Over;
        let (stage, environment) = (&self.stage, &self.environment);
        let Some(over) = &environment.over else { return Ok(None) };
        let Some(mut searched) = self.searched(over)? else { return Ok(None) };
        environment.operation().will_take(QUERY_PARTS * stage.specification.as_ref().len_bytes())?;
        let query = SearchQuery::parse(stage.specification.as_ref(), stage.asked)?;
        let definition = match searched.index(&query.index) {
            Some(SearchIndexDefinition::Search(definition)) => definition,
            Some(SearchIndexDefinition::Vector(_)) => {
                let message =
                    format!("{} needs an index of type search, \"{}\" is another one", stage.name, query.index);
                return Err(Failure::new(ErrorCode::UNKNOWN_ERROR, message));
            }
            None => return Ok((stage.asked == SearchStage::Metadata).then(metadata_of_nothing)),
        };
        let operation = Arc::clone(&environment.scope.operation);
        // A search that reads all documents would delay other work on the thread.
        if searched.is_long() {
            operation.leave_shared_thread()?;
        }
        let search = Search::new(query, &definition, operation)?;
        let found = search.run(searched.documents(), stage.asked)?;
        if stage.asked == SearchStage::Metadata {
            return Ok(Some(found.metadata));
        }
        let hits = found.hits.into_iter();
        self.state = SearchPhase::Found { search: Box::new(search), searched, hits, metadata: found.metadata };
        Ok(None)
    }

    fn searched(&self, over: &SourceName) -> Result<Option<Box<dyn Searched>>> {
        self.environment.sources.searched(over)
    }

    /// Reads the next result; skips those whose documents no longer exist.
    fn next_shown(&mut self) -> Result<Option<DocumentBuf>> {
        let SearchPhase::Found { search, searched, hits, metadata } = &mut self.state else { return Ok(None) };
        for hit in hits {
            self.environment.operation().work(1)?;
            let Some(document) = searched.document(hit.record)? else { continue };
            let Some(Shown { document, metadata: known }) = search.show(&hit, document.as_ref())? else { continue };
            let at_hand = &self.environment.scope.at_hand;
            if at_hand.is_wanted() {
                at_hand.set(Some(Arc::new(of_document(&known, metadata))));
            }
            return Ok(Some(document));
        }
        self.state = SearchPhase::Over;
        Ok(None)
    }
}

/// Puts the metadata of a document under all names that expressions may use.
fn of_document(known: &DocumentBuf, of_all: &DocumentBuf) -> DocumentBuf {
    let mut all = known.clone();
    for (name, also) in [("searchScore", "score"), ("searchScoreDetails", "scoreDetails")] {
        if let Some(value) = known.as_ref().get(name) {
            all.append(also, value);
        }
    }
    all.append("searchMeta", of_all);
    all
}

impl DocumentStream for Results {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        if matches!(self.state, SearchPhase::Begins)
            && let Some(only) = self.begin()?
        {
            return Ok(Some(only));
        }
        self.next_shown()
    }
}
