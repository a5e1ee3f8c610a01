//! Checks the handbook's pages on the lab: their scenario files run, and they explain every key.

use bunko_bench::check;
use bunko_bench::operation::OPERATIONS;
use bunko_bench::scenario::{BUILTIN, ScenarioSource};
use bunko_dataset::{Distribution, IdKind, KeyOrder, SHAPES};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Fence of a whole scenario file; `toml` alone marks a part of one.
const WHOLE_SCENARIO: &str = "toml scenario";

fn pages() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab");
    let entries = fs::read_dir(folder).expect("the lab's pages").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

fn page(name: &str) -> String {
    let path = pages().into_iter().find(|path| path.ends_with(name)).unwrap_or_else(|| panic!("there is no {name}"));
    fs::read_to_string(path).expect("readable")
}

/// Fenced blocks with the text after their opening fence.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        open = match (line.strip_prefix("```"), open) {
            (Some(info), None) => Some((info.to_owned(), String::new())),
            (Some(_), Some(block)) => {
                blocks.push(block);
                None
            }
            (None, Some((info, inside))) => Some((info, inside + line + "\n")),
            (None, None) => None,
        };
    }
    blocks
}

#[test]
fn scenarios_in_the_pages_can_be_run() {
    let mut whole = 0;
    for path in pages() {
        let name = path.display().to_string();
        for (info, text) in blocks(&fs::read_to_string(&path).expect("readable")) {
            if info == WHOLE_SCENARIO {
                let source = ScenarioSource::parse(&name, &text).unwrap_or_else(|error| panic!("{error}"));
                check(&source).unwrap_or_else(|error| panic!("{name}: {error}"));
                whole += 1;
            } else if info.starts_with("toml") {
                assert_eq!(info, "toml", "{name}: neither a whole scenario nor a part of one");
                toml::from_str::<toml::Table>(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
    }
    assert!(whole >= 2, "the worked example and the method's are found");
}

/// The keys of a table, from the error for a wrong key.
fn keys(with_wrong_key: &str) -> BTreeSet<String> {
    let error = ScenarioSource::parse("file", with_wrong_key).expect_err("it has a wrong key");
    let (_, expected) = error.message.split_once("expected").unwrap_or_else(|| panic!("{error}"));
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_key_of_a_scenario_file_is_explained() {
    let page = page("scenarios.md");
    let tables = [
        "wrong = 1",
        "dataset = { wrong = 1 }",
        "load = { wrong = 1 }",
        "server = { wrong = 1 }",
        "phase = [{ wrong = 1 }]",
        "phase = [{ name = 'x', operation.find = {}, limits = { wrong = 1 } }]",
        "allocation = { wrong = 1 }",
    ];
    for key in tables.iter().flat_map(|table| keys(table)) {
        assert!(page.contains(&format!("\n| `{key}` |")), "docs/lab/scenarios.md has no row for '{key}'");
    }
    for (operation, _) in OPERATIONS {
        assert!(page.contains(&format!("\n| `{operation}` |")), "docs/lab/scenarios.md does not explain '{operation}'");
        for setting in keys(&format!("phase = [{{ name = 'x', operation.{operation} = {{ wrong = 1 }} }}]")) {
            let explained = rows_of(&page, operation).any(|row| row.contains(&format!("`{setting}`")));
            assert!(explained, "docs/lab/scenarios.md does not explain '{setting}' of '{operation}'");
        }
    }
}

/// The rows of an operation in the table of settings: its own row, and the following rows without a name.
fn rows_of<'p>(page: &'p str, operation: &'p str) -> impl Iterator<Item = &'p str> {
    let (_, table) = page.split_once("| Operation | Setting |").expect("the table of settings");
    let own = format!("| `{operation}` |");
    let mut rows = table.lines().skip_while(move |row| !row.starts_with(&own));
    let first = rows.next();
    first.into_iter().chain(rows.take_while(|row| row.starts_with("| | ")))
}

#[test]
fn every_word_of_a_scenario_file_is_explained() {
    let page = page("scenarios.md");
    let shapes = SHAPES.iter().map(|shape| shape.name);
    let distributions = Distribution::ALL.iter().map(|keys| keys.name());
    let orders = KeyOrder::ALL.iter().map(|order| order.name());
    let ids = IdKind::ALL.iter().map(|id| id.name());
    for word in shapes.chain(distributions).chain(orders).chain(ids) {
        assert!(page.contains(&format!("`{word}`")), "docs/lab/scenarios.md does not explain '{word}'");
    }
}

#[test]
fn every_built_in_scenario_has_a_page_or_a_place_in_one() {
    let all: String = pages().iter().map(|path| fs::read_to_string(path).expect("readable")).collect();
    for name in BUILTIN.iter().map(|builtin| builtin.name) {
        assert!(all.contains(name), "no page of docs/lab speaks of '{name}'");
    }
}

#[test]
fn the_defaults_of_shapes_are_those_of_the_table() {
    let page = page("scenarios.md");
    for shape in SHAPES {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", shape.name))).expect("a row");
        let bytes = row.split('|').map(|cell| cell.trim().replace(',', "")).collect::<Vec<_>>();
        assert!(bytes.contains(&shape.default_document_bytes.to_string()), "{row}");
        assert!(bytes.contains(&format!("`{}`", shape.default_id)), "{row}");
    }
}
