//! Versions and requirements on them, in the form that advisories use.
//! Source: Semantic Versioning 2.0.0; The Cargo Book, "Specifying Dependencies".

use std::cmp::Ordering;

/// A version. A build number after `+` does not count for the order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    numbers: [u64; 3],
    /// Empty for a release.
    pre_release: Vec<Identifier>,
}

/// A part of a pre-release's name: numbers come before words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

impl Version {
    /// Reads a version. Missing numbers are 0.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.split('+').next().unwrap_or_default();
        let (numbers, pre_release) = text.split_once('-').unwrap_or((text, ""));
        let parts: Vec<u64> = numbers.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        let mut filled = [0; 3];
        filled.get_mut(..parts.len())?.copy_from_slice(&parts);
        let identifier =
            |part: &str| part.parse().map_or_else(|_| Identifier::Word(part.to_owned()), Identifier::Number);
        let pre_release = pre_release.split('.').filter(|part| !part.is_empty()).map(identifier).collect();
        Some(Self { numbers: filled, pre_release })
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    /// A pre-release comes before its release.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_release = || match (self.pre_release.is_empty(), other.pre_release.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.pre_release.cmp(&other.pre_release),
        };
        self.numbers.cmp(&other.numbers).then_with(by_release)
    }
}

/// Whether a version meets all parts of a requirement: `>= 1.2, < 1.3`.
///
/// # Errors
/// A sentence, if the requirement is malformed.
pub fn meets(version: &Version, requirement: &str) -> Result<bool, String> {
    let mut all = true;
    for part in requirement.split(',') {
        let part = part.trim();
        let digits = part.find(|character: char| character.is_ascii_digit()).unwrap_or(part.len());
        let (operator, text) = (part[..digits].trim(), &part[digits..]);
        let wanted = Version::parse(text).ok_or_else(|| format!("'{part}' is no requirement"))?;
        // Every 1.2.x belongs to `1.2`, and only 1.2.3 itself to `1.2.3`.
        let given = text.split(['-', '+']).next().unwrap_or_default().split('.').count();
        let is_of_it = version.numbers[..given] == wanted.numbers[..given]
            && (given < 3 || version.pre_release == wanted.pre_release);
        all &= match operator {
            ">=" => *version >= wanted,
            ">" => *version > wanted && !is_of_it,
            "<" => *version < wanted,
            "<=" => *version <= wanted || is_of_it,
            "=" => is_of_it,
            "" | "^" => {
                let first = wanted.numbers.iter().position(|number| *number > 0).unwrap_or(given - 1);
                *version >= wanted && version.numbers[..=first] == wanted.numbers[..=first]
            }
            _ => return Err(format!("'{part}' is no requirement")),
        };
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_their_order() {
        let ordered =
            ["0.9", "0.10.0-alpha.1", "0.10.0-alpha.6", "0.10.0-alpha.10", "0.10.0-rc", "0.10", "1", "1.0.1+build"];
        let parsed: Vec<_> = ordered.iter().map(|text| Version::parse(text).expect(text)).collect();
        assert!(parsed.is_sorted_by(|one, next| one < next), "{parsed:?}");
        for wrong in ["", "a", "1.2.3.4", "1..2"] {
            assert_eq!(Version::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn requirements_are_met_as_cargo_has_them() {
        for (version, requirement, expected) in [
            ("1.44.2", ">= 1.44.2", true),
            ("1.44.1", ">= 1.44.2", false),
            ("1.43.5", ">= 1.43.1, < 1.44.0", true),
            ("1.44.0", ">= 1.43.1, < 1.44.0", false),
            ("0.22.9", "<= 0.22", true),
            ("0.23.0", "<= 0.22", false),
            ("0.22.9", "> 0.22", false),
            ("0.23.0", "> 0.22", true),
            ("0.15.0", "=0.15.0", true),
            ("0.15.1", "= 0.15.0", false),
            ("1.4.9", "^1.2", true),
            ("2.0.0", "1.2", false),
            ("0.3.1", "^0.2", false),
            ("0.104.0-alpha.5", ">= 0.104.0-alpha.6", false),
            ("0.104.0", ">= 0.104.0-alpha.6", true),
        ] {
            let parsed = Version::parse(version).expect(version);
            assert_eq!(meets(&parsed, requirement), Ok(expected), "{version} {requirement}");
        }
        assert!(meets(&Version::parse("1.0.0").expect("a version"), "~> 1").is_err());
    }
}
