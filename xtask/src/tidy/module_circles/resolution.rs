//! The file in which a path's item is defined.

use std::collections::BTreeMap;

use super::imports::{self, Import};
use crate::module_tree::Crate;
use crate::rust_source;

/// Re-exports follow each other at most this many times; a longer chain is a circle of globs.
const DEPTH_MAX: usize = 16;

/// The names of a crate's modules.
pub struct Names {
    by_path: BTreeMap<Vec<String>, usize>,
    paths: Vec<Vec<String>>,
    imports: Vec<Vec<Import>>,
    /// Items that each module defines itself.
    items: Vec<Vec<String>>,
}

const DEFINITIONS: &[&str] =
    &["struct", "enum", "union", "fn", "trait", "type", "const", "static", "mod", "macro_rules!"];

impl Names {
    pub fn of(this: &Crate) -> Self {
        let paths: Vec<_> = this.modules.iter().map(|module| module.path.clone()).collect();
        let by_path = paths.iter().cloned().enumerate().map(|(at, path)| (path, at)).collect();
        let imports = this.modules.iter().map(|module| imports::imports(&module.source.code)).collect();
        let items = this.modules.iter().map(|module| items(&module.source.code)).collect();
        Self { by_path, paths, imports, items }
    }

    /// The module that has the item of `path`, as module `from` sees it; none if it lies outside the crate.
    pub fn resolve(&self, from: usize, path: &[String]) -> Option<usize> {
        self.resolve_within(from, path, DEPTH_MAX)
    }

    fn resolve_within(&self, from: usize, path: &[String], depth: usize) -> Option<usize> {
        let depth = depth.checked_sub(1)?;
        let mut module = from;
        let mut rest = path;
        while let [first, after @ ..] = rest {
            module = match first.as_str() {
                "crate" => self.by_path[&Vec::new()],
                "super" => self.parent(module)?,
                "self" => module,
                _ => break,
            };
            rest = after;
        }
        let is_relative = rest.len() == path.len();
        self.follow(module, rest, is_relative, depth)
    }

    /// Follows names down from a module. A relative path may begin with the name of another crate.
    fn follow(&self, module: usize, names: &[String], is_relative: bool, depth: usize) -> Option<usize> {
        let [name, rest @ ..] = names else { return Some(module) };
        if name == "*" {
            return Some(module);
        }
        if let Some(child) = self.child(module, name) {
            return self.follow(child, rest, false, depth);
        }
        let imported = self.imports[module].iter().find(|import| import.name == *name && import.path[0] != *name);
        if let Some(import) = imported {
            let path: Vec<_> = import.path.iter().chain(rest).cloned().collect();
            return self.resolve_within(module, &path, depth);
        }
        if self.items[module].contains(name) {
            return Some(module);
        }
        for glob in self.imports[module].iter().filter(|import| import.name == "*") {
            let target = self.resolve_within(module, &glob.path[..glob.path.len() - 1], depth);
            let found = target.filter(|&target| target != module).and_then(|target| {
                let path: Vec<_> = [vec!["self".to_owned()], names.to_vec()].concat();
                self.defines(target, name).then(|| self.resolve_within(target, &path, depth)).flatten()
            });
            if found.is_some() {
                return found;
            }
        }
        (!is_relative).then_some(module)
    }

    fn defines(&self, module: usize, name: &str) -> bool {
        self.child(module, name).is_some()
            || self.items[module].iter().any(|item| item == name)
            || self.imports[module].iter().any(|import| import.name == name)
    }

    fn child(&self, module: usize, name: &str) -> Option<usize> {
        let path: Vec<_> = self.paths[module].iter().cloned().chain([name.to_owned()]).collect();
        self.by_path.get(&path).copied()
    }

    fn parent(&self, module: usize) -> Option<usize> {
        let path = &self.paths[module];
        self.by_path.get(&path[..path.len().checked_sub(1)?]).copied()
    }
}

fn items(code: &str) -> Vec<String> {
    let named = DEFINITIONS.iter().flat_map(|word| {
        code.match_indices(word).filter_map(|(offset, _)| {
            let is_word = offset == 0 || !rust_source::is_word_byte(code.as_bytes()[offset - 1]);
            let rest = code[offset + word.len()..].strip_prefix(' ').filter(|_| is_word)?;
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            (!name.is_empty()).then_some(name)
        })
    });
    named.collect()
}
