//! The modules of a crate as rustc finds them, from its root down, without those for tests alone.

use std::path::Path;

use crate::rust_source::{self, RustSource};
use crate::source_tree::{self, SourceFile};

/// One file and the place of its module in the crate. A module written in place belongs to the file that it stands in.
#[derive(Debug)]
pub struct Module {
    /// `["wire", "frame"]` for `crate::wire::frame`; empty for the root.
    pub path: Vec<String>,
    pub file: String,
    /// The file without code that is compiled for tests alone.
    pub source: RustSource,
    /// Declared without `pub`, so that only its parent and the modules below it see it.
    pub is_private: bool,
}

/// A crate's modules. The root is the first.
#[derive(Debug)]
pub struct Crate {
    pub name: String,
    pub modules: Vec<Module>,
}

/// The crates below `crates/`, each from `src/lib.rs`, or from `src/main.rs` if it has no library.
pub fn crates(root: &Path) -> Result<Vec<Crate>, String> {
    let mut crates = Vec::new();
    let files = source_tree::files(root, "crates")?;
    let of_sources = |file: &&SourceFile| file.has_extension("rs") && file.name.split('/').nth(2) == Some("src");
    let files: Vec<_> = files.iter().filter(of_sources).collect();
    let mut names: Vec<_> = files.iter().filter_map(|file| file.name.split('/').nth(1)).collect();
    names.dedup();
    for name in names {
        let folder = format!("crates/{name}/src");
        let read = |path: &str| files.iter().find(|file| file.name == path).map(|file| file.read()).transpose();
        let mut modules = Vec::new();
        for root_file in ["lib.rs", "main.rs"] {
            let path = format!("{folder}/{root_file}");
            if modules.is_empty() && files.iter().any(|file| file.name == path) {
                collect(&read, Declared { path: vec![], candidates: vec![path], is_private: false }, &mut modules)?;
            }
        }
        crates.push(Crate { name: name.to_owned(), modules });
    }
    Ok(crates)
}

struct Declared {
    path: Vec<String>,
    /// The files in which rustc looks for the module.
    candidates: Vec<String>,
    is_private: bool,
}

type Read<'a> = dyn Fn(&str) -> Result<Option<String>, String> + 'a;

fn collect(read: &Read<'_>, declared: Declared, modules: &mut Vec<Module>) -> Result<(), String> {
    for file in declared.candidates {
        let Some(text) = read(&file)? else { continue };
        let source = RustSource::parse(&text).without_tests();
        let children = declarations(&source.code);
        let folder = folder_of_children(&file).to_owned();
        modules.push(Module { path: declared.path.clone(), file, source, is_private: declared.is_private });
        for (name, is_private) in children {
            let path = declared.path.iter().cloned().chain([name.clone()]).collect();
            let candidates = vec![format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")];
            collect(read, Declared { path, candidates, is_private }, modules)?;
        }
        break;
    }
    Ok(())
}

fn folder_of_children(file: &str) -> &str {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    if matches!(name, "lib.rs" | "main.rs" | "mod.rs") { folder } else { file.trim_end_matches(".rs") }
}

/// Name, and whether it is private, of each `mod name;`.
fn declarations(code: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for offset in rust_source::words(code, "mod") {
        let Some((name, _)) = code[offset + 3..].split_once(';') else { continue };
        let name = name.trim();
        if !name.is_empty() && name.bytes().all(rust_source::is_word_byte) {
            let before = code[..offset].trim_end();
            found.push((name.to_owned(), !(before.ends_with("pub") || before.ends_with(')'))));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Declared, collect};

    #[test]
    fn modules_are_followed_from_the_root() {
        let files = [
            ("src/lib.rs", "pub mod a;\nmod b;\n#[cfg(test)]\nmod tests;\nmod in_place { fn f() {} }"),
            ("src/a.rs", "pub(crate) mod deep;"),
            ("src/a/deep.rs", ""),
            ("src/b/mod.rs", "mod c;"),
            ("src/b/c.rs", ""),
            ("src/tests.rs", ""),
        ];
        let read = |path: &str| Ok(files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned()));
        let mut modules = Vec::new();
        let declared = Declared { path: vec![], candidates: vec!["src/lib.rs".to_owned()], is_private: false };
        collect(&read, declared, &mut modules).unwrap();
        let found: Vec<_> = modules.iter().map(|module| (module.path.join("::"), module.is_private)).collect();
        let expected = [("", false), ("a", false), ("a::deep", false), ("b", true), ("b::c", true)];
        assert_eq!(found, expected.map(|(path, is_private)| (path.to_owned(), is_private)));
    }
}
