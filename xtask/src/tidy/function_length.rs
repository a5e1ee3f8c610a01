//! A function fits a screen: 70 lines from its signature to its closing brace.

use std::path::Path;

use crate::findings::Findings;
use crate::rust_source::{self, RustSource};
use crate::source_tree;

const LINES_MAX: usize = 70;

/// Longer functions that stay: file, function, reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("crates/change_stream/src/token.rs", "of_parts", ONE_DOOR),
    ("crates/command/src/commands/coll_mod/mod.rs", "run", ONE_DOOR),
    ("crates/command/src/cursor_reply.rs", "write_next_batch", ONE_DOOR),
    ("crates/command/src/dispatch.rs", "attempt", ONE_DOOR),
];
const ONE_DOOR: &str = "splits when commands get typed requests";

pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    let mut found = Vec::new();
    for folder in ["crates", "xtask", "tests", "fuzz", "packaging"] {
        for file in source_tree::files(root, folder)?.iter().filter(|file| file.has_extension("rs")) {
            let long = long_functions(&RustSource::parse(&file.read()?).code);
            found.extend(long.into_iter().map(|function| (file.name.clone(), function)));
        }
    }
    compare(&found, ALLOWED, findings);
    Ok(())
}

/// A function of more lines than fit a screen.
#[derive(Debug, PartialEq, Eq)]
struct Long {
    name: String,
    line: usize,
    lines: usize,
}

fn compare(found: &[(String, Long)], allowed: &[(&str, &str, &str)], findings: &mut Findings) {
    for (file, Long { name, line, lines }) in found {
        if !allowed.iter().any(|&(in_file, function, _)| file == in_file && name == function) {
            findings.fail(format!("{file}:{line}: {name} has {lines} lines, more than {LINES_MAX}: split it by noun"));
        }
    }
    for (in_file, function, _) in allowed {
        if !found.iter().any(|(file, long)| file == in_file && long.name == *function) {
            findings.warn(format!("{in_file}: {function} is short: take it off the list of long functions"));
        }
    }
}

/// The functions of a file whose comments and literals are blank.
fn long_functions(code: &str) -> Vec<Long> {
    let mut found = Vec::new();
    for function in rust_source::functions(code) {
        let line = rust_source::line_of(code, function.start);
        let lines = rust_source::line_of(code, function.body.end - 1) - line + 1;
        if lines > LINES_MAX {
            found.push(Long { name: function.name.to_owned(), line, lines });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{LINES_MAX, Long, compare, long_functions};
    use crate::findings::Findings;

    #[test]
    fn long_functions_are_found() {
        let of_lines = |name: &str, lines: usize| format!("fn {name}(a: [u8; 2]) {{{}}}\n", "\n".repeat(lines - 1));
        let code = format!("{}{}fn sealed();\n", of_lines("fits", LINES_MAX), of_lines("god", LINES_MAX + 1));
        assert_eq!(long_functions(&code), [Long { name: "god".to_owned(), line: 71, lines: 71 }]);
    }

    #[test]
    fn the_list_holds_only_what_is_long() {
        let long = |name: &str| ("a.rs".to_owned(), Long { name: name.to_owned(), line: 1, lines: 71 });
        let mut findings = Findings::default();
        let allowed = [("a.rs", "table", "one-line arms"), ("a.rs", "gone", "one-line arms")];
        compare(&[long("god"), long("table")], &allowed, &mut findings);
        assert_eq!(findings.failures, ["a.rs:1: god has 71 lines, more than 70: split it by noun"]);
        assert_eq!(findings.warnings, ["a.rs: gone is short: take it off the list of long functions"]);
    }
}
