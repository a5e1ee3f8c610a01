//! Queries that are very long, or ask for very much, take what they need for the documents that they find, or stop soon
//! after their operation has to.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::{Interruption, MemoryLimits, OperationContext};
use bunko_search::{Asked, Definition, Documents, Postings, Schema, Search, SearchIndexDefinition, SearchQuery};
use bunko_testkit::shell::parse_document;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An operation that has to stop at a time.
struct Until(Instant);

impl Interruption for Until {
    fn reason(&self) -> Option<Failure> {
        let is_over = Instant::now() > self.0;
        is_over.then(|| Failure::new(ErrorCode::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"))
    }
}

fn operation(time: Duration) -> Arc<OperationContext> {
    OperationContext::new(Arc::new(Until(Instant::now() + time)), MemoryLimits::none())
}

struct Collection {
    documents: Vec<DocumentBuf>,
    postings: Option<Postings>,
}

impl Documents for Collection {
    fn scan(&mut self, visit: &mut dyn FnMut(i64, DocumentRef<'_>) -> Result<()>) -> Result<()> {
        self.documents.iter().enumerate().try_for_each(|(record, document)| visit(record as i64, document.as_ref()))
    }

    fn read(&mut self, records: &[u64], visit: &mut dyn FnMut(i64, DocumentRef<'_>) -> Result<()>) -> Result<()> {
        records.iter().try_for_each(|record| visit(*record as i64, self.documents[*record as usize].as_ref()))
    }

    fn ask(&mut self, _: &Arc<Schema>, ask: &mut dyn FnMut(&Postings) -> Result<()>) -> Result<bool> {
        let Some(postings) = &self.postings else { return Ok(false) };
        ask(postings).map(|()| true)
    }
}

fn definition() -> Arc<Definition> {
    let text =
        "{mappings: {dynamic: true, fields: {t: [{type: 'string'}, {type: 'autocomplete'}], k: {type: 'token'}}}}";
    let document = parse_document(text).expect("a document");
    match SearchIndexDefinition::parse("search", document.as_ref(), "definition").expect("a definition") {
        SearchIndexDefinition::Search(definition) => definition,
        SearchIndexDefinition::Vector(_) => panic!("of type search"),
    }
}

impl Collection {
    fn new(documents: Vec<DocumentBuf>, definition: &Arc<Definition>, has_postings: bool) -> Self {
        let schema = Arc::new(Schema::new(definition, "definition").expect("a schema"));
        let mut postings = Postings::new(&schema);
        for (record, document) in documents.iter().enumerate().filter(|_| has_postings) {
            postings.put(record as u64, document.as_ref(), &OperationContext::unlimited()).expect("it is put");
        }
        Self { documents, postings: has_postings.then_some(postings) }
    }

    fn found(&mut self, query: &DocumentBuf, definition: &Arc<Definition>, time: Duration) -> Result<usize> {
        let operation = operation(time);
        let query = SearchQuery::parse(query.as_ref(), Asked::Documents)?;
        let search = Search::new(query, definition, operation)?;
        Ok(search.run(self, Asked::Documents)?.hits.len())
    }
}

/// `{operator: {query, path: 't', ...}}`
fn asking(operator: &str, query: &str, more: &DocumentBuf) -> DocumentBuf {
    let mut arguments = DocumentBuf::new().with("query", query).with("path", "t");
    arguments.extend(more.as_ref());
    DocumentBuf::new().with(operator, &arguments)
}

fn nothing() -> DocumentBuf {
    DocumentBuf::new()
}

fn words(prefix: &str, count: usize) -> String {
    let all: Vec<_> = (0..count).map(|number| format!("{prefix}{number}")).collect();
    all.join(" ") + " "
}

#[test]
fn a_text_of_many_words_costs_each_document_its_own_words() {
    let definition = definition();
    let document = |number: usize| DocumentBuf::new().with("t", format!("w{number} v{} the", number % 7).as_str());
    let query = asking("text", &words("w", 100_000), &nothing());
    for has_postings in [false, true] {
        let mut collection = Collection::new((0..20_000).map(document).collect(), &definition, has_postings);
        // Words by documents would be two thousand million.
        let found = collection.found(&query, &definition, Duration::from_mins(1));
        assert_eq!(found.expect("it comes to its end in time"), 20_000, "with postings: {has_postings}");
    }
}

#[test]
fn all_stop_soon_after_they_have_to() {
    let definition = definition();
    let long = "a ".repeat(20_000) + &words("ab", 20_000);
    let document = |number: usize| {
        let strings: ArrayBuf =
            (0..2_000).map(|value| format!("s{value}")).collect::<Vec<_>>().iter().map(String::as_str).collect();
        DocumentBuf::new().with("t", long.as_str()).with("n", number as i32).with("k", &strings)
    };
    let documents: Vec<_> = (0..20).map(document).collect();
    let analyzed = nothing().with("allowAnalyzedField", true);
    let fuzzy = nothing().with("fuzzy", &nothing().with("maxEdits", 2).with("maxExpansions", 1_000));
    let like = nothing().with("like", &nothing().with("t", long.as_str()));
    let paths: ArrayBuf =
        (0..20_000).map(|path| format!("p{path}")).collect::<Vec<_>>().iter().map(String::as_str).collect();
    let many_paths = nothing().with("query", "a").with("path", &paths);
    let mut deep = asking("text", "a ab1", &nothing());
    for _ in 0..60 {
        let both: ArrayBuf = [&deep, &deep].into_iter().collect();
        let clauses = if deep.len_bytes() < 1 << 16 { both } else { [&deep].into_iter().collect() };
        deep = nothing().with("compound", &nothing().with("should", &clauses));
    }
    let mut facets = nothing();
    for facet in 0..2_000 {
        facets.append(&format!("f{facet}"), &nothing().with("type", "string").with("path", "k"));
    }
    let facet = nothing().with("operator", &asking("text", "a", &nothing())).with("facets", &facets);
    let queries = [
        asking("text", &words("ab", 100_000), &fuzzy),
        asking("text", &words("x", 100_000), &nothing().with("matchCriteria", "all")),
        asking("phrase", &"a ".repeat(19_000), &nothing().with("slop", 100_000)),
        asking("autocomplete", &words("a", 50_000), &nothing()),
        asking("wildcard", &"*a".repeat(2_000), &analyzed),
        asking("regex", "(a*)*(b|a)*(a*)*c", &analyzed),
        asking("regex", &"(a?){20}".repeat(20), &analyzed),
        nothing().with("moreLikeThis", &like),
        nothing().with("text", &many_paths),
        nothing().with("facet", &facet),
        deep,
    ];
    for has_postings in [false, true] {
        let mut collection = Collection::new(documents.clone(), &definition, has_postings);
        for query in &queries {
            let name = query.as_ref().first().expect("an operator").name;
            let begun = Instant::now();
            match collection.found(query, &definition, Duration::from_millis(100)) {
                Ok(_) => {}
                Err(failure) => assert!(
                    [ErrorCode::MAX_TIME_MS_EXPIRED, ErrorCode(8)].contains(&failure.code()),
                    "{name}: {failure}"
                ),
            }
            // A debug build beside other tests; what does not ask takes minutes.
            assert!(begun.elapsed() < Duration::from_secs(5), "{name}: {:?}", begun.elapsed());
            println!("{name}: {:?}", begun.elapsed());
        }
    }
}
