//! When a server may acknowledge a write.

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, extended_json, number};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Size of MongoDB's largest replica set.
const MEMBERS_MAX: u32 = 50;

/// Number of members that must have a write before it is acknowledged: MongoDB's `w`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// That many members; 0 asks for no reply at all.
    Members(u32),
    /// A majority of the voting members.
    Majority,
}

/// A write concern as commands carry it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteConcern {
    /// MongoDB's `w`.
    pub w: Acknowledgement,
    /// MongoDB's `j`: wait for the journal on disk. `None` leaves the choice to the server.
    pub journal: Option<bool>,
    /// MongoDB's `wtimeout`: how long the server waits for the other members. `None` waits forever.
    pub timeout: Option<Duration>,
}

impl Default for WriteConcern {
    fn default() -> Self {
        Self { w: Acknowledgement::Members(1), journal: None, timeout: None }
    }
}

impl WriteConcern {
    /// Whether the server replies to such a write.
    pub fn expects_reply(&self) -> bool {
        self.w != Acknowledgement::Members(0)
    }

    /// The value of a command's `writeConcern` field.
    pub fn to_document(&self) -> DocumentBuf {
        let mut document = match self.w {
            Acknowledgement::Members(members) => DocumentBuf::new().with("w", members as i32),
            Acknowledgement::Majority => DocumentBuf::new().with("w", "majority"),
        };
        if let Some(journal) = self.journal {
            document.append("j", journal);
        }
        if let Some(timeout) = self.timeout {
            document.append("wtimeout", timeout.as_millis() as i64);
        }
        document
    }
}

impl WriteConcern {
    fn from_document(document: DocumentRef<'_>) -> Result<Self, String> {
        let mut concern = Self::default();
        for element in document {
            let whole = number::as_i64_exact(element.value);
            match (element.name, element.value, whole.map(u32::try_from)) {
                ("w", ValueRef::String("majority"), _) => concern.w = Acknowledgement::Majority,
                ("w", _, Some(Ok(members @ 0..=MEMBERS_MAX))) => concern.w = Acknowledgement::Members(members),
                ("j", ValueRef::Boolean(journal), _) => concern.journal = Some(journal),
                ("wtimeout" | "wtimeoutMS", _, Some(Ok(0))) => concern.timeout = None,
                ("wtimeout" | "wtimeoutMS", _, Some(Ok(ms))) => {
                    concern.timeout = Some(Duration::from_millis(ms.into()));
                }
                (name, value, _) => {
                    return Err(format!("'{name}' cannot be {} in a write concern", extended_json::to_relaxed(value)));
                }
            }
        }
        Ok(concern)
    }
}

impl fmt::Display for WriteConcern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.w {
            Acknowledgement::Members(members) => write!(f, "w: {members}")?,
            Acknowledgement::Majority => f.write_str("w: \"majority\"")?,
        }
        if let Some(journal) = self.journal {
            write!(f, ", j: {journal}")?;
        }
        match self.timeout {
            Some(timeout) => write!(f, ", wtimeout: {}", timeout.as_millis()),
            None => Ok(()),
        }
    }
}

impl FromStr for WriteConcern {
    type Err = String;

    /// Reads a flag's value: a member count, `majority`, `j` for `{w: 1, j: true}`, or a document as in commands.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            _ if text.trim_start().starts_with('{') => {
                let document = extended_json::parse_document(text).map_err(|error| error.to_string())?;
                Self::from_document(document.as_ref())
            }
            "j" => Ok(Self { w: Acknowledgement::Members(1), journal: Some(true), timeout: None }),
            "majority" => Ok(Self { w: Acknowledgement::Majority, journal: None, timeout: None }),
            _ => match text.parse() {
                Ok(members @ 0..=MEMBERS_MAX) => {
                    Ok(Self { w: Acknowledgement::Members(members), journal: None, timeout: None })
                }
                _ => Err(format!("write concern '{text}' is not 0..50, majority or j")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_documents() {
        let shown = |text: &str| text.parse::<WriteConcern>().map(|concern| format!("{:?}", concern.to_document()));
        assert_eq!(shown("1").as_deref(), Ok(r#"{"w": Int32(1)}"#));
        assert_eq!(shown("j").as_deref(), Ok(r#"{"w": Int32(1), "j": Boolean(true)}"#));
        assert_eq!(shown("majority").as_deref(), Ok(r#"{"w": String("majority")}"#));
        assert!(shown("51").is_err());
        assert!(!"0".parse::<WriteConcern>().expect("valid").expects_reply());
    }
}
