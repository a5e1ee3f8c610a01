//! The findings of a check, as text and as JSON.

use crate::printable::printable;
use std::fmt;

/// Part of a server that a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The deployment: its kind, version and settings.
    Server,
    /// A collection or view, with its options and validator.
    Collection,
    /// An index.
    Index,
    /// A role or user.
    User,
    /// A command, stage or operator that clients use.
    Use,
}

impl Subject {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Collection => "collection",
            Self::Index => "index",
            Self::User => "user",
            Self::Use => "use",
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Self::Server => "The server",
            Self::Collection => "Collections and views",
            Self::Index => "Indexes",
            Self::User => "Users and roles",
            Self::Use => "Commands and operators in use",
        }
    }
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// It does not work after the move.
    Refused,
    /// It could not be looked at, so it may or may not work.
    Unknown,
}

impl Weight {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unknown => "unknown",
        }
    }
}

/// One thing that does not work after the move, or could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Part of the server.
    pub subject: Subject,
    /// How much the finding matters.
    pub weight: Weight,
    /// Name of the thing, such as a namespace or a command.
    pub name: String,
    /// The words of the refusal if it was refused, otherwise a sentence.
    pub problem: String,
    /// The action that the user should take.
    pub advice: String,
}

/// All findings of a check.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Address of the server that was checked.
    pub server: String,
    /// The server's version.
    pub version: String,
    /// By subject, and in the order of the server's lists.
    pub findings: Vec<Finding>,
    /// Number of things that were looked at, for each subject that has any.
    pub looked_at: Vec<(Subject, usize)>,
}

impl Report {
    /// Whether nothing stands in the way of the move.
    pub fn is_clear(&self) -> bool {
        self.findings.is_empty()
    }

    pub(super) fn count(&mut self, subject: Subject) {
        match self.looked_at.iter_mut().find(|(counted, _)| *counted == subject) {
            Some((_, count)) => *count += 1,
            None => self.looked_at.push((subject, 1)),
        }
    }

    /// One JSON object.
    pub fn to_json(&self) -> String {
        let findings: Vec<_> = self.findings.iter().map(json).collect();
        let counts = self.looked_at.iter().map(|(subject, count)| (subject.name().to_owned(), (*count).into()));
        let looked_at: serde_json::Map<_, _> = counts.collect();
        serde_json::json!({
            "server": self.server, "version": self.version, "lookedAt": looked_at, "findings": findings,
        })
        .to_string()
    }
}

fn json(finding: &Finding) -> serde_json::Value {
    serde_json::json!({
        "subject": finding.subject.name(), "weight": finding.weight.name(), "name": finding.name,
        "problem": finding.problem, "advice": finding.advice,
    })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, version {}", self.server, self.version)?;
        for (subject, count) in &self.looked_at {
            let of_subject: Vec<_> = self.findings.iter().filter(|finding| finding.subject == *subject).collect();
            let verdict = match of_subject.len() {
                0 => "nothing found".to_owned(),
                1 => "1 finding".to_owned(),
                found => format!("{found} findings"),
            };
            writeln!(f, "\n{}: {count} looked at, {verdict}", subject.heading())?;
            for finding in of_subject {
                let doubt = if finding.weight == Weight::Unknown { "could not be looked at: " } else { "" };
                writeln!(f, "  {}: {doubt}{}", printable(&finding.name), printable(&finding.problem))?;
                writeln!(f, "      {}", finding.advice)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_text_and_json() {
        let finding = Finding {
            subject: Subject::Index,
            weight: Weight::Refused,
            name: "shop.items: place_2dsphere".into(),
            problem: "not supported yet".into(),
            advice: "Drop it.".into(),
        };
        let mut report = Report { server: "db:27017".into(), version: "8.2.4".into(), ..Report::default() };
        report.count(Subject::Collection);
        report.count(Subject::Index);
        report.count(Subject::Index);
        assert!(report.is_clear());
        report.findings.push(finding);
        assert!(!report.is_clear());
        assert_eq!(
            report.to_string(),
            "db:27017, version 8.2.4\n\nCollections and views: 1 looked at, nothing found\n\nIndexes: 2 looked at, 1 \
             finding\n  shop.items: place_2dsphere: not supported yet\n      Drop it.\n"
        );
        let json: serde_json::Value = serde_json::from_str(&report.to_json()).expect("JSON");
        assert_eq!(json["lookedAt"]["index"], 2);
        assert_eq!(json["findings"][0]["subject"], "index");
    }
}
