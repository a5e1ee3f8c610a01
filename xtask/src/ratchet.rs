//! Lists of exceptions that are tolerated today, `name number` on each line. A rule refuses an exception that is not on
//! its list or has grown, and says which numbers can be lowered.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::findings::Findings;

/// A list of `xtask/`, and what its numbers count.
#[derive(Debug)]
pub struct Ratchet {
    file: &'static str,
    of_what: &'static str,
    allowed: BTreeMap<String, usize>,
}

impl Ratchet {
    /// # Errors
    /// The list cannot be read, or a line is not `name number`.
    pub fn read(root: &Path, file: &'static str, of_what: &'static str) -> Result<Self, String> {
        let text = fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
        Self::parse(&text, file, of_what)
    }

    /// As [`Self::read`], for a list whose lines end with their reason, after `#`.
    /// # Errors
    /// As [`Self::read`], and a line without a reason.
    pub fn read_with_reasons(root: &Path, file: &'static str, of_what: &'static str) -> Result<Self, String> {
        let text = fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
        check_reasons(&text, file)?;
        Self::parse(&text, file, of_what)
    }

    pub fn parse(text: &str, file: &'static str, of_what: &'static str) -> Result<Self, String> {
        let mut allowed = BTreeMap::new();
        for line in text.lines().map(|line| line.split('#').next().unwrap_or("").trim()) {
            if !line.is_empty() {
                let entry = line.rsplit_once(' ').and_then(|(name, number)| Some((name, number.parse().ok()?)));
                let (name, number) = entry.ok_or_else(|| format!("{file}: {line:?} is not a name and a number"))?;
                allowed.insert(name.trim().to_owned(), number);
            }
        }
        Ok(Self { file, of_what, allowed })
    }

    /// Names and numbers of the list.
    pub fn allowed(&self) -> &BTreeMap<String, usize> {
        &self.allowed
    }

    /// Compares the numbers found with the list. `advice` says what to do about a number that is too large.
    pub fn compare(&self, found: &BTreeMap<String, usize>, advice: &str, findings: &mut Findings) {
        let Self { file, of_what, allowed } = self;
        for (name, count) in found {
            let limit = allowed.get(name).copied().unwrap_or(0);
            if *count > limit {
                findings.fail(format!("{name}: {count} {of_what}, {limit} allowed by {file}: {advice}"));
            }
        }
        for (name, limit) in allowed {
            let count = found.get(name).copied().unwrap_or(0);
            if count < *limit {
                findings.warn(format!("{name}: {count} {of_what}, {limit} allowed by {file}: lower the number"));
            }
        }
    }
}

fn check_reasons(text: &str, file: &str) -> Result<(), String> {
    let has_reason = |line: &str| line.split_once('#').is_some_and(|(_, reason)| !reason.trim().is_empty());
    let bare = text.lines().find(|line| !line.trim().is_empty() && !has_reason(line));
    bare.map_or(Ok(()), |line| Err(format!("{file}: {line:?} has no reason after '#'")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Ratchet, check_reasons};
    use crate::findings::Findings;

    #[test]
    fn numbers_only_fall() {
        let ratchet = Ratchet::parse("# list\na b 2 # reason\nc 1\nd 1\n", "list.txt", "things").unwrap();
        let found = BTreeMap::from([("a b".to_owned(), 3), ("c".to_owned(), 1), ("e".to_owned(), 1)]);
        let mut findings = Findings::default();
        ratchet.compare(&found, "less", &mut findings);
        assert_eq!(
            findings.failures,
            ["a b: 3 things, 2 allowed by list.txt: less", "e: 1 things, 0 allowed by list.txt: less",]
        );
        assert_eq!(findings.warnings, ["d: 0 things, 1 allowed by list.txt: lower the number"]);
    }

    #[test]
    fn a_line_without_a_reason_is_refused() {
        assert_eq!(check_reasons("# list\n\na 2 # it is the clock\n", "list.txt"), Ok(()));
        assert!(check_reasons("a 2\n", "list.txt").is_err() && check_reasons("a 2 #\n", "list.txt").is_err());
    }

    #[test]
    fn a_line_without_a_number_is_refused() {
        assert!(Ratchet::parse("a b\n", "list.txt", "things").is_err());
    }
}
