//! Arrows between the modules of a crate point down as well: modules that use each other in a circle are refused,
//! unless `xtask/module_circles.txt` lists the circle with its size and the reason.
//!
//! A node is a file. An arrow is a path of its code to an item of another file, followed through re-exports to the file
//! that has the item. Two kinds of path are not arrows: a re-export (`pub use`), which is a table of contents, and a
//! path from a private module up to the items of the module that declares it. Such a module is a part of its parent;
//! the root of a crate is no such parent, since every module would be a part of it.

mod components;
mod imports;
mod resolution;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::findings::Findings;
use crate::module_tree::{self, Crate};
use crate::ratchet::Ratchet;
use resolution::Names;

const LIST: &str = "xtask/module_circles.txt";

/// Arrows of a circle that a message names at most.
const NAMED_ARROWS_MAX: usize = 12;

pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    let list = Ratchet::read_with_reasons(root, LIST, "files in a circle")?;
    let mut found = Vec::new();
    for one in module_tree::crates(root)? {
        found.extend(circles(&one));
    }
    let found: BTreeMap<_, _> = found.into_iter().map(|circle| (circle.name(&list), circle)).collect();
    let sizes = found.iter().map(|(name, circle)| (name.clone(), circle.files.len())).collect();
    let mut compared = Findings::default();
    list.compare(&sizes, "move what both need down", &mut compared);
    for failure in compared.failures {
        let circle = failure.split(':').next().and_then(|name| found.get(name));
        let arrows = circle.map_or(&[][..], |circle| &circle.arrows[..circle.arrows.len().min(NAMED_ARROWS_MAX)]);
        findings.fail(format!("{failure}\n    {}", arrows.join("\n    ")));
    }
    findings.warnings.extend(compared.warnings);
    Ok(())
}

struct Circle {
    /// The circle's files, ordered by name.
    files: Vec<String>,
    /// `a.rs uses b.rs: crate::b::B`.
    arrows: Vec<String>,
}

impl Circle {
    /// The name in the list: the first file; if another file of the circle stands there, that one.
    fn name(&self, list: &Ratchet) -> String {
        self.files.iter().find(|file| list.allowed().contains_key(*file)).unwrap_or(&self.files[0]).clone()
    }
}

/// The circles of a crate.
fn circles(of: &Crate) -> Vec<Circle> {
    let arrows = arrows(of);
    let targets: Vec<BTreeSet<_>> = arrows.iter().map(|targets| targets.keys().copied().collect()).collect();
    let file = |module: usize| of.modules[module].file.clone();
    let circles = components::circles(&targets).into_iter().map(|circle| {
        let mut files: Vec<_> = circle.iter().map(|&module| file(module)).collect();
        files.sort();
        let inside = circle.iter().flat_map(|&from| {
            let targets = arrows[from].iter().filter(|(to, _)| circle.contains(to));
            targets.map(move |(&to, path)| format!("{} uses {}: {path}", file(from), file(to)))
        });
        Circle { arrows: inside.collect(), files }
    });
    circles.collect()
}

/// The modules that each module uses, by their place in the crate, with a path that leads there.
fn arrows(of: &Crate) -> Vec<BTreeMap<usize, String>> {
    let names = Names::of(of);
    let arrows_of = |(from, module): (usize, &module_tree::Module)| {
        let mut targets = BTreeMap::new();
        for path in imports::paths(&module.source.code) {
            if let Some(to) = names.resolve(from, &path).filter(|&to| to != from && !is_own_parent(of, from, to)) {
                targets.entry(to).or_insert_with(|| path.join("::"));
            }
        }
        targets
    };
    of.modules.iter().enumerate().map(arrows_of).collect()
}

fn is_own_parent(of: &Crate, from: usize, to: usize) -> bool {
    let (child, parent) = (&of.modules[from], &of.modules[to]);
    child.is_private && !parent.path.is_empty() && child.path[..child.path.len() - 1] == parent.path[..]
}

#[cfg(test)]
mod tests {
    use super::circles;
    use crate::module_tree::{Crate, Module};
    use crate::rust_source::RustSource;

    fn circles_of(modules: &[(&str, bool, &str)]) -> Vec<String> {
        let modules = modules.iter().map(|&(path, is_private, text)| Module {
            path: path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect(),
            file: format!("{path}.rs"),
            source: RustSource::parse(text).without_tests(),
            is_private,
        });
        let found = circles(&Crate { name: "x".to_owned(), modules: modules.collect() });
        found.into_iter().map(|circle| circle.files.join(" ")).collect()
    }

    #[test]
    fn a_circle_is_found_through_imports_paths_and_reexports() {
        let modules = [
            ("", false, "mod a; mod b; mod c; pub use c::C;"),
            ("a", true, "use crate::b::{B as Other, other};"),
            ("b", true, "fn f() -> crate::C { super::c::g() }"),
            ("c", true, "use super::a; pub struct C; "),
        ];
        assert_eq!(circles_of(&modules), ["a.rs b.rs c.rs"]);
    }

    #[test]
    fn arrows_down_are_no_circle() {
        let modules = [
            ("", false, "mod a; mod b; pub use a::A; fn run() { b::f() }"),
            ("a", true, "pub struct A; #[cfg(test)] mod tests { use crate::b::f; }"),
            ("b", true, "use crate::A; pub fn f() {}"),
        ];
        assert_eq!(circles_of(&modules), [""; 0]);
    }

    #[test]
    fn a_private_module_is_a_part_of_its_parent() {
        let of_visibility = |is_private| {
            circles_of(&[
                ("", false, "mod a;"),
                ("a", true, "mod part; struct A; fn f() { part::g() }"),
                ("a::part", is_private, "use super::A; pub fn g() {}"),
            ])
        };
        assert_eq!(of_visibility(true), [""; 0]);
        assert_eq!(of_visibility(false), ["a.rs a::part.rs"]);
    }

    #[test]
    fn the_root_is_a_module_like_others() {
        let modules =
            [("", false, "mod a; pub struct Error; fn f() { a::g() }"), ("a", true, "use crate::Error; fn g() {}")];
        assert_eq!(circles_of(&modules), [".rs a.rs"]);
    }
}
