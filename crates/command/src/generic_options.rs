//! Fields that any command may carry, and the refusal of those that none knows.

use crate::dispatch::{ANY_FIELDS, Command, Request};
use crate::fields::{FieldSet, Met};
use crate::write_concern::WriteConcern;
use bunko_bson::{BinarySubtype, DocumentRef, Value, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use std::time::Duration;

/// The generic options of one request.
#[derive(Debug)]
pub struct GenericOptions {
    /// What must hold before success is reported.
    pub write_concern: WriteConcern,
    /// `maxTimeMS`, where it is given and not 0.
    pub max_time: Option<Duration>,
    /// The session's id, where one is given.
    pub session: Option<[u8; 16]>,
    /// `comment`, for `currentOp`.
    pub comment: Option<Value>,
    /// Which of the command's own fields the body has.
    pub(crate) met: FieldSet,
}

/// Fields that any command may carry, besides `$db`.
const GENERIC: &[&str] = &[
    "$readPreference",
    "$clusterTime",
    "$configTime",
    "$topologyTime",
    "$audit",
    "$client",
    "mayBypassWriteBlocking",
    "rawData",
    "lsid",
    "writeConcern",
    "readConcern",
    "maxTimeMS",
    "comment",
    "txnNumber",
    "autocommit",
    "startTransaction",
    "apiVersion",
    "apiStrict",
    "apiDeprecationErrors",
];

impl GenericOptions {
    /// Goes over all fields of a request once.
    /// # Errors
    /// `IDLUnknownField` for a field that neither the command nor MongoDB knows; `BadValue`, `TypeMismatch`,
    /// `IllegalOperation` for generic options that are malformed or cannot be honoured.
    pub(crate) fn parse(command: &Command, request: &Request<'_>) -> Result<Self> {
        let mut options = Self {
            write_concern: WriteConcern::default(),
            max_time: None,
            session: None,
            comment: None,
            met: FieldSet::new(command.fields),
        };
        for element in request.body.iter().skip(1) {
            if options.met.note(element.name) == Met::Unknown {
                options.read(command, element.name, element.value)?;
            }
        }
        if let Some(message) = request.message {
            for sequence in message.sequences() {
                if !command.fields.contains(&sequence.identifier) {
                    return Err(unknown(command, sequence.identifier));
                }
            }
        }
        Ok(options)
    }

    fn read(&mut self, command: &Command, name: &str, value: ValueRef<'_>) -> Result<()> {
        match name {
            "$db"
            | "$readPreference"
            | "$clusterTime"
            | "$configTime"
            | "$topologyTime"
            | "$audit"
            | "$client"
            | "mayBypassWriteBlocking"
            | "rawData" => {}
            "lsid" => self.session = Some(session(value)?),
            "writeConcern" => self.write_concern = WriteConcern::parse(document(command, name, value)?)?,
            "readConcern" => check_read_concern(document(command, name, value)?)?,
            "maxTimeMS" => self.max_time = max_time(value)?,
            "comment" => self.comment = Some(value.to_value()),
            "txnNumber" | "autocommit" | "startTransaction" => {
                return Err(Failure::new(
                    ErrorCode::ILLEGAL_OPERATION,
                    "Transaction numbers are only allowed on a replica set member or mongos",
                ));
            }
            "apiVersion" => {
                if value.as_str() != Some("1") {
                    return Err(Failure::new(ErrorCode::API_VERSION_ERROR, "API version must be \"1\""));
                }
            }
            "apiStrict" | "apiDeprecationErrors" => {}
            _ if command.fields == ANY_FIELDS => {}
            _ => return Err(unknown(command, name)),
        }
        Ok(())
    }
}

/// Whether a field is a generic one, so not a name of the command's own making.
pub(crate) fn is_generic(name: &str) -> bool {
    name == "$db" || GENERIC.contains(&name)
}

fn unknown(command: &Command, field: &str) -> Failure {
    Failure::new(ErrorCode::IDL_UNKNOWN_FIELD, format!("BSON field '{}.{field}' is an unknown field.", command.name))
}

fn document<'a>(command: &Command, name: &str, value: ValueRef<'a>) -> Result<DocumentRef<'a>> {
    value.as_document().ok_or_else(|| {
        Failure::type_mismatch(format!(
            "BSON field '{}.{name}' is the wrong type '{}', expected type 'object'",
            command.name,
            value.kind().alias()
        ))
    })
}

fn session(value: ValueRef<'_>) -> Result<[u8; 16]> {
    match value.as_document().and_then(|lsid| lsid.get("id")) {
        Some(ValueRef::Binary { subtype: BinarySubtype::UUID, bytes }) if bytes.len() == 16 => {
            Ok(bytes.try_into().unwrap_or_default())
        }
        _ => Err(Failure::type_mismatch("BSON field 'OperationSessionInfo.lsid.id' must be a UUID of 16 bytes")),
    }
}

fn max_time(value: ValueRef<'_>) -> Result<Option<Duration>> {
    let milliseconds = number::as_i64_exact(value)
        .ok_or_else(|| Failure::bad_value("maxTimeMS must be a number without a fraction"))?;
    match u64::try_from(milliseconds) {
        Ok(0) => Ok(None),
        Ok(milliseconds) if i32::try_from(milliseconds).is_ok() => Ok(Some(Duration::from_millis(milliseconds))),
        _ => Err(Failure::bad_value(format!("{milliseconds} value for maxTimeMS is out of range"))),
    }
}

/// A single node's reads are of what is in its kernel; `majority` and `available` say no more here.
fn check_read_concern(concern: DocumentRef<'_>) -> Result<()> {
    for element in concern {
        match (element.name, element.value) {
            ("level", ValueRef::String("local" | "available" | "majority")) | ("provenance", _) => {}
            ("level", ValueRef::String(level @ ("linearizable" | "snapshot"))) => {
                return Err(Failure::new(
                    ErrorCode::NOT_A_REPLICA_SET,
                    format!("node needs to be a replica set member to use read concern: {level}"),
                ));
            }
            ("level", ValueRef::String(level)) => {
                return Err(Failure::failed_to_parse(format!(
                    "'{level}' is not a valid read concern level for readConcern.level"
                )));
            }
            ("afterClusterTime" | "atClusterTime", _) => {
                return Err(Failure::new(
                    ErrorCode::ILLEGAL_OPERATION,
                    format!("Cannot specify '{}' readConcern without replication enabled", element.name),
                ));
            }
            (name, value) => {
                return Err(Failure::failed_to_parse(format!(
                    "Unrecognized option in readConcern: {name} of type {}",
                    value.kind().alias()
                )));
            }
        }
    }
    Ok(())
}
