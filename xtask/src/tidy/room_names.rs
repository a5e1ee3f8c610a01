//! A room has a name: no file, folder or module called utils, common, helpers, misc or manager.

use std::path::Path;

use crate::findings::Findings;
use crate::source_tree;

const NAMELESS: &[&str] = &["util", "utils", "common", "helper", "helpers", "misc", "manager"];

pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    for folder in ["crates", "xtask", "tests", "fuzz", "packaging"] {
        for file in source_tree::files(root, folder)? {
            if let Some(part) = nameless_part(&file.name) {
                findings.fail(format!("{}: {part:?} says nothing about what is in it", file.name));
            }
            if file.has_extension("rs") {
                for module in nameless_modules(&file.read()?) {
                    findings.fail(format!("{}: a module called {module:?} says nothing", file.name));
                }
            }
        }
    }
    Ok(())
}

fn nameless_part(path: &str) -> Option<&str> {
    path.split('/').map(|part| part.split('.').next().unwrap_or(part)).find(|part| NAMELESS.contains(part))
}

/// Modules written in place. Modules with a file of their own are found by its name.
fn nameless_modules(text: &str) -> Vec<&str> {
    let modules = text.lines().filter_map(|line| {
        let line = line.trim_start().strip_suffix('{')?.trim_end();
        let (_, name) = line.split_once("mod ")?;
        NAMELESS.contains(&name).then_some(name)
    });
    modules.collect()
}

#[cfg(test)]
mod tests {
    use super::{nameless_modules, nameless_part};

    #[test]
    fn nameless_rooms_are_found() {
        assert_eq!(nameless_part("crates/wire/src/utils.rs"), Some("utils"));
        assert_eq!(nameless_part("crates/wire/src/common/frame.rs"), Some("common"));
        assert_eq!(nameless_part("crates/wire/src/common_prefix.rs"), None);
        assert_eq!(nameless_modules("pub mod frame {\n    mod helpers {\n"), ["helpers"]);
    }
}
