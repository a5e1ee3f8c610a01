//! Every setting of a search and of its index changes the result, or is refused as not supported yet. A setting that the
//! code reads and that has no row here is an error too.

use crate::reader::tests::ASKED;
use crate::{Definition, Documents, Search, SearchQuery, SearchStage, VectorDefinition};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use bunko_testkit::shell::parse_document;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

const DOCUMENTS: [&str; 6] = [
    "{_id: 1, t: 'the quick brown Fox. It jumps', u: 'fox fox fox bear', n: 1, d: new Date(1000), k: 'One', b: true, \
      o: ObjectId('000000000000000000000001'), g: {type: 'Point', coordinates: [1, 1]}, e: [{t: 'red fox', n: 1}, {t: 'fox', n: 2}]}",
    "{_id: 2, t: 'quick fox', u: 'bear fox', n: 2.5, d: new Date(2000), k: 'two', b: false, e: [{t: 'blue', n: 5}]}",
    "{_id: 3, t: 'été summer quirk', u: 'winter', n: 30, d: new Date(3000), k: 'three', g: {type: 'Point', coordinates: [50, 50]}}",
    "{_id: 4, t: 'brown quick', n: 4, k: 'one', s: {type: 'Polygon', coordinates: [[[0, 0], [0, 2], [2, 2], [2, 0], [0, 0]]]}}",
    "{_id: 5, t: ['foxes run', 'fax'], u: 'a long text of words that stands here and has no animal in it at all', m: 3}",
    "{_id: 6, t: 'o\u{0301}', q: 'a-b ab AB', h: '<b>bold</b> <i>word</i>', x: 1}",
];

const PLAIN: &str = "{mappings: {dynamic: true}}";

/// Settings about the work of several search nodes, and about notes on searches. Here one process answers every search
/// with exact counts. They do not change the results of MongoDB either.
const OF_SEARCH_NODES: &str = "concurrent tracking searchTerms searchNodePreference key threshold index";

/// Names of parts of other settings.
const STRUCTURE: &str = "type value path mappings fields coordinates name source collection";

/// Searches that differ in a setting each.
const PAIRS: &str = include_str!("../tests/settings/pairs.txt");

const FOX: &str = "{text: {path: 't', query: 'fox'}}";

/// Two searches that differ in one setting.
struct Pair {
    /// Names of the setting.
    names: &'static str,
    /// Definition and query with the usual value.
    usual: (&'static str, &'static str),
    /// Definition and query with another value.
    set: (&'static str, &'static str),
}

fn pairs() -> Vec<Pair> {
    let pair = |block: &'static str| {
        let mut lines = block.trim().lines();
        let names = lines.next().expect("names");
        let mut part =
            || lines.next().and_then(|line| line.trim().split_once(' ')).expect("a word, and what it stands for");
        let ((of_both, shared), (_, usual), (_, set)) = (part(), part(), part());
        match of_both {
            "index" => Pair { names, usual: (shared, usual), set: (shared, set.trim()) },
            _ => Pair { names, usual: (usual, shared), set: (set.trim(), shared) },
        }
    };
    PAIRS.split("\n\n").filter(|block| !block.starts_with('#')).map(pair).collect()
}

struct Scanned(Vec<DocumentBuf>);

impl Documents for Scanned {
    fn scan(&mut self, visit: &mut dyn FnMut(i64, DocumentRef<'_>) -> Result<()>) -> Result<()> {
        (1..).zip(&self.0).try_for_each(|(record, document)| visit(record, document.as_ref()))
    }

    fn read(&mut self, _: &[u64], _: &mut dyn FnMut(i64, DocumentRef<'_>) -> Result<()>) -> Result<()> {
        unreachable!("there are no postings to tell of records")
    }
}

/// The documents that a search finds, with their metadata and its own.
fn found((definition, query): (&str, &str)) -> Result<String> {
    let parse = |text: &str| parse_document(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let mut documents = Scanned(DOCUMENTS.iter().map(|document| parse(document)).collect());
    let definition = Arc::new(Definition::parse(parse(definition).as_ref(), "definition")?);
    let query = SearchQuery::parse(parse(query).as_ref(), SearchStage::Documents)?;
    let search = Search::new(query, &definition, OperationContext::unlimited())?;
    let found = search.run(&mut documents, SearchStage::Documents)?;
    let mut told = format!("{:?}", found.metadata);
    for hit in found.hits {
        let document = documents.0[hit.record as usize - 1].clone();
        if let Some(shown) = search.show(&hit, document.as_ref())? {
            write!(told, "\n{:?} {:?}", shown.document, shown.metadata).expect("a string takes any text");
        }
    }
    Ok(told)
}

#[test]
fn every_setting_counts_or_is_refused() {
    let mut covered: BTreeSet<&str> = OF_SEARCH_NODES.split(' ').chain(STRUCTURE.split(' ')).collect();
    let mut without_effect = Vec::new();
    for row in pairs() {
        covered.extend(row.names.split(' '));
        let same = match (found(row.usual), found(row.set)) {
            (Ok(usual), Ok(set)) => usual == set,
            (_, Err(refused)) if refused.code() == ErrorCode::COMMAND_NOT_SUPPORTED => false,
            // A query that the other index refuses, or the other way round.
            (usual, set) => {
                let words = |found: &Result<String>| found.as_ref().err().map(Failure::message).map(str::to_owned);
                words(&usual) == words(&set)
            }
        };
        if same {
            without_effect.push(format!("{}: {:?}", row.names, found(row.set)));
        }
    }
    assert!(without_effect.is_empty(), "settings that change nothing:\n{}", without_effect.join("\n"));
    let refused = "{compound: {must: {term: {path: 't', query: 'x', wildcard: true}}}}";
    assert_eq!(found((PLAIN, refused)).expect_err("refused").code(), ErrorCode::COMMAND_NOT_SUPPORTED);
    let asked = ASKED.with_borrow(Clone::clone);
    let is_of_documents = |name: &&String| name.len() == 1;
    let missing: Vec<&String> =
        asked.iter().filter(|name| !covered.contains(name.as_str()) && !is_of_documents(name)).collect();
    assert!(missing.is_empty(), "settings without a row: {missing:?}");
}

#[test]
fn settings_of_search_nodes_find_the_same() {
    let usual = found((PLAIN, FOX)).expect("found");
    for set in [
        "concurrent: true",
        "tracking: {searchTerms: 'fox'}",
        "searchNodePreference: {key: 'a'}",
        "count: {threshold: 1}",
    ] {
        let query = format!("{{text: {{path: 't', query: 'fox'}}, {set}}}");
        assert_eq!(found((PLAIN, &query)).expect("found"), usual, "{set}");
    }
}

#[test]
fn settings_of_vectors_are_kept_or_refused() {
    let vector = |more: &str| {
        let text = format!("{{fields: [{{type: 'vector', path: 'v', numDimensions: 2, similarity: 'cosine'{more}}}]}}");
        let definition = parse_document(&text).expect("a definition");
        VectorDefinition::parse(definition.as_ref(), "definition").map_err(|failure| failure.code())
    };
    for taken in ["", ", quantization: 'none'", ", indexingMethod: 'flat'", ", hnswOptions: {maxEdges: 20}"] {
        assert!(vector(taken).is_ok(), "{taken}");
    }
    for refused in [", quantization: 'scalar'", ", quantization: 'binary'"] {
        assert_eq!(vector(refused).err(), Some(ErrorCode::COMMAND_NOT_SUPPORTED), "{refused}");
    }
}
