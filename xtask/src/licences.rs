//! `cargo xtask licences`: may every dependency be linked into an Apache-2.0 program?

use std::path::Path;

use crate::findings::Findings;
use crate::metadata::{self, Package};
use crate::spdx;

const ALLOWED: &str = include_str!("../licences.txt");

pub fn run(root: &Path) -> Result<Findings, String> {
    Ok(check(&metadata::everything(root)?))
}

fn check(packages: &[Package]) -> Findings {
    let mut findings = Findings::default();
    for package in packages.iter().filter(|package| package.third_party) {
        let Package { name, version, licence, .. } = package;
        match licence.as_deref().map(|licence| spdx::satisfiable(licence, is_allowed)) {
            Some(Ok(true)) => {}
            Some(Ok(false)) => findings.fail(format!(
                "{name} {version} is under {:?}, which xtask/licences.txt does not allow",
                licence.as_deref().unwrap_or_default()
            )),
            Some(Err(error)) => findings.fail(format!("{name} {version}: {error}")),
            None => findings.fail(format!("{name} {version} names no licence in its manifest")),
        }
    }
    findings
}

fn is_allowed(licence: &str) -> bool {
    ALLOWED.lines().filter(|line| !line.starts_with('#')).any(|line| line == licence)
}

#[cfg(test)]
mod tests {
    use super::{Package, check};

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
            findings.failures,
            [
                "copyleft 1.0.0 is under \"MPL-2.0\", which xtask/licences.txt does not allow",
                "silent 1.0.0 names no licence in its manifest",
            ]
        );
    }
}
