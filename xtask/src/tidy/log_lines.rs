//! Lines of the log. Operators watch for their ids, so every line has a component, an id and a message that stands in
//! the code, and all lines with an id of Bunko's own have one component. Larger ids are those of mongod's lines, some
//! of which come from several components.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::findings::Findings;
use crate::rust_source::{Piece, RustSource, closing, line_of};
use crate::source_tree;

/// Ids below this one are Bunko's own.
const OWN_IDS: u64 = 1000;

/// The macros that log, and the level that a line shows.
const MACROS: [(&str, &str); 3] = [("tracing::info!(", "I"), ("tracing::warn!(", "W"), ("tracing::error!(", "E")];

/// All lines with one id.
#[derive(Debug, Default, PartialEq, Eq)]
struct Lines {
    levels: BTreeSet<&'static str>,
    components: BTreeSet<String>,
    messages: Vec<String>,
}

type LinesById = BTreeMap<u64, Lines>;

pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    let lines = lines_of_crates(root, findings)?;
    for (id, lines) in lines.range(..OWN_IDS).filter(|(_, lines)| lines.components.len() > 1) {
        let components: Vec<_> = lines.components.iter().map(String::as_str).collect();
        findings.fail(format!("lines of {} have the log's id {id}: an id means one thing", components.join(" and ")));
    }
    Ok(())
}

fn lines_of_crates(root: &Path, findings: &mut Findings) -> Result<LinesById, String> {
    let mut lines = LinesById::new();
    for file in source_tree::files(root, "crates")?.iter().filter(|file| file.has_extension("rs")) {
        collect(&file.name, &file.read()?, &mut lines, findings);
    }
    Ok(lines)
}

/// Collects the lines that a file logs. Lines that lack a part are findings.
fn collect(file: &str, text: &str, lines: &mut LinesById, findings: &mut Findings) {
    let source = RustSource::parse(text).without_tests();
    for (call, level) in MACROS {
        for (start, _) in source.code.match_indices(call) {
            let end = closing(&source.code, start + call.len() - 1);
            let code = &source.code[start..end];
            let literals: Vec<&Piece> =
                source.literals.iter().filter(|piece| (start..end).contains(&piece.offset)).collect();
            let (Some(component), Some(id), Some(message)) =
                (component(code, start, &literals), id(code), message(code, start, &literals))
            else {
                let line = line_of(text, start);
                findings.fail(format!("{file}:{line}: a line of the log needs `target`, `id` and a text as message"));
                continue;
            };
            let of_id = lines.entry(id).or_default();
            of_id.levels.insert(level);
            of_id.components.insert(component);
            if !of_id.messages.contains(&message) {
                of_id.messages.push(message);
            }
        }
    }
}

/// The first text after `target:`.
fn component(code: &str, start: usize, literals: &[&Piece]) -> Option<String> {
    let target = start + code.find("target:")?;
    literals.iter().find(|piece| piece.offset > target).map(|piece| piece.text.clone())
}

fn id(code: &str) -> Option<u64> {
    let (_, rest) = code.split_once(" id = ")?;
    let end = rest.find(|character: char| !character.is_ascii_digit() && character != '_')?;
    rest[..end].replace('_', "").parse().ok()
}

/// The text at the end of the call, without escapes. A text that only names a variable is none.
fn message(code: &str, start: usize, literals: &[&Piece]) -> Option<String> {
    let last = literals.last()?;
    let after = code.get(last.offset - start + 1 + last.text.len()..)?;
    let is_at_end = after.trim_start_matches('"').trim_end_matches(')').trim().is_empty();
    let is_name = last.text.starts_with('{') && last.text.ends_with('}') && !last.text.contains(' ');
    let lines: Vec<&str> = last.text.split("\\\n").map(str::trim_start).collect();
    let text = lines.concat().replace("\\\"", "\"").replace("{{", "{").replace("}}", "}");
    (is_at_end && !is_name).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::handbook::{Table, check_table_with_prose, list};

    fn collected(texts: &[&str]) -> (LinesById, Vec<String>) {
        let (mut lines, mut findings) = (LinesById::new(), Findings::default());
        for text in texts {
            collect("a.rs", text, &mut lines, &mut findings);
        }
        (lines, findings.failures)
    }

    #[test]
    fn lines_are_found_with_their_parts() {
        let (lines, failures) = collected(&[
            r#"fn f() { tracing::info!(target: "A", id = 4_757, ctx = "main", "one {{x}} \"y\""); }"#,
            r#"fn f() { tracing::warn!(target: "B", id = 4757, error = %error("z"), "{what} failed"); }"#,
        ]);
        assert_eq!(failures, [""; 0]);
        let both = &lines[&4757];
        assert_eq!(both.messages, ["one {x} \"y\"", "{what} failed"]);
        assert_eq!((both.levels.len(), both.components.len()), (2, 2));
    }

    #[test]
    fn lines_that_lack_a_part_are_named() {
        for line in [
            r#"tracing::info!(id = 7, "no target")"#,
            r#"tracing::info!(target: "A", "no id")"#,
            r#"tracing::info!(target: "A", id = 7, "{said}")"#,
            r#"tracing::info!(target: "A", id = 7, text)"#,
        ] {
            let (_, failures) = collected(&[line]);
            assert_eq!(failures, ["a.rs:1: a line of the log needs `target`, `id` and a text as message"], "{line}");
        }
    }

    #[test]
    fn the_handbook_has_every_line() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let lines = lines_of_crates(root, &mut Findings::default()).expect("readable");
        let mut table = Table::new(&["id", "Level", "Component", "Message"]);
        for (id, lines) in lines {
            let join = |parts: Vec<&str>| parts.join(", ");
            table.push([
                id.to_string(),
                join(lines.levels.into_iter().collect()),
                join(lines.components.iter().map(String::as_str).collect()),
                list(lines.messages.iter().map(String::as_str)),
            ]);
        }
        check_table_with_prose("reference/log-lines.md", "lines", table, "Meaning");
    }
}
