//! Checks scenario files, `--set` and the errors for mistakes, by the scripts in `tests/scripts`.
//!
//! ```text
//! file
//! [load]
//! connections = 0
//! ----
//! mine.toml: phase 'only': connections: 0 is not in 1..60000
//! ```
//! `file` is a scenario file: [`BASE`] with the case's tables in place of its tables of the same name, and the case's
//! first keys after its own. If the answer names a line, that line follows it. `whole` is a whole file. `set` applies
//! one `--set` a line to [`BASE`] with the tables before `---`, and answers with the result. `REWRITE=1 cargo test`
//! writes the answers; read them.

use bunko_bench::scenario::{Override, ScenarioError, ScenarioSource};
use bunko_bench::{BenchError, check};
use bunko_testkit::script;
use std::fmt::Write;

/// A file with only the required settings.
const BASE: &str = "\
name = 'mine'
about = 'a test'
prose = 'why'

[dataset]
shape = 'plain'
documents = 100

[load]
duration = '1s'

[[phase]]
name = 'only'
operation.insert = {}
";

#[test]
fn scripts() {
    script::run("tests/scripts", |case| match case.directive.as_str() {
        "whole" => read(&case.input),
        "file" => read(&based(&case.input)),
        "set" => match case.input.split_once("---\n") {
            Some((tables, sets)) => set(&based(tables), sets),
            None => set(BASE, &case.input),
        },
        other => panic!("unknown directive {other}"),
    });
}

/// [`BASE`] with these tables in place of its own.
fn based(changes: &str) -> String {
    let changed = tables(changes);
    let is_replaced = |header: &str| !header.is_empty() && changed.iter().any(|(other, _)| *other == header);
    let kept = tables(BASE).into_iter().filter(|(header, _)| !is_replaced(header));
    let (mut top, mut below) = (String::new(), String::new());
    for (header, text) in kept.chain(tables(changes)) {
        let part = if header.is_empty() { &mut top } else { &mut below };
        part.push_str(text.trim_end());
        part.push('\n');
    }
    top + &below
}

/// Each table with its header; the text before the first table has an empty one. Tables below a table belong to it.
fn tables(text: &str) -> Vec<(&str, &str)> {
    let is_header = |line: &str| line.starts_with('[') && !line.contains('.');
    let mut starts = vec![0];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if is_header(line) && at > 0 {
            starts.push(at);
        }
        at += line.len();
    }
    starts.push(at);
    let table = |range: &[usize]| {
        let table = &text[range[0]..range[1]];
        (table.lines().next().filter(|line| is_header(line)).unwrap_or_default(), table)
    };
    starts.windows(2).map(table).collect()
}

/// The answer to a file.
fn read(text: &str) -> String {
    let source = match ScenarioSource::parse("mine.toml", text) {
        Ok(source) => source,
        Err(error) => return located(&error, text),
    };
    match check(&source) {
        Ok(()) => "good".to_owned(),
        Err(BenchError::Scenario(error)) => located(&error, text),
        Err(error) => panic!("not an error of the scenario: {error}"),
    }
}

/// The answer, and the line that it names.
fn located(error: &ScenarioError, text: &str) -> String {
    let line = error.line.map(|line| format!("\n> {}", text.lines().nth(line - 1).unwrap_or("(behind the last)")));
    error.to_string() + &line.unwrap_or_default()
}

/// Applies `--set` as the command line does; returns the changed lines of the file, and its variants.
fn set(text: &str, sets: &str) -> String {
    let mut source = ScenarioSource::parse("mine.toml", text).expect("the file itself is good");
    let before = source.resolved();
    for line in sets.lines() {
        let change = match line.parse::<Override>() {
            Ok(change) => change,
            Err(error) => return error,
        };
        if let Err(error) = source.set(&change) {
            return error.to_string();
        }
    }
    if let Err(error) = check(&source) {
        return error.to_string();
    }
    let after = source.resolved();
    let mut answer = String::new();
    for line in before.lines().filter(|line| !after.contains(line)) {
        writeln!(answer, "- {line}").expect("strings take everything");
    }
    for line in after.lines().filter(|line| !before.contains(line)) {
        writeln!(answer, "+ {line}").expect("strings take everything");
    }
    for (variant, _) in source.variants().expect("checked").iter().filter(|(variant, _)| !variant.is_empty()) {
        let settings: Vec<String> = variant.iter().map(ToString::to_string).collect();
        writeln!(answer, "variant {}", settings.join(" ")).expect("strings take everything");
    }
    answer
}
