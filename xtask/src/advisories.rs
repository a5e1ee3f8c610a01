//! `cargo xtask advisories`: does a package of a lock file have a known weakness? Needs no network: the known
//! weaknesses are in `xtask/advisories.txt`. `cargo xtask advisories CHECKOUT` rewrites that list from a clone of the
//! database.
//! Source: RustSec Advisory Database, "Advisory Format".

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use semver::{Version, VersionReq};

use crate::findings::Findings;
use crate::lock_file::{self, Locked};

const LIST: &str = "xtask/advisories.txt";
const ACCEPTED: &str = "xtask/advisories_accepted.txt";
/// Lock files of everything that is built from this repository.
const LOCK_FILES: &[&str] = &["Cargo.lock", "fuzz/Cargo.lock", "packaging/Cargo.lock", "tests/clients/rust/Cargo.lock"];

/// One line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Advisory {
    id: String,
    package: String,
    kind: String,
    patched: Vec<VersionReq>,
    unaffected: Vec<VersionReq>,
}

pub fn run(root: &Path) -> Result<Findings, String> {
    let read = |name: &str| fs::read_to_string(root.join(name)).map_err(|error| format!("{name}: {error}"));
    let advisories = parse(&read(LIST)?)?;
    let accepted = read(ACCEPTED)?;
    let mut findings = Findings::default();
    let mut met = BTreeSet::new();
    for name in LOCK_FILES {
        check(name, &lock_file::packages(&read(name)?), &advisories, &accepted, &mut met, &mut findings)?;
    }
    for line in accepted.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if !met.contains(line.split(' ').next().unwrap_or_default()) {
            findings.fail(format!("{ACCEPTED}: '{line}' accepts an advisory that no package has"));
        }
    }
    Ok(findings)
}

fn check(
    lock_file: &str,
    packages: &[Locked],
    advisories: &[Advisory],
    accepted: &str,
    met: &mut BTreeSet<String>,
    findings: &mut Findings,
) -> Result<(), String> {
    for package in packages {
        let version = Version::parse(&package.version)
            .map_err(|error| format!("{lock_file}: {} {}: {error}", package.name, package.version))?;
        for advisory in advisories.iter().filter(|advisory| advisory.package == package.name) {
            if advisory.patched.iter().chain(&advisory.unaffected).any(|safe| safe.matches(&version)) {
                continue;
            }
            let Advisory { id, kind, .. } = advisory;
            met.insert(id.clone());
            let said = format!("{lock_file}: {} {}: {id} ({kind})", package.name, package.version);
            let reason = accepted.lines().find_map(|line| line.strip_prefix(id.as_str())?.strip_prefix(' '));
            match reason {
                Some(reason) => findings.warn(format!("{said} is accepted: {reason}")),
                None => findings.fail(format!("{said}, see https://rustsec.org/advisories/{id}.html")),
            }
        }
    }
    Ok(())
}

fn parse(list: &str) -> Result<Vec<Advisory>, String> {
    let lines = list.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let advisories: Option<Vec<_>> = lines.map(parse_line).collect();
    advisories.ok_or_else(|| format!("{LIST}: a line is not ID PACKAGE KIND; PATCHED; UNAFFECTED"))
}

fn parse_line(line: &str) -> Option<Advisory> {
    let mut parts = line.split(';').map(str::trim);
    let (what, patched, unaffected) = (parts.next()?, parts.next()?, parts.next()?);
    let [id, package, kind] = what.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let requirements = |text: &str| requirements(text.split('|').map(str::trim).filter(|one| !one.is_empty()));
    Some(Advisory {
        id: id.to_owned(),
        package: package.to_owned(),
        kind: kind.to_owned(),
        patched: requirements(patched)?,
        unaffected: requirements(unaffected)?,
    })
}

fn requirements<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Vec<VersionReq>> {
    texts.map(|text| VersionReq::parse(text).ok()).collect()
}

/// Rewrites the list from a clone of the database. Returns the number of advisories in it.
pub fn renew(root: &Path, database: &Path) -> Result<usize, String> {
    let list = root.join(LIST);
    let before = fs::read_to_string(&list).map_err(|error| format!("{LIST}: {error}"))?;
    let mut names = BTreeSet::new();
    for name in LOCK_FILES {
        let text = fs::read_to_string(root.join(name)).map_err(|error| format!("{name}: {error}"))?;
        names.extend(lock_file::packages(&text).into_iter().map(|package| package.name));
    }
    if !database.join("crates").is_dir() {
        return Err(format!("{} is not a clone of the RustSec Advisory Database", database.display()));
    }
    let mut text: String =
        before.lines().filter(|line| line.starts_with('#')).fold(String::new(), |text, line| text + line + "\n");
    let mut count = 0;
    for name in names {
        let Ok(entries) = fs::read_dir(database.join("crates").join(&name)) else { continue };
        let mut paths: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
        paths.sort();
        for path in paths {
            let content = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let advisory = read_advisory(&content).ok_or_else(|| format!("{}: not an advisory", path.display()))?;
            if let Said::Holds(Advisory { id, package, kind, patched, unaffected }) = advisory {
                let list = |requirements: &[VersionReq]| {
                    requirements.iter().map(VersionReq::to_string).collect::<Vec<_>>().join(" | ")
                };
                let _ = writeln!(text, "{id} {package} {kind}; {}; {}", list(&patched), list(&unaffected));
                count += 1;
            }
        }
    }
    fs::write(&list, text.replace("; \n", ";\n")).map_err(|error| format!("{LIST}: {error}"))?;
    Ok(count)
}

/// The contents of an advisory's file.
#[derive(Debug, PartialEq)]
enum Said {
    Holds(Advisory),
    Withdrawn,
}

/// Reads the front matter of an advisory's file; `None` if the file has none.
fn read_advisory(content: &str) -> Option<Said> {
    let front = content.split_once("```toml")?.1.split_once("```")?.0;
    let text = |name: &str| {
        let line = front.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('='));
        line.map(|value| value.trim().trim_matches('"').to_owned())
    };
    let list = |name: &str| {
        let versions = front.split_once("[versions]").map_or("", |(_, rest)| rest);
        // The table ends before the next one. A list may span several lines.
        let versions = versions.split("\n[").next().unwrap_or_default();
        let Some((_, rest)) = versions.split_once(&format!("\n{name}")) else { return Some(Vec::new()) };
        let inside = rest.split_once('[').map_or("", |(_, rest)| rest.split(']').next().unwrap_or_default());
        requirements(inside.split('"').skip(1).step_by(2))
    };
    let advisory = Advisory {
        id: text("id")?,
        package: text("package")?,
        kind: text("informational").unwrap_or_else(|| "vulnerability".to_owned()),
        patched: list("patched")?,
        unaffected: list("unaffected")?,
    };
    Some(if text("withdrawn").is_some() { Said::Withdrawn } else { Said::Holds(advisory) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "```toml\n[advisory]\nid = \"RUSTSEC-2025-0023\"\npackage = \"a\"\ninformational = \"unsound\"\n\n\
                        [versions]\npatched = [\n  \">= 1.38.2, < 1.39.0\",\n  \">= 1.44.2\",\n]\nunaffected = [\"< 0.2.5\"]\n\n\
                        [affected]\nfunctions = { \"a::b\" = [\"< 1\"] }\n```\n\n# A title\n";

    #[test]
    fn a_file_of_the_database_becomes_a_line() {
        let expected = "RUSTSEC-2025-0023 a unsound; >= 1.38.2, < 1.39.0 | >= 1.44.2; < 0.2.5";
        assert_eq!(read_advisory(FILE), parse_line(expected).map(Said::Holds));
        let withdrawn = FILE.replace("[versions]", "withdrawn = \"2025-02-22\"\n[versions]");
        assert_eq!(read_advisory(&withdrawn), Some(Said::Withdrawn));
        assert_eq!(read_advisory("# nothing"), None);
    }

    #[test]
    fn a_weakness_fails_unless_it_is_accepted() {
        let advisories =
            parse("# c\nRUSTSEC-1 a vulnerability; >= 1.0.5; < 0.9\nRUSTSEC-2 b unmaintained; ;\n").expect("a list");
        let package = |name: &str, version: &str| Locked { name: name.into(), version: version.into(), checksum: None };
        let found = |packages: &[Locked], accepted: &str| {
            let (mut met, mut findings) = (BTreeSet::new(), Findings::default());
            check("lock", packages, &advisories, accepted, &mut met, &mut findings).expect("checked");
            (findings.failures.len(), findings.warnings.len())
        };
        assert_eq!(found(&[package("a", "1.0.5"), package("a", "0.8.1"), package("c", "1.0.0")], ""), (0, 0));
        assert_eq!(found(&[package("a", "1.0.4"), package("b", "9.9.9")], ""), (2, 0));
        assert_eq!(found(&[package("a", "1.0.4"), package("b", "9.9.9")], "RUSTSEC-2 it is done\n"), (1, 1));
        assert!(parse("nonsense").is_err());
        assert!(parse("RUSTSEC-1 a vulnerability; ~> 1;").is_err());
    }
}
