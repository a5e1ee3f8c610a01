//! No placeholder and no debugging print stays in the sources.

use std::path::Path;

use crate::findings::Findings;
use crate::source_tree;

/// Put together here so that this file does not find itself.
const UNFINISHED: &[&str] = &[concat!("todo", "!("), concat!("unimplemented", "!("), concat!("dbg", "!(")];

pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    for folder in ["crates", "xtask"] {
        for file in source_tree::files(root, folder)?.iter().filter(|file| file.has_extension("rs")) {
            search(&file.name, &file.read()?, findings);
        }
    }
    Ok(())
}

fn search(name: &str, text: &str, findings: &mut Findings) {
    for (number, line) in text.lines().enumerate() {
        for macro_call in UNFINISHED.iter().filter(|macro_call| line.contains(*macro_call)) {
            findings.fail(format!("{name}:{}: {macro_call}...)", number + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::search;
    use crate::findings::Findings;

    #[test]
    fn placeholders_are_found_with_their_line() {
        let mut findings = Findings::default();
        search("a.rs", concat!("fn f() {\n    todo", "!()\n}"), &mut findings);
        assert_eq!(findings.failures, [concat!("a.rs:2: todo", "!(...)")]);
    }
}
