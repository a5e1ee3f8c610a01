//! The condition that a client sets for reporting a write as successful.

use crate::deployment::Deployment;
use crate::fields::Fields;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};

/// The members of a set that must have a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Replicas {
    /// The member that takes the write.
    #[default]
    Own,
    /// Enough members that no election takes the write back.
    Majority,
    /// That many members with data.
    Members(u8),
    /// Members with so many distinct values of each of some tags. The request names the tags, or a mode of the
    /// configuration that stands for them.
    Tagged,
}

/// A parsed `writeConcern`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WriteConcern {
    /// The members that must have the write, in a set of several.
    pub replicas: Replicas,
    /// How long to wait for them, in milliseconds; 0 waits without a limit.
    pub timeout_ms: u32,
    /// Whether the record must be on disk.
    pub is_journaled: bool,
    /// Whether the client does not wait for a reply (`w: 0`).
    pub is_unacknowledged: bool,
}

impl WriteConcern {
    /// Parses a write concern. If one node cannot satisfy its `w`, a standalone server refuses the write; a member of a
    /// set of one writes, and reports that the concern was not met. A set of several may satisfy it.
    /// # Errors
    /// `BadValue`, `FailedToParse`, `TypeMismatch` and `IDLUnknownField` as MongoDB's.
    ///
    /// The caller looks up modes and tags ([`Replicas::Tagged`]): here they cannot be met.
    pub fn parse(deployment: Deployment, document: DocumentRef<'_>) -> Result<(Self, Option<Failure>)> {
        let mut concern = Self::default();
        let mut unmet = None;
        let fields = Fields::new("WriteConcernOptions", document);
        for element in document {
            match element.name {
                "w" => unmet = concern.read_w(deployment, element.value)?,
                _ if element.value.is_nullish() => {}
                "j" | "fsync" => concern.is_journaled |= fields.boolean(element.name, false)?,
                "wtimeout" => concern.timeout_ms = timeout_of(element.value)?,
                "provenance" => check_provenance(&fields)?,
                // Ignored: the driver mgo.v2 sends this field.
                "getLastError" => {}
                other => return Err(Failure::unknown_field(format_args!("WriteConcernOptions.{other}"))),
            }
        }
        if fields.boolean("j", false)? && fields.boolean("fsync", false)? {
            return Err(Failure::failed_to_parse("fsync and j options cannot be used together"));
        }
        if concern.is_unacknowledged && concern.is_journaled {
            concern.is_unacknowledged = false;
        }
        Ok((concern, unmet))
    }

    fn read_w(&mut self, deployment: Deployment, value: ValueRef<'_>) -> Result<Option<Failure>> {
        // A null stands for a mode without a name.
        let mode = if value.is_nullish() { Some("") } else { value.as_str() };
        if let Some(mode) = mode {
            if mode == "majority" {
                // On a single node the majority is the node itself, with the journal synced.
                self.is_journaled = true;
                self.replicas = Replicas::Majority;
                return Ok(None);
            }
            if deployment == Deployment::SetMember {
                self.replicas = Replicas::Tagged;
                let message = format!("No write concern mode named '{mode}' found in replica set configuration");
                return Ok(Some(Failure::new(ErrorCode::UNKNOWN_REPL_WRITE_CONCERN, message)));
            }
            return Err(Failure::bad_value(format!(
                "cannot use non-majority 'w' mode {mode} when a host is not a member of a replica set"
            )));
        }
        if number::as_f64(value).is_some_and(f64::is_nan) {
            return Err(Failure::failed_to_parse(
                "w has to be a non-negative number and not greater than 50; found: nan",
            ));
        }
        match number::clamp_to_i64(value) {
            Some(0) => self.is_unacknowledged = true,
            Some(1) => {}
            Some(w) if (2..=50).contains(&w) && deployment == Deployment::SetMember => {
                self.replicas = Replicas::Members(w as u8);
                let message = "Not enough data-bearing nodes";
                return Ok(Some(Failure::new(ErrorCode::UNSATISFIABLE_WRITE_CONCERN, message)));
            }
            Some(w) if (2..=50).contains(&w) => {
                return Err(Failure::bad_value("cannot use 'w' > 1 when a host is not replicated"));
            }
            Some(w) => {
                let message = format!("w has to be a non-negative number and not greater than 50; found: {w}");
                return Err(Failure::failed_to_parse(message));
            }
            None => {
                self.replicas = Replicas::Tagged;
                return read_tags_or_refuse(deployment, value);
            }
        }
        Ok(None)
    }
}

/// The write concern as repeated in the error that says it was not met. Only a client can set a concern that a single
/// node cannot meet, because defaults are checked when they are set.
/// Source: MongoDB manual, "WriteResult", `writeConcernError.errInfo.writeConcern`.
pub fn as_used(given: DocumentRef<'_>) -> DocumentBuf {
    let mut used = DocumentBuf::new();
    let value = |name: &str| given.get(name).filter(|value| !value.is_nullish());
    let is_true = |name: &str| match value(name) {
        Some(ValueRef::Boolean(flag)) => flag,
        other => other.and_then(number::as_f64).is_some_and(|number| number != 0.0),
    };
    match given.get("w") {
        Some(w) if w.is_number() => used.append("w", number::clamp_to_i64(w).unwrap_or_default() as i32),
        Some(w) => used.append("w", w),
        None => used.append("w", 1),
    };
    if is_true("fsync") {
        used.append("fsync", true);
    } else if value("j").is_some() {
        used.append("j", is_true("j"));
    }
    let timeout = value("wtimeout").and_then(number::clamp_to_i64).unwrap_or_default();
    used.append("wtimeout", timeout.max(0) as i32);
    used.append("provenance", value("provenance").unwrap_or(ValueRef::String("clientSupplied")));
    used
}

/// `w: {tag: number, ...}`. A standalone server treats it as `w: 1`.
fn read_tags_or_refuse(deployment: Deployment, value: ValueRef<'_>) -> Result<Option<Failure>> {
    let Some(tags) = value.as_document() else {
        return Err(Failure::failed_to_parse(format!(
            "w has to be a number, string, or object; found: {}",
            value.kind().alias()
        )));
    };
    if tags.is_empty() {
        return Err(Failure::failed_to_parse("tagged write concern requires tags"));
    }
    match tags.iter().find(|tag| !tag.value.is_number()) {
        None if deployment == Deployment::SetMember => {
            let message = "Not enough nodes match write concern mode";
            Ok(Some(Failure::new(ErrorCode::UNSATISFIABLE_WRITE_CONCERN, message)))
        }
        None => Ok(None),
        Some(tag) => Err(Failure::failed_to_parse(format!(
            "tags must be a single level document with only number values; found: {} for tag '{}'",
            tag.value.kind().alias(),
            tag.name
        ))),
    }
}

/// The milliseconds of `wtimeout`.
fn timeout_of(value: ValueRef<'_>) -> Result<u32> {
    match number::clamp_to_i64(value) {
        Some(milliseconds) if milliseconds > i64::from(i32::MAX) => {
            Err(Failure::failed_to_parse("wtimeout must be a 32-bit integer"))
        }
        // MongoDB treats a value that is not a number, or is negative, as no timeout.
        milliseconds => Ok(milliseconds.unwrap_or(0).max(0) as u32),
    }
}

/// Checks `provenance`, which servers add to concerns that they store.
fn check_provenance(fields: &Fields<'_>) -> Result<()> {
    match fields.string("provenance")? {
        None
        | Some(
            "clientSupplied" | "implicitDefault" | "customDefault" | "getLastErrorDefaults" | "internalWriteDefault",
        ) => Ok(()),
        Some(other) => Err(Failure::bad_value(format!(
            "Enumeration value '{other}' for field 'WriteConcernOptions.provenance' is not a valid value."
        ))),
    }
}
