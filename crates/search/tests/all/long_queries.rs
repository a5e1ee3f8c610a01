//! Queries that are very long, or ask for very much, take what they need for the documents that they find, or stop soon
//! after their operation has to.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::{Interruption, MemoryLimits, OperationContext};
use bunko_search::{Definition, Documents, Postings, Schema, Search, SearchIndexDefinition, SearchQuery, SearchStage};
use bunko_testkit::cpu_time::CpuTime;
use bunko_testkit::shell::parse_document;
use std::sync::Arc;
use std::time::Duration;

/// An operation that has to stop when its thread has used this much processor time.
struct Until(CpuTime, Duration);

impl Interruption for Until {
    fn reason(&self) -> Option<Failure> {
        let is_over = self.0.elapsed() > self.1;
        is_over.then(|| Failure::new(ErrorCode::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"))
    }
}

fn operation(time: Duration) -> Arc<OperationContext> {
    OperationContext::new(Arc::new(Until(CpuTime::now(), time)), MemoryLimits::none())
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
    defined("{mappings: {dynamic: true, fields: {t: [{type: 'string'}, {type: 'autocomplete'}], k: {type: 'token'}}}}")
}

fn defined(text: &str) -> Arc<Definition> {
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
        let query = SearchQuery::parse(query.as_ref(), SearchStage::Documents)?;
        let search = Search::new(query, definition, operation)?;
        let hits = search.run(self, SearchStage::Documents)?.hits;
        for hit in &hits {
            search.show(hit, self.documents[hit.record as usize].as_ref())?;
        }
        Ok(hits.len())
    }
}

/// Asks for more than a second's work, which stops soon after a tenth of one, in a debug build.
fn assert_stops(collection: &mut Collection, name: &str, query: &DocumentBuf, definition: &Arc<Definition>) {
    let begun = CpuTime::now();
    let failure = collection.found(query, definition, Duration::from_millis(100)).map(drop);
    let code = failure.map_err(|failure| failure.code());
    assert!(begun.elapsed() < Duration::from_secs(5), "{name}: {:?}", begun.elapsed());
    assert_eq!(code, Err(ErrorCode::MAX_TIME_MS_EXPIRED), "{name}");
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
fn a_long_text_to_complete_is_cut_once_for_all_documents() {
    let definition = definition();
    let documents = (0..2_000).map(|number| DocumentBuf::new().with("t", format!("v{number}").as_str())).collect();
    // If the text were cut for each document, that would be two hundred million words.
    let query = asking("autocomplete", &words("w", 100_000), &nothing());
    let found = Collection::new(documents, &definition, false).found(&query, &definition, Duration::from_mins(1));
    assert_eq!(found.expect("it comes to its end in time"), 0);
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
            let begun = CpuTime::now();
            match collection.found(query, &definition, Duration::from_millis(100)) {
                Ok(_) => {}
                Err(failure) => assert!(
                    [ErrorCode::MAX_TIME_MS_EXPIRED, ErrorCode(8)].contains(&failure.code()),
                    "{name}: {failure}"
                ),
            }
            // A debug build takes long from one check to the next; a search that never checks its limits takes minutes.
            assert!(begun.elapsed() < Duration::from_secs(5), "{name}: {:?}", begun.elapsed());
            println!("{name}: {:?}", begun.elapsed());
        }
    }
}

#[test]
fn cutting_a_text_stops_soon_after_it_has_to() {
    let mut mappings = nothing();
    for number in 0..20_000 {
        mappings.append(&format!("x{number}"), "y");
    }
    let mapped = nothing().with("type", "mapping").with("mappings", &mappings);
    let mapped = bunko_testkit::shell::print((&mapped).into());
    let keyword = "tokenizer: {type: 'keyword'}";
    let letters = "abcdefgh".repeat(25_000);
    let grams = "{type: 'nGram', minGram: 1, maxGram: 300}";
    for (parts, text) in [
        (format!("charFilters: [{mapped}], {keyword}"), letters.clone()),
        (format!("charFilters: [{{type: 'mapping', mappings: {{a: '{letters}'}}}}], {keyword}"), letters.clone()),
        ("tokenizer: {type: 'nGram', minGram: 1, maxGram: 1000}".to_owned(), letters.clone()),
        (format!("tokenizer: {{type: 'nGram', minGram: 300, maxGram: 300}}, tokenFilters: [{grams}]"), letters.clone()),
        (
            "tokenizer: {type: 'whitespace'}, tokenFilters: [{type: 'shingle', minShingleSize: 2, maxShingleSize: \
             100}]"
                .to_owned(),
            words("ab", 100_000),
        ),
        (
            format!(
                "{keyword}, tokenFilters: [{{type: 'regex', pattern: 'a', matches: 'all', replacement: '{letters}'}}]"
            ),
            letters.clone(),
        ),
    ] {
        let definition =
            format!("{{mappings: {{dynamic: true}}, analyzer: 'own', analyzers: [{{name: 'own', {parts}}}]}}");
        let documents = vec![nothing().with("t", text.as_str())];
        let definition = defined(&definition);
        let mut collection = Collection::new(documents, &definition, false);
        assert_stops(
            &mut collection,
            parts.split_at(60.min(parts.len())).0,
            &asking("text", "a", &nothing()),
            &definition,
        );
    }
}

#[test]
fn tags_without_an_end_take_no_longer_than_others() {
    let definition = defined(
        "{mappings: {dynamic: true}, analyzer: 'own', analyzers: [{name: 'own', charFilters: [{type: 'htmlStrip'}], \
         tokenizer: {type: 'whitespace'}}]}",
    );
    let documents = vec![nothing().with("t", "<a ".repeat(1_000_000).as_str())];
    let mut collection = Collection::new(documents, &definition, false);
    let found = collection.found(&asking("text", "<a", &nothing()), &definition, Duration::from_mins(1));
    assert_eq!(found.expect("in time"), 1);
}

#[test]
fn long_words_are_compared_as_far_as_they_may_differ() {
    let definition = defined("{mappings: {dynamic: true}, analyzer: 'lucene.keyword'}");
    let word = "abcdefghij".repeat(50_000);
    let documents = [word.clone() + "x", word.replacen('e', "y", 3)].map(|word| nothing().with("t", word.as_str()));
    let fuzzy = nothing().with("fuzzy", &nothing().with("maxEdits", 2));
    for has_postings in [false, true] {
        let mut collection = Collection::new(documents.to_vec(), &definition, has_postings);
        let found = collection.found(&asking("text", &word, &fuzzy), &definition, Duration::from_mins(1));
        assert_eq!(found.expect("in time"), 1);
    }
}

#[test]
fn many_paths_stop_soon_after_they_have_to() {
    let definition = defined("{mappings: {dynamic: true, fields: {k: {type: 'number'}}}}");
    let mut wide = nothing().with("t", "a");
    for field in 0..100_000 {
        wide.append(&format!("f{field}"), "a");
    }
    let names: Vec<_> = (0..100_000).map(|path| format!("p{path}")).collect();
    let paths: ArrayBuf = names.iter().map(String::as_str).collect();
    let mut facets = nothing();
    for facet in 0..100_000 {
        facets.append(&format!("f{facet}"), &nothing().with("type", "number"));
    }
    let mut collection = Collection::new(vec![wide.clone()], &definition, false);
    let of = |name: &str, arguments: &DocumentBuf| nothing().with(name, arguments);
    for query in [
        of("text", &nothing().with("query", "a").with("path", &paths)),
        of("range", &nothing().with("gt", 1).with("path", &paths)),
        of("near", &nothing().with("origin", 1).with("pivot", 1).with("path", &paths)),
        of("in", &nothing().with("value", 1).with("path", &paths)),
    ] {
        let name = query.as_ref().first().expect("an operator").name;
        assert_stops(&mut collection, name, &query, &definition);
    }
    // These queries end soon, one of them with an error.
    let begun = CpuTime::now();
    let like = of("moreLikeThis", &nothing().with("like", &wide));
    let stopped = collection.found(&like, &definition, Duration::from_millis(100)).is_err();
    let facets = of("facet", &nothing().with("facets", &facets));
    assert!(stopped && collection.found(&facets, &definition, Duration::from_millis(100)).is_err());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn marks_and_sentences_are_as_many_as_there_are_words() {
    let definition = definition();
    let documents = vec![nothing().with("t", "A b. ".repeat(100_000).as_str())];
    let term = nothing().with("term", &nothing().with("query", "a").with("path", "t"));
    let query = nothing()
        .with("span", &term)
        .with("highlight", &nothing().with("path", "t").with("maxCharsToExamine", 1_000_000));
    let mut collection = Collection::new(documents, &definition, false);
    assert_stops(&mut collection, "span", &query, &definition);
    let query = asking("text", "a", &nothing()).with("highlight", &nothing().with("path", "t"));
    let found = collection.found(&query, &definition, Duration::from_mins(1));
    assert_eq!(found.expect("in time"), 1);
}

#[test]
fn a_facet_finds_the_bucket_of_each_value() {
    let definition = defined("{mappings: {dynamic: true, fields: {k: {type: 'number'}}}}");
    let documents = ["1", "2.5", "[1, 9, 3]", "0", "10", "NaN", "4"]
        .map(|value| parse_document(&format!("{{k: {value}}}")).expect("a document"));
    let facets = "{facet: {facets: {f: {type: 'number', path: 'k', boundaries: [1, 3, 4, 10], default: 'other'}}}}";
    let query = parse_document(facets).expect("a query");
    let query = SearchQuery::parse(query.as_ref(), SearchStage::Metadata).expect("well formed");
    let search = Search::new(query, &definition, OperationContext::unlimited()).expect("it fits the index");
    let mut collection = Collection::new(documents.to_vec(), &definition, false);
    let found = search.run(&mut collection, SearchStage::Metadata).expect("nothing fails");
    let told = bunko_testkit::shell::print((&found.metadata).into()).replace("NumberLong(", "").replace(')', "");
    assert!(
        told.contains("{_id: 1, count: 3}, {_id: 3, count: 1}, {_id: 4, count: 2}, {_id: \"other\", count: 3}"),
        "{told}"
    );
}
