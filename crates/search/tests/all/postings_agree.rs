//! A search with postings and a search that scans all documents give the same documents in the same order, with scores
//! equal to the last bit, also after documents were replaced and deleted.

use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::Result;
use bunko_operation::OperationContext;
use bunko_search::{Documents, Postings, Schema, Search, SearchIndexDefinition, SearchQuery, SearchStage};
use bunko_testkit::random::Random;
use bunko_testkit::shell::parse_document;
use std::collections::BTreeMap;
use std::sync::Arc;

const WORDS: [&str; 20] = [
    "apple", "apples", "apply", "ample", "Fox", "foxes", "quick", "quirk", "the", "a", "Straße", "été", "ete", "x1",
    "x2", "running", "runs", "ran", "blue", "glue",
];

const DEFINITIONS: [&str; 3] = [
    "{mappings: {dynamic: true}}",
    "{analyzer: 'lucene.english', mappings: {dynamic: true, fields: {
        t: [{type: 'string', multi: {whole: {type: 'string', analyzer: 'lucene.keyword'}}}, {type: 'autocomplete'}],
        k: {type: 'token'}, n: {type: 'number'}, s: {type: 'string', norms: 'omit'}}}}",
    "{mappings: {fields: {
        t: [{type: 'string', analyzer: 'lucene.keyword'}, {type: 'autocomplete', tokenization: 'nGram', minGrams: 1}],
        k: {type: 'token'}, s: {type: 'string', analyzer: 'lucene.whitespace', ignoreAbove: 20},
        e: [{type: 'embeddedDocuments', fields: {t: {type: 'string'}}}, {type: 'document', fields: {t: {type: 'string'}}}]}}}",
];

fn initial(word: &str) -> &str {
    let end = word.char_indices().nth(1).map_or(word.len(), |(at, _)| at);
    &word[..end]
}

/// Draws of words, documents and queries.
struct Dice(Random);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit as u64) as usize
    }

    fn word(&mut self) -> &'static str {
        // The first words are common.
        let most = 1 + self.below(WORDS.len());
        WORDS[self.below(most)]
    }

    fn text(&mut self, most: usize) -> String {
        let count = self.below(most + 1);
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    fn document(&mut self) -> String {
        let mut fields = vec![format!("n: {}", self.below(5))];
        if self.below(8) > 0 {
            fields.push(format!("t: '{}'", self.text(8)));
        }
        if self.below(3) > 0 {
            fields.push(format!("s: ['{}', 3, '{}']", self.text(6), self.text(30)));
        }
        if self.below(3) > 0 {
            fields.push(format!("e: [{{t: '{}'}}, {{t: '{}', u: '{}'}}]", self.text(3), self.text(3), self.word()));
        }
        if self.below(2) > 0 {
            fields.push(format!("k: '{}'", self.word()));
        }
        format!("{{{}}}", fields.join(", "))
    }

    fn path(&mut self) -> &'static str {
        [
            "'t'",
            "'s'",
            "['t', 's']",
            "'e.t'",
            "{wildcard: '*'}",
            "{wildcard: 'e.*'}",
            "{value: 't', multi: 'whole'}",
            "'no'",
        ][self.below(8)]
    }

    fn clauses(&mut self, depth: usize) -> String {
        let count = 1 + self.below(3);
        (0..count).map(|_| format!("{{{}}}", self.operator(depth))).collect::<Vec<_>>().join(", ")
    }

    fn operator(&mut self, depth: usize) -> String {
        let path = self.path();
        match self.below(if depth == 0 { 13 } else { 18 }) {
            0..3 => format!("text: {{query: '{} q', path: {path}}}", self.text(3)),
            3 => format!("text: {{query: ['{}', 'w'], path: {path}, matchCriteria: 'all'}}", self.text(2)),
            4 => {
                let (edits, most) = (1 + self.below(2), 1 + self.below(4));
                format!(
                    "text: {{query: '{} z', path: {path}, fuzzy: {{maxEdits: {edits}, maxExpansions: {most}}}}}",
                    self.text(2)
                )
            }
            5 => format!("phrase: {{query: '{} {}', path: {path}, slop: {}}}", self.word(), self.word(), self.below(3)),
            6 => format!("wildcard: {{query: '{}*', path: {path}, allowAnalyzedField: true}}", initial(self.word())),
            7 => format!(
                "regex: {{query: '.*[{}]e.*', path: {path}, allowAnalyzedField: true}}",
                &"lkx"[..=self.below(3)]
            ),
            8 => format!(
                "span: {{or: {{clauses: [{{term: {{query: '{}', path: 't'}}}}, {{near: {{clauses: [{{term: {{query: '{}', path: 's'}}}}, \
                          {{term: {{query: '{}', path: 's'}}}}], slop: 3, inOrder: false}}}}]}}}}",
                self.word(),
                self.word(),
                self.word()
            ),
            9 => format!("moreLikeThis: {{like: [{{t: '{}', s: '{}'}}]}}", self.text(5), self.text(3)),
            10 => format!(
                "queryString: {{defaultPath: 't', query: '{} OR s:[a TO f] OR s:{}~1 AND NOT fox'}}",
                self.word(),
                self.word()
            ),
            11 => format!("range: {{path: 'n', gte: {}, lt: 4}}", self.below(4)),
            12 => "exists: {path: 'k'}".to_owned(),
            13 => format!(
                "autocomplete: {{path: 't', query: '{} {}', tokenOrder: '{}'}}",
                self.word(),
                initial(self.word()),
                ["any", "sequential"][self.below(2)]
            ),
            14 => format!("autocomplete: {{path: 't', query: '{}', fuzzy: {{maxEdits: 1}}}}", self.word()),
            _ => {
                let mut parts = Vec::new();
                for name in ["must", "mustNot", "should", "filter"] {
                    if self.below(2) > 0 {
                        parts.push(format!("{name}: [{}]", self.clauses(depth - 1)));
                    }
                }
                if parts.is_empty() {
                    parts.push("mustNot: [{text: {query: 'apple', path: 't'}}]".to_owned());
                }
                let score = [
                    "",
                    ", score: {boost: {value: 3}}",
                    ", score: {function: {add: [{path: 'n'}, {score: 'relevance'}]}}",
                ];
                format!("compound: {{{}{}}}", parts.join(", "), score[self.below(3)])
            }
        }
    }

    fn query(&mut self) -> String {
        let operator = self.operator(2);
        match self.below(6) {
            0 => format!("{{{operator}, sort: {{n: 1}}}}"),
            1 => format!(
                "{{facet: {{operator: {{{operator}}}, facets: {{f: {{type: 'number', path: 'n', boundaries: [0, 2, 9]}}}}}}}}"
            ),
            2 => format!(
                "{{embeddedDocument: {{path: 'e', operator: {{text: {{path: 'e.t', query: '{}'}}}}}}}}",
                self.word()
            ),
            _ => format!("{{{operator}}}"),
        }
    }
}

/// Documents by record, with or without postings, and the number of documents read.
struct Collection<'c> {
    documents: &'c BTreeMap<u64, DocumentBuf>,
    postings: Option<&'c Postings>,
    looked_at: usize,
}

impl Documents for Collection<'_> {
    fn scan(&mut self, visit: &mut dyn FnMut(i64, DocumentRef<'_>) -> Result<()>) -> Result<()> {
        let all: Vec<u64> = self.documents.keys().copied().collect();
        self.read(&all, visit)
    }

    fn read(&mut self, records: &[u64], visit: &mut dyn FnMut(i64, DocumentRef<'_>) -> Result<()>) -> Result<()> {
        for record in records {
            self.looked_at += 1;
            visit(*record as i64, self.documents[record].as_ref())?;
        }
        Ok(())
    }

    fn ask(&mut self, _: &Arc<Schema>, ask: &mut dyn FnMut(&Postings) -> Result<()>) -> Result<bool> {
        let Some(postings) = self.postings else { return Ok(false) };
        ask(postings).map(|()| true)
    }
}

/// The result of a search: record, part and score bits of each hit, and the metadata; and the number of documents read.
fn found(
    query: &str,
    schema: &Definition,
    documents: &BTreeMap<u64, DocumentBuf>,
    postings: Option<&Postings>,
) -> (Result<String>, usize) {
    let mut collection = Collection { documents, postings, looked_at: 0 };
    let specification = parse_document(query).expect(query);
    let run = |collection: &mut Collection<'_>| {
        let query = SearchQuery::parse(specification.as_ref(), SearchStage::Documents)?;
        let search = Search::new(query, schema, OperationContext::unlimited())?;
        let found = search.run(collection, SearchStage::Documents)?;
        let hits: Vec<_> = found.hits.iter().map(|hit| (hit.record, hit.part, hit.score.to_bits())).collect();
        Ok(format!("{hits:?} {:?}", found.metadata))
    };
    (run(&mut collection), collection.looked_at)
}

type Definition = Arc<bunko_search::Definition>;

fn definition(text: &str) -> Definition {
    let document = parse_document(text).expect("a document");
    match SearchIndexDefinition::parse("search", document.as_ref(), "definition").expect("a definition") {
        SearchIndexDefinition::Search(definition) => definition,
        SearchIndexDefinition::Vector(_) => panic!("of type search"),
    }
}

fn put(documents: &mut BTreeMap<u64, DocumentBuf>, postings: &mut Postings, record: u64, document: &str) {
    let document = parse_document(document).expect(document);
    postings.put(record, document.as_ref(), &OperationContext::unlimited()).expect("it is put");
    documents.insert(record, document);
}

#[test]
fn postings_and_scan_find_the_same() {
    let (mut matches, mut refusals) = (0, 0);
    for seed in 1..=24_u64 {
        let mut dice = Dice(Random(seed));
        let definition = definition(DEFINITIONS[seed as usize % DEFINITIONS.len()]);
        let schema = Arc::new(Schema::new(&definition, "definition").expect("a schema"));
        let (mut documents, mut postings) = (BTreeMap::new(), Postings::new(&schema));
        for _ in 0..6 {
            for _ in 0..dice.below(60) {
                let record = dice.below(80) as u64;
                if dice.below(4) == 0 {
                    documents.remove(&record);
                    postings.remove(record);
                } else {
                    put(&mut documents, &mut postings, record, &dice.document());
                }
            }
            for _ in 0..25 {
                let query = dice.query();
                let (expected, _) = found(&query, &definition, &documents, None);
                let (answered, _) = found(&query, &definition, &documents, Some(&postings));
                match (expected, answered) {
                    (Ok(expected), Ok(answered)) => {
                        assert_eq!(answered, expected, "seed {seed}: {query}");
                        matches += usize::from(!expected.starts_with("[]"));
                    }
                    (Err(expected), Err(answered)) => {
                        assert_eq!(answered.to_string(), expected.to_string(), "{query}");
                        refusals += 1;
                    }
                    (expected, answered) => panic!("seed {seed}: {query}: {expected:?}, with postings {answered:?}"),
                }
            }
        }
    }
    assert!(matches > 1_000, "{matches} searches found something, {refusals} were refused");
}

#[test]
fn only_what_may_match_is_looked_at() {
    let definition = definition(DEFINITIONS[0]);
    let schema = Arc::new(Schema::new(&definition, "definition").expect("a schema"));
    let (mut documents, mut postings) = (BTreeMap::new(), Postings::new(&schema));
    for record in 0..100 {
        put(&mut documents, &mut postings, record, &format!("{{t: 'w{record} v{}', n: {record}}}", record / 10));
    }
    for (query, count) in [
        ("{text: {query: 'w7 w8', path: 't'}}", 2),
        ("{phrase: {query: 'w7 v0', path: 't'}}", 1),
        ("{wildcard: {query: 'w9*', path: 't', allowAnalyzedField: true}}", 11),
        ("{compound: {must: [{text: {query: 'v3', path: 't'}}], filter: [{range: {path: 'n', gte: 35}}]}}", 10),
        ("{compound: {should: [{range: {path: 'n', gte: 35}}, {text: {query: 'v3', path: 't'}}]}}", 100),
        ("{range: {path: 'n', gte: 35}}", 200),
    ] {
        assert_eq!(found(query, &definition, &documents, Some(&postings)).1, count, "{query}");
    }
    let bytes = postings.bytes();
    for round in 0..60 {
        (0..100).for_each(|record| put(&mut documents, &mut postings, record, &format!("{{t: 'z{round}'}}")));
    }
    assert!(postings.is_worn() && postings.bytes() > bytes, "{}", postings.bytes());
    assert_eq!(found("{text: {query: 'w7', path: 't'}}", &definition, &documents, Some(&postings)).1, 0);
}

#[test]
fn a_path_that_is_mapped_in_two_ways_is_searched_without_postings() {
    let text = "{mappings: {dynamic: false, fields: {
        'a.b': {type: 'string', analyzer: 'lucene.keyword'},
        a: {type: 'document', fields: {b: {type: 'string'}}}}}}";
    let definition = definition(text);
    let schema = Arc::new(Schema::new(&definition, "definition").expect("a schema"));
    let (mut documents, mut postings) = (BTreeMap::new(), Postings::new(&schema));
    put(&mut documents, &mut postings, 1, "{a: {b: 'one two'}}");
    put(&mut documents, &mut postings, 2, "{'a.b': 'one two'}");
    let query = "{text: {query: 'two', path: 'a.b'}}";
    let (expected, answered) =
        (found(query, &definition, &documents, None), found(query, &definition, &documents, Some(&postings)));
    assert_eq!(answered.0.expect("it is answered"), expected.0.expect("it is answered"));
    assert_eq!(answered.1, 4);
}
