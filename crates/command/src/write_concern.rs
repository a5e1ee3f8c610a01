//! What a client wants to be true before it hears of success.

use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, ValueRef, number};
use bunko_errors::{Failure, Result};
use bunko_store::Lsn;

/// A parsed `writeConcern`, already known to be satisfiable by a single node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WriteConcern {
    /// Whether the record must be on disk.
    pub is_journaled: bool,
    /// Whether nobody waits (`w: 0`).
    pub is_unacknowledged: bool,
}

/// What a connection waits for before it sends a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Acknowledgement {
    /// Nothing was written, or nobody asked.
    #[default]
    None,
    /// The record is in the kernel: it survives the process.
    Written(Lsn),
    /// The record is on disk: it survives the power.
    Durable(Lsn),
}

impl Acknowledgement {
    pub(crate) fn of(concern: WriteConcern, written: Option<Lsn>) -> Self {
        match written {
            None => Self::None,
            Some(lsn) if concern.is_journaled => Self::Durable(lsn),
            Some(lsn) => Self::Written(lsn),
        }
    }
}

impl WriteConcern {
    /// Parses and judges a write concern.
    /// # Errors
    /// `BadValue` and `FailedToParse` as MongoDB's; a `w` that one node cannot satisfy is refused.
    pub fn parse(document: DocumentRef<'_>) -> Result<Self> {
        let mut concern = Self::default();
        for element in document {
            match element.name {
                "w" => concern.read_w(element.value)?,
                "j" | "fsync" => concern.is_journaled |= truth(element.name, element.value)?,
                "wtimeout" | "wtimeoutMS" => {
                    if number::as_f64(element.value).is_none() {
                        return Err(Failure::failed_to_parse(format!(
                            "wtimeout must be a number, found {}",
                            element.value.kind().alias()
                        )));
                    }
                }
                // mgo.v2 sends it; the server adds it to what it stores.
                "getLastError" | "provenance" => {}
                other => {
                    return Err(Failure::failed_to_parse(format!("unrecognized write concern field: {other}")));
                }
            }
        }
        if concern.is_unacknowledged && concern.is_journaled {
            concern.is_unacknowledged = false;
        }
        Ok(concern)
    }

    fn read_w(&mut self, value: ValueRef<'_>) -> Result<()> {
        if let ValueRef::String(mode) = value {
            if mode == "majority" {
                // On a single node the majority is itself, with the journal on.
                self.is_journaled = true;
                return Ok(());
            }
            return Err(Failure::bad_value(format!(
                "cannot use non-majority 'w' mode {mode} when a host is not a member of a replica set"
            )));
        }
        match number::as_i64_exact(value) {
            Some(0) => self.is_unacknowledged = true,
            Some(1) => {}
            Some(w) if (2..=50).contains(&w) => {
                return Err(Failure::bad_value("cannot use 'w' > 1 when a host is not replicated"));
            }
            Some(_) => {
                return Err(Failure::failed_to_parse("w has to be a non-negative number and not greater than 50"));
            }
            None => {
                return Err(Failure::failed_to_parse(format!(
                    "w has to be a number, string, or object; found: {}",
                    value.kind().alias()
                )));
            }
        }
        Ok(())
    }
}

fn truth(name: &str, value: ValueRef<'_>) -> Result<bool> {
    match value {
        ValueRef::Boolean(value) => Ok(value),
        ValueRef::Null | ValueRef::Undefined => Ok(false),
        _ => number::as_f64(value).map(|number| number != 0.0).ok_or_else(|| {
            Failure::failed_to_parse(format!("{name} must be numeric or a boolean value, found {}", ValueText(value)))
        }),
    }
}
