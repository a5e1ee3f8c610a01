//! A path that the documentation names in backticks exists.

use std::fs;
use std::path::Path;

use crate::findings::Findings;
use crate::source_tree;

const DOCUMENTS: &[&str] = &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
/// Beginnings of paths in this repository. Other text in backticks is code.
const ROOMS: &[&str] = &["crates/", "tests/", "docs/", "xtask/", "fuzz/", "deploy/", "packaging/", ".ci/", ".cargo/"];

pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    for name in DOCUMENTS {
        // README.md may not be written yet. Another check decides which documents must exist.
        if let Ok(text) = fs::read_to_string(root.join(name)) {
            compare(root, name, &text, findings);
        }
    }
    for file in source_tree::files(root, "docs")?.iter().filter(|file| file.has_extension("md")) {
        compare(root, &file.name, &file.read()?, findings);
    }
    Ok(())
}

fn compare(root: &Path, document: &str, text: &str, findings: &mut Findings) {
    for (line, path) in paths(text) {
        if !root.join(path).exists() {
            findings.fail(format!("{document}:{line}: there is no {path}"));
        }
    }
}

/// The paths between backticks, with their line numbers. Patterns such as `tests/<name>.txt` are not paths.
fn paths(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_fence = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        if in_fence {
            continue;
        }
        let spans = line.split('`').skip(1).step_by(2);
        let words = spans.flat_map(str::split_whitespace).map(|word| word.trim_end_matches(['.', ',', ':', ';', '/']));
        let named = words.filter(|word| ROOMS.iter().any(|room| word.starts_with(room)));
        found.extend(named.filter(|word| !word.contains(['<', '*', '{', '$', '…'])).map(|word| (number + 1, word)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::paths;

    #[test]
    fn only_paths_of_this_repository_are_taken() {
        let text = "See `crates/bson/src/lib.rs` and\n`bash .ci/run now`, not crates/x, `a/b`, `tests/<name>.txt`.\n\
                    ```\n`crates/fenced`\n```\n`docs/` is `xtask/src/main.rs`";
        assert_eq!(paths(text), [(1, "crates/bson/src/lib.rs"), (2, ".ci/run"), (6, "xtask/src/main.rs")]);
    }
}
