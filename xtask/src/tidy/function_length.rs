//! A function fits a screen: 70 lines from its signature to its closing brace.

use std::path::Path;

use crate::findings::Findings;
use crate::rust_source::{self, RustSource};
use crate::source_tree;

const LINES_MAX: usize = 70;

pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    let mut found = Vec::new();
    for folder in ["crates", "xtask", "tests", "fuzz", "packaging"] {
        for file in source_tree::files(root, folder)?.iter().filter(|file| file.has_extension("rs")) {
            let long = long_functions(&RustSource::parse(&file.read()?).code);
            found.extend(long.into_iter().map(|function| (file.name.clone(), function)));
        }
    }
    compare(&found, findings);
    Ok(())
}

/// A function of more lines than fit a screen.
#[derive(Debug, PartialEq, Eq)]
struct Long {
    name: String,
    line: usize,
    lines: usize,
}

fn compare(found: &[(String, Long)], findings: &mut Findings) {
    for (file, Long { name, line, lines }) in found {
        findings.fail(format!("{file}:{line}: {name} has {lines} lines, more than {LINES_MAX}: split it by noun"));
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
    fn a_long_function_is_a_failure() {
        let god = Long { name: "god".to_owned(), line: 1, lines: 71 };
        let mut findings = Findings::default();
        compare(&[("a.rs".to_owned(), god)], &mut findings);
        assert_eq!(findings.failures, ["a.rs:1: god has 71 lines, more than 70: split it by noun"]);
    }
}
