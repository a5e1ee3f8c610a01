//! Fields that any command may carry, and the refusal of unknown fields.

use super::read_concern::ReadConcern;
use crate::sessions::{NamedSession, SessionId, id};
use crate::transactions::{TransactionFields, TransactionPart};
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, Element, Timestamp, Value, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::deployment::Deployment;
use bunko_request::facts::{ANY_FIELDS, CommandFacts, EncryptionUse, InvalidDocuments, Retry, WriteConcernUse};
use bunko_request::fields::{FieldSet, Met, wrong_type};
use bunko_request::generic_fields::{GENERIC, INTERNAL_MAX_TIME};
use bunko_request::stable_api::StableApi;
use bunko_request::write_concern::WriteConcern;
use bunko_request::{Request, encrypted_fields, internal_fields, read_preference};
use std::time::Duration;

/// The generic options of one request.
#[derive(Debug)]
pub struct GenericOptions {
    /// The condition for reporting success.
    pub write_concern: WriteConcern,
    /// Whether the request names a write concern.
    pub has_write_concern: bool,
    /// Why the write concern cannot be met. The write is done all the same, and the reply has this error beside its
    /// outcome.
    pub unmet_write_concern: Option<Failure>,
    /// The cluster time that the client knows, if this server is a member of a set.
    pub cluster_time: Option<Timestamp>,
    /// The condition that must hold before anything is read.
    pub read_concern: ReadConcern,
    /// `maxTimeMS`; `None` if it is missing or 0.
    pub max_time: Option<Duration>,
    /// `lsid`; `None` if it is missing.
    pub named_session: Option<NamedSession>,
    /// The id of the named session, once the user is known.
    pub session: Option<SessionId>,
    /// `comment`, for `currentOp`.
    pub comment: Option<Value>,
    /// Whether the request has `maxTimeMSOpOnly`, which only members of a cluster may send.
    has_internal_max_time: bool,
    /// The command's own fields that the body has.
    pub met: FieldSet,
    /// The fields of [`GENERIC`] that the body has, as bits.
    met_generic: u32,
    api: StableApi,
    /// `txnNumber` of a retryable write or a transaction.
    pub transaction_number: Option<i64>,
    /// The command's part in the transaction with that number, if it has one.
    pub part: Option<TransactionPart>,
    transaction: TransactionFields,
}

impl GenericOptions {
    /// Parses all fields of a request in one pass.
    /// # Errors
    /// `IDLUnknownField` for a field that neither the command nor MongoDB knows, `IDLDuplicateField` for a field that
    /// occurs twice; `BadValue`, `TypeMismatch`, `InvalidOptions`, `IllegalOperation` for generic options that are
    /// malformed or cannot be honoured.
    pub fn parse(deployment: Deployment, command: &CommandFacts, request: &Request<'_>) -> Result<Self> {
        let mut options = Self {
            write_concern: WriteConcern::default(),
            has_write_concern: false,
            unmet_write_concern: None,
            named_session: None,
            cluster_time: None,
            read_concern: ReadConcern::default(),
            max_time: None,
            has_internal_max_time: false,
            session: None,
            comment: None,
            met: FieldSet::new(command.fields),
            met_generic: 0,
            api: StableApi::default(),
            transaction_number: None,
            part: None,
            transaction: TransactionFields::default(),
        };
        let mut fields = request.body.iter().encoded();
        if let Some(first) = fields.next() {
            options.met.pass_by(first.name_bytes());
        }
        for encoded in fields {
            match options.met.note(&encoded, request.body) {
                Met::Known(field) => field.check(command.name, &encoded)?,
                // Every request has a `$db`, and its value has been read.
                Met::Unknown if encoded.name_bytes() == b"$db" => options.note_generic(command, "$db")?,
                met => {
                    let Some(element) = encoded.decode() else { continue };
                    if met == Met::Again {
                        return Err(duplicate(command, element.name));
                    }
                    options.read(deployment, command, element, request.body)?;
                }
            }
        }
        if options.has_write_concern && !takes_write_concern(command, request.body) {
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, "Command does not support writeConcern"));
        }
        if options.has_internal_max_time {
            let message = "Can not specify maxTimeMSOpOnly for non internal clients";
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
        if options.has_write_concern && options.transaction.are_inside() && !command.transaction.is_end() {
            let message = "writeConcern is not allowed within a multi-statement transaction";
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
        options.api.check(command, request)?;
        if options.transaction_number.is_some() || options.transaction.first_given().is_some() {
            options.check_transaction(command, request)?;
        }
        if let Some(message) = request.message {
            for sequence in message.sequences() {
                refuse_unread(command, sequence.identifier)?;
                if let (InvalidDocuments::Refused, Some((_, found))) =
                    (command.invalid_documents, sequence.refused.first())
                {
                    return Err(Failure::new(ErrorCode::INVALID_BSON, found.to_string()));
                }
            }
        }
        Ok(options)
    }

    fn read(
        &mut self,
        deployment: Deployment,
        command: &CommandFacts,
        element: Element<'_>,
        body: DocumentRef<'_>,
    ) -> Result<()> {
        let Element { name, value, .. } = element;
        self.note_generic(command, name)?;
        match name {
            "lsid" | "txnNumber" if value.is_nullish() => {}
            "lsid" => self.named_session = Some(id::parse("OperationSessionInfo.lsid", value)?),
            "txnNumber" => self.transaction_number = Some(transaction_number(value)?),
            "$clusterTime" => {
                let told = object(name, value)?;
                if deployment == Deployment::SetMember {
                    self.cluster_time = Some(cluster_time(told)?);
                }
            }
            "$readPreference" => read_preference::check(object(name, value)?)?,
            "$configTime" | "$topologyTime" | "$audit" | "$client" | "mayBypassWriteBlocking" | "rawData" => {}
            "writeConcern" | "readConcern" if value.is_nullish() => {}
            "writeConcern" => {
                let (concern, unmet) = WriteConcern::parse(deployment, document(command, name, value)?)?;
                self.write_concern = concern;
                self.has_write_concern = true;
                self.unmet_write_concern = unmet;
            }
            "readConcern" => {
                self.read_concern = ReadConcern::parse(deployment, command, document(command, name, value)?, body)?;
            }
            "encryptionInformation" if command.encryption == EncryptionUse::Allowed => {
                encrypted_fields::check_information(deployment, command.name, object(name, value)?)?;
            }
            INTERNAL_MAX_TIME if value.is_nullish() => {}
            INTERNAL_MAX_TIME if !value.is_number() => return Err(wrong_type(name, value, "long")),
            INTERNAL_MAX_TIME => self.has_internal_max_time = true,
            "maxTimeMS" => self.max_time = max_time(value)?,
            // The number of a statement has no effect on a command with a single statement.
            "stmtId" if value.is_nullish() || matches!(value, ValueRef::Int32(_)) => {}
            "stmtId" => return Err(wrong_type(&format!("{}.stmtId", command.name), value, "int")),
            "comment" => self.comment = Some(value.to_value()),
            "autocommit" | "startTransaction" => self.transaction.read(name, value)?,
            "apiVersion" | "apiStrict" | "apiDeprecationErrors" => self.api.read(name, value)?,
            _ if command.fields == ANY_FIELDS => {}
            _ if internal_fields::check(command, name, value, body)? => {}
            _ => return Err(unknown(command, name)),
        }
        Ok(())
    }

    /// Notes that the body has a field of that name, if it is one of [`GENERIC`].
    fn note_generic(&mut self, command: &CommandFacts, name: &str) -> Result<()> {
        if let Some(place) = GENERIC.iter().position(|generic| *generic == name) {
            if self.met_generic & (1 << place) != 0 {
                return Err(duplicate(command, name));
            }
            self.met_generic |= 1 << place;
        }
        Ok(())
    }

    /// Checks the fields of a transaction or retryable write, and whether the command may have a transaction number.
    fn check_transaction(&mut self, command: &CommandFacts, request: &Request<'_>) -> Result<()> {
        let refuse = |message: String| Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        if let (Some(name), None) = (self.transaction.first_given(), self.transaction_number) {
            return refuse(format!("'{name}' field requires a transaction number to also be specified"));
        }
        if self.named_session.is_none() {
            return refuse("Transaction number requires a session ID to also be specified".to_owned());
        }
        self.part = self.transaction.part_of(command, request)?;
        if self.part.is_none() && command.retry == Retry::Unsafe {
            let message = format!(
                "txnNumber may only be provided for multi-document transactions and retryable write commands. \
                 autocommit:false was not provided, and {} is not a retryable write command.",
                command.name
            );
            return Err(Failure::new(ErrorCode::NOT_A_RETRYABLE_WRITE_COMMAND, message));
        }
        if self.part.is_some_and(|part| part != TransactionPart::First) && self.read_concern.is_given {
            return refuse("Only the first command in a transaction may specify a readConcern".to_owned());
        }
        Ok(())
    }
}

fn transaction_number(value: ValueRef<'_>) -> Result<i64> {
    match value {
        ValueRef::Int64(number) if number >= 0 => Ok(number),
        ValueRef::Int64(_) => Err(Failure::new(ErrorCode::INVALID_OPTIONS, "Transaction number cannot be negative")),
        other => Err(wrong_type("OperationSessionInfo.txnNumber", other, "long")),
    }
}

/// Whether a request may have a write concern.
fn takes_write_concern(command: &CommandFacts, body: DocumentRef<'_>) -> bool {
    match command.write_concern {
        WriteConcernUse::Taken => true,
        WriteConcernUse::WithOutput => command.changes.is_asked_for(body),
        WriteConcernUse::Refused => false,
    }
}

fn unknown(command: &CommandFacts, field: &str) -> Failure {
    Failure::unknown_field(format_args!("{}.{field}", command.name))
}

fn duplicate(command: &CommandFacts, field: &str) -> Failure {
    let message = format!("BSON field '{}.{field}' is a duplicate field", command.name);
    Failure::new(ErrorCode::IDL_DUPLICATE_FIELD, message)
}

/// Refuses a document sequence that the command does not read.
fn refuse_unread(command: &CommandFacts, identifier: &str) -> Result<()> {
    if command.sequences.is_empty() {
        let message = format!("The {} command does not support document sequences.", command.name);
        return Err(Failure::new(ErrorCode(40472), message));
    }
    if command.sequences.contains(&identifier) { Ok(()) } else { Err(unknown(command, identifier)) }
}

fn object<'a>(name: &str, value: ValueRef<'a>) -> Result<DocumentRef<'a>> {
    value.as_document().ok_or_else(|| {
        let kind = value.kind().alias();
        Failure::type_mismatch(format!("\"{name}\" had the wrong type. Expected object, found {kind}"))
    })
}

fn document<'a>(command: &CommandFacts, name: &str, value: ValueRef<'a>) -> Result<DocumentRef<'a>> {
    value.as_document().ok_or_else(|| wrong_type(&format!("{}.{name}", command.name), value, "object"))
}

/// Parses the `$clusterTime` of a request.
/// # Errors
/// `NoSuchKey`, `TypeMismatch`.
fn cluster_time(document: DocumentRef<'_>) -> Result<Timestamp> {
    match document.get("clusterTime") {
        Some(ValueRef::Timestamp(time)) => Ok(time),
        None => Err(Failure::new(ErrorCode::NO_SUCH_KEY, "Missing expected field \"clusterTime\"")),
        Some(other) => {
            let kind = other.kind().alias();
            let message = format!("\"clusterTime\" had the wrong type. Expected timestamp, found {kind}");
            Err(Failure::type_mismatch(message))
        }
    }
}

fn max_time(value: ValueRef<'_>) -> Result<Option<Duration>> {
    if value.is_nullish() {
        return Ok(None);
    }
    let milliseconds = number::as_i64_exact(value).ok_or_else(|| {
        if value.is_number() {
            let message = format!(
                "Expected field \"maxTimeMS\" to have a value exactly representable as a 64-bit integer, but found {}",
                ValueText(value)
            );
            return Failure::failed_to_parse(message);
        }
        wrong_type("maxTimeMS", value, "long")
    })?;
    match u64::try_from(milliseconds) {
        Ok(0) => Ok(None),
        Ok(milliseconds) if i32::try_from(milliseconds).is_ok() => Ok(Some(Duration::from_millis(milliseconds))),
        _ => Err(Failure::bad_value(format!("{milliseconds} value for maxTimeMS is out of range [0, {}]", i32::MAX))),
    }
}
