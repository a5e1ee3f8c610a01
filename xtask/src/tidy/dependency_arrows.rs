//! Arrows between crates point down: each manifest is compared with the table in ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::findings::Findings;
use crate::metadata::{self, Kind, Package};

/// The fence that opens the table.
const FENCE: &str = "```dependencies";
/// Crates that the tests of any crate may use as well; `wire` because a test's own server or client speaks in frames.
const FOR_TESTS: &[&str] = &["testkit", "engines", "client", "wire"];

/// Crate -> crates that it may use, both without the `bunko-` in front.
type Allowed = BTreeMap<String, BTreeSet<String>>;

pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    let architecture = root.join("ARCHITECTURE.md");
    let text = fs::read_to_string(&architecture).map_err(|error| format!("{}: {error}", architecture.display()))?;
    compare(&parse_table(&text)?, &metadata::workspace(root)?, findings);
    Ok(())
}

/// Reads lines `crate -> crate crate`.
fn parse_table(architecture: &str) -> Result<Allowed, String> {
    let mut allowed = Allowed::new();
    let table = architecture.lines().skip_while(|line| *line != FENCE).skip(1).take_while(|line| *line != "```");
    for line in table.filter(|line| !line.trim().is_empty()) {
        let (name, uses) = line.split_once("->").ok_or_else(|| format!("ARCHITECTURE.md: no -> in {line:?}"))?;
        allowed.insert(name.trim().to_owned(), uses.split_whitespace().map(str::to_owned).collect());
    }
    if allowed.is_empty() { Err(format!("ARCHITECTURE.md has no table behind {FENCE}")) } else { Ok(allowed) }
}

fn compare(allowed: &Allowed, packages: &[Package], findings: &mut Findings) {
    let ours: BTreeSet<&str> = packages.iter().map(|package| short(&package.name)).collect();
    for name in allowed.keys().filter(|name| !ours.contains(name.as_str())) {
        findings.fail(format!("ARCHITECTURE.md allows dependencies of {name}, which is no crate of this workspace"));
    }
    for package in packages {
        let name = short(&package.name);
        let Some(allowed) = allowed.get(name) else {
            findings.fail(format!("ARCHITECTURE.md's table of dependencies lacks {name}"));
            continue;
        };
        let mut used = BTreeSet::new();
        for dependency in package.dependencies.iter().filter(|dependency| ours.contains(short(&dependency.name))) {
            let target = short(&dependency.name);
            used.insert(target);
            let is_for_tests = dependency.kind == Kind::Dev && FOR_TESTS.contains(&target);
            if !allowed.contains(target) && !is_for_tests {
                findings.fail(format!("{name} -> {target} is not among the arrows that ARCHITECTURE.md allows"));
            }
        }
        for target in allowed.iter().filter(|target| !used.contains(target.as_str())) {
            findings.warn(format!("ARCHITECTURE.md allows {name} -> {target}, which nothing needs"));
        }
    }
}

fn short(name: &str) -> &str {
    name.strip_prefix("bunko-").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::{compare, parse_table};
    use crate::findings::Findings;
    use crate::metadata::{Dependency, Kind, Package};

    fn package(name: &str, dependencies: &[(&str, Kind)]) -> Package {
        let dependencies =
            dependencies.iter().map(|&(name, kind)| Dependency { name: name.to_owned(), kind }).collect();
        Package { name: name.to_owned(), version: String::new(), licence: None, third_party: false, dependencies }
    }

    #[test]
    fn arrows_that_the_table_lacks_are_found() {
        let table = "text\n```dependencies\nbson ->\nwire -> bson\ntestkit -> bson\ngone -> bson\n```\nnot -> this\n";
        let packages = [
            package("bunko-bson", &[("bunko-wire", Kind::Normal), ("bunko-testkit", Kind::Dev), ("dec", Kind::Normal)]),
            package("bunko-wire", &[("bunko-testkit", Kind::Normal)]),
            package("bunko-testkit", &[("bunko-bson", Kind::Normal)]),
            package("bunko-new", &[]),
        ];
        let mut findings = Findings::default();
        compare(&parse_table(table).unwrap(), &packages, &mut findings);
        assert_eq!(
            findings.failures,
            [
                "ARCHITECTURE.md allows dependencies of gone, which is no crate of this workspace",
                "bson -> wire is not among the arrows that ARCHITECTURE.md allows",
                "wire -> testkit is not among the arrows that ARCHITECTURE.md allows",
                "ARCHITECTURE.md's table of dependencies lacks new",
            ]
        );
        assert_eq!(findings.warnings, ["ARCHITECTURE.md allows wire -> bson, which nothing needs"]);
    }

    #[test]
    fn a_missing_table_is_an_error() {
        assert!(parse_table("nothing here").is_err());
        assert!(parse_table("```dependencies\nbson\n```").is_err());
    }
}
