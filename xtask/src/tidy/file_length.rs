//! No god files: 500 lines are a smell, 800 fail.

use std::path::Path;

use crate::findings::Findings;
use crate::source_tree;

const LINES_SMELL: usize = 500;
const LINES_MAX: usize = 800;
/// The first line of generated files.
const GENERATED: &str = "// generated table";

pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    for folder in ["crates", "xtask", "tests", "fuzz", "packaging"] {
        for file in source_tree::files(root, folder)?.iter().filter(|file| file.has_extension("rs")) {
            measure(&file.name, &file.read()?, findings);
        }
    }
    Ok(())
}

fn measure(name: &str, text: &str, findings: &mut Findings) {
    if text.starts_with(GENERATED) {
        return;
    }
    let lines = text.lines().count();
    if lines > LINES_MAX {
        findings.fail(format!("{name} has {lines} lines, more than {LINES_MAX}: split it by noun"));
    } else if lines > LINES_SMELL {
        findings.warn(format!("{name} has {lines} lines, more than {LINES_SMELL}"));
    }
}

#[cfg(test)]
mod tests {
    use super::{LINES_MAX, LINES_SMELL, measure};
    use crate::findings::Findings;

    #[test]
    fn long_files_are_found_and_generated_ones_passed_over() {
        let mut findings = Findings::default();
        measure("short.rs", &"\n".repeat(LINES_SMELL), &mut findings);
        measure("smell.rs", &"\n".repeat(LINES_MAX), &mut findings);
        measure("god.rs", &"\n".repeat(LINES_MAX + 1), &mut findings);
        measure("table.rs", &format!("// generated table\n{}", "\n".repeat(LINES_MAX)), &mut findings);
        assert_eq!(findings.failures, ["god.rs has 801 lines, more than 800: split it by noun"]);
        assert_eq!(findings.warnings, ["smell.rs has 800 lines, more than 500"]);
    }
}
