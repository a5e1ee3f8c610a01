//! `cargo xtask duplicates`: is a package part of the binary in two versions? `xtask/duplicates.txt` lists those that
//! may be, with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::findings::Findings;
use crate::sbom;

const ACCEPTED: &str = "xtask/duplicates.txt";

pub fn run(root: &Path) -> Result<Findings, String> {
    let accepted = fs::read_to_string(root.join(ACCEPTED)).map_err(|error| format!("{ACCEPTED}: {error}"))?;
    Ok(check(&sbom::make(root)?, &accepted))
}

fn check(parts: &Value, accepted: &str) -> Findings {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for part in parts["components"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let (name, version) = (part["name"].as_str().unwrap_or_default(), part["version"].as_str().unwrap_or_default());
        versions.entry(name).or_default().insert(version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    let accepted: BTreeSet<&str> = accepted
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(' ').next().unwrap_or_default())
        .collect();
    let mut findings = Findings::default();
    for (name, versions) in versions.iter().filter(|(name, _)| !accepted.contains(*name)) {
        findings.fail(format!("{name} is part of the binary in versions {versions:?}, and {ACCEPTED} has no reason"));
    }
    for name in accepted.iter().filter(|name| !versions.contains_key(*name)) {
        findings.fail(format!("{ACCEPTED}: {name} is part of the binary in one version only"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::check;
    use serde_json::json;

    #[test]
    fn a_second_version_needs_a_reason() {
        let part = |name: &str, version: &str| json!({"name": name, "version": version});
        let parts = json!({"components": [part("a", "1.0.0"), part("a", "2.0.0"), part("b", "1.0.0")]});
        assert_eq!(check(&parts, "# name reason\na because").failures, [""; 0]);
        assert_eq!(
            check(&parts, "b because").failures,
            [
                "a is part of the binary in versions {\"1.0.0\", \"2.0.0\"}, and xtask/duplicates.txt has no reason",
                "xtask/duplicates.txt: b is part of the binary in one version only",
            ]
        );
    }
}
