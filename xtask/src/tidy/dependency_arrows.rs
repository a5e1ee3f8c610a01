//! Arrows between crates point down: each manifest is compared with the table in `xtask/arrows.txt`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::findings::Findings;
use crate::metadata::{self, Kind, Package};

const TABLE: &str = "xtask/arrows.txt";
/// Crates that the tests of any crate may use as well; `wire` because a test's own server or client speaks in frames.
const FOR_TESTS: &[&str] = &["testkit", "engines", "client", "wire"];

/// Crate -> crates that it may use, both without the `bunko-` in front.
type Allowed = BTreeMap<String, BTreeSet<String>>;

pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    let text = fs::read_to_string(root.join(TABLE)).map_err(|error| format!("{TABLE}: {error}"))?;
    compare(&parse_table(&text)?, &metadata::workspace(root)?, findings);
    Ok(())
}

/// Reads lines `crate -> crate crate`, and skips comments.
fn parse_table(table: &str) -> Result<Allowed, String> {
    let mut allowed = Allowed::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let (name, uses) = line.split_once("->").ok_or_else(|| format!("{TABLE}: no -> in {line:?}"))?;
        allowed.insert(name.trim().to_owned(), uses.split_whitespace().map(str::to_owned).collect());
    }
    Ok(allowed)
}

fn compare(allowed: &Allowed, packages: &[Package], findings: &mut Findings) {
    let ours: BTreeSet<&str> = packages.iter().map(|package| short(&package.name)).collect();
    for name in allowed.keys().filter(|name| !ours.contains(name.as_str())) {
        findings.fail(format!("{TABLE} allows dependencies of {name}, which is not a crate of this workspace"));
    }
    for package in packages {
        let name = short(&package.name);
        let Some(allowed) = allowed.get(name) else {
            findings.fail(format!("{TABLE} lacks {name}"));
            continue;
        };
        let mut used = BTreeSet::new();
        for dependency in package.dependencies.iter().filter(|dependency| ours.contains(short(&dependency.name))) {
            let target = short(&dependency.name);
            used.insert(target);
            let is_for_tests = dependency.kind == Kind::Dev && FOR_TESTS.contains(&target);
            if !allowed.contains(target) && !is_for_tests {
                findings.fail(format!("{name} -> {target} is not among the arrows of {TABLE}"));
            }
        }
        for target in allowed.iter().filter(|target| !used.contains(target.as_str())) {
            findings.warn(format!("{TABLE} allows {name} -> {target}, which nothing needs"));
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
        let table = "# Not -> this\nbson ->\nwire -> bson\ntestkit -> bson\ngone -> bson\n";
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
                "xtask/arrows.txt allows dependencies of gone, which is not a crate of this workspace",
                "bson -> wire is not among the arrows of xtask/arrows.txt",
                "wire -> testkit is not among the arrows of xtask/arrows.txt",
                "xtask/arrows.txt lacks new",
            ]
        );
        assert_eq!(findings.warnings, ["xtask/arrows.txt allows wire -> bson, which nothing needs"]);
    }

    #[test]
    fn a_line_without_an_arrow_is_an_error() {
        assert!(parse_table("bson\n").is_err());
    }
}
