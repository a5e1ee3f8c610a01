//! `cargo xtask licences`: may every dependency be linked into an Apache-2.0 program?

use std::path::Path;

use spdx::{Expression, Licensee, ParseMode};

use crate::findings::Findings;
use crate::metadata::{self, Package};

const ALLOWED: &str = include_str!("../licences.txt");

pub fn run(root: &Path) -> Result<Findings, String> {
    check(&metadata::everything(root)?)
}

fn check(packages: &[Package]) -> Result<Findings, String> {
    let allowed = allowed()?;
    let mut findings = Findings::default();
    for package in packages.iter().filter(|package| package.third_party) {
        let Package { name, version, licence, .. } = package;
        match licence.as_deref().map(|licence| is_satisfied(licence, &allowed)) {
            Some(Ok(true)) => {}
            Some(Ok(false)) => findings.fail(format!(
                "{name} {version} is under {:?}, which xtask/licences.txt does not allow",
                licence.as_deref().unwrap_or_default()
            )),
            Some(Err(error)) => findings.fail(format!("{name} {version}: {error}")),
            None => findings.fail(format!("{name} {version} names no licence in its manifest")),
        }
    }
    Ok(findings)
}

fn allowed() -> Result<Vec<Licensee>, String> {
    let lines = ALLOWED.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| Licensee::parse(line).map_err(|error| format!("xtask/licences.txt: {error}"))).collect()
}

/// Whether the allowed licences suffice for a work under that SPDX expression, or under crates.io's older form of one
/// (`MIT/Apache-2.0`).
fn is_satisfied(expression: &str, allowed: &[Licensee]) -> Result<bool, String> {
    let parsed = Expression::parse_mode(expression, ParseMode::LAX).map_err(|error| error.to_string())?;
    Ok(parsed.evaluate(|required| allowed.iter().any(|licence| licence.satisfies(required))))
}

#[cfg(test)]
mod tests {
    use super::{Package, allowed, check, is_satisfied};

    fn package(name: &str, licence: Option<&str>) -> Package {
        Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: licence.map(str::to_owned),
            third_party: true,
            dependencies: Vec::new(),
        }
    }

    #[test]
    fn a_forbidden_and_a_missing_licence_are_named() {
        let ours = Package { third_party: false, ..package("ours", None) };
        let findings = check(&[
            package("good", Some("MIT OR GPL-3.0-only")),
            package("copyleft", Some("MPL-2.0")),
            package("silent", None),
            ours,
        ]);
        assert_eq!(
            findings.expect("checked").failures,
            [
                "copyleft 1.0.0 is under \"MPL-2.0\", which xtask/licences.txt does not allow",
                "silent 1.0.0 names no licence in its manifest",
            ]
        );
    }

    #[test]
    fn expressions_are_evaluated() {
        let allowed = allowed().expect("a list of licences");
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("GPL-3.0-only OR MIT", true),
            ("MIT AND GPL-3.0-only", false),
            ("MIT/Apache-2.0", true),
            ("GPL-2.0/MPL-2.0", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("MIT WITH LLVM-exception", false),
            ("GPL-2.0-only WITH LLVM-exception OR MIT", true),
            ("Apache-2.0+", true),
            ("(MIT OR ISC) AND GPL-2.0-only", false),
            // AND binds tighter than OR.
            ("MIT OR ISC AND GPL-2.0-only", true),
        ] {
            assert_eq!(is_satisfied(expression, &allowed), Ok(expected), "{expression}");
        }
        for expression in ["", "MIT OR", "(MIT", "MIT Apache-2.0", "MIT WITH", "No-Such-Licence"] {
            assert!(is_satisfied(expression, &allowed).is_err(), "{expression:?}");
        }
    }
}
