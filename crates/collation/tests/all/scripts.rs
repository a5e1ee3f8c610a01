//! Runs `tests/scripts`: the collations that exist, and the order in which they put strings.
//!
//! - `parse`: collation documents; prints each with all its fields, or its error.
//! - `order`: a collation, then strings on one line each; prints them in order, `=` between those that are equal.

use bunko_bson::{DocumentBuf, StringOrder, ValueRef, text::ValueText};
use bunko_errors::Failure;
use bunko_testkit::{script, shell};

#[test]
fn scripts() {
    script::run("tests/scripts", |case| {
        let mut lines = case.input.lines();
        match case.directive.as_str() {
            "parse" => lines
                .map(|line| parse(line).map_or_else(|failure| show(&failure), |strings| specification(&strings)))
                .collect::<Vec<_>>()
                .join("\n"),
            _ => {
                let strings = parse(lines.next().expect("a collation")).expect("a collation of ours");
                ordered(&strings, lines.collect())
            }
        }
    });
}

fn parse(source: &str) -> Result<StringOrder, Failure> {
    bunko_collation::parse(document(source).as_ref())
}

fn document(source: &str) -> DocumentBuf {
    shell::parse_document(source).unwrap_or_else(|error| panic!("{source}: {error}"))
}

fn specification(strings: &StringOrder) -> String {
    match strings.collator() {
        Some(collator) => ValueText(ValueRef::Document(collator.specification())).to_string(),
        None => "simple".to_owned(),
    }
}

fn show(failure: &Failure) -> String {
    format!("{} {}: {}", failure.code().0, failure.code().name(), failure.message())
}

fn ordered(strings: &StringOrder, mut words: Vec<&str>) -> String {
    words.sort_by(|a, b| strings.compare_strings(a, b));
    let mut output = words[0].to_owned();
    for pair in words.windows(2) {
        output += if strings.compare_strings(pair[0], pair[1]).is_eq() { " = " } else { " < " };
        output += pair[1];
    }
    output
}
