//! One running command: its request, its options, and what it may use.

use crate::connection::ClientConnection;
use crate::dispatch::{Command, Halt, Pace, Request};
use crate::generic_options::GenericOptions;
use crate::service::Service;
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayRef, DocumentRef, ValueRef, number};
use bunko_catalog::{Collection, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_store::Lsn;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A command at work.
pub struct Invocation<'a> {
    /// What all connections share.
    pub service: &'a Service,
    /// Who asks.
    pub connection: &'a mut ClientConnection,
    /// What was asked.
    pub request: Request<'a>,
    /// The entry of the table.
    pub command: &'static Command,
    /// `writeConcern`, `maxTimeMS`, `lsid`, `comment`.
    pub options: GenericOptions,
    /// Hold the reply back that long; only `hello` does.
    pub delay: Option<Duration>,
    pace: Pace,
    started: Instant,
    written: Option<Lsn>,
    namespace: Option<String>,
}

impl<'a> Invocation<'a> {
    pub(crate) fn new(
        service: &'a Service,
        connection: &'a mut ClientConnection,
        request: Request<'a>,
        command: &'static Command,
        options: GenericOptions,
        pace: Pace,
    ) -> Self {
        Self {
            service,
            connection,
            request,
            command,
            options,
            delay: None,
            pace,
            started: Instant::now(),
            written: None,
            namespace: None,
        }
    }

    /// The command's first value.
    pub fn argument(&self) -> ValueRef<'a> {
        self.request.body.first().map_or(ValueRef::Null, |element| element.value)
    }

    /// The collection that the command's first value names.
    /// # Errors
    /// `InvalidNamespace`; `InvalidNamespace` too where it is not a string.
    pub fn namespace(&mut self) -> Result<Namespace> {
        let name = match self.argument() {
            ValueRef::String(name) => name,
            other => {
                return Err(Failure::new(
                    ErrorCode::INVALID_NAMESPACE,
                    format!("collection name has invalid type {}", other.kind().alias()),
                ));
            }
        };
        let namespace = Namespace::new(self.request.database, name)?;
        self.namespace = Some(namespace.as_str().to_owned());
        Ok(namespace)
    }

    /// The namespace that `top` counts the command under.
    pub(crate) fn namespace_noted(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The collection with that name, if it exists.
    pub fn collection(&self, namespace: &Namespace) -> Option<Arc<Collection>> {
        self.service.catalog.collection(namespace)
    }

    /// A field of the command; null counts as missing, as MongoDB's parsers have it.
    pub fn field(&self, name: &str) -> Option<ValueRef<'a>> {
        self.request.body.get(name).filter(|value| !value.is_nullish())
    }

    fn mismatch(&self, name: &str, value: ValueRef<'_>, expected: &str) -> Failure {
        Failure::type_mismatch(format!(
            "BSON field '{}.{name}' is the wrong type '{}', expected {expected}",
            self.command.name,
            value.kind().alias()
        ))
    }

    /// A field that must be a document.
    pub fn document(&self, name: &str) -> Result<Option<DocumentRef<'a>>> {
        self.field(name)
            .map(|value| value.as_document().ok_or_else(|| self.mismatch(name, value, "type 'object'")))
            .transpose()
    }

    /// A field that must be an array.
    pub fn array(&self, name: &str) -> Result<Option<ArrayRef<'a>>> {
        self.field(name)
            .map(|value| value.as_array().ok_or_else(|| self.mismatch(name, value, "type 'array'")))
            .transpose()
    }

    /// A field that must be a string.
    pub fn string(&self, name: &str) -> Result<Option<&'a str>> {
        self.field(name)
            .map(|value| value.as_str().ok_or_else(|| self.mismatch(name, value, "type 'string'")))
            .transpose()
    }

    /// A field that is a boolean, or a number that stands for one; `default` where it is missing.
    pub fn boolean(&self, name: &str, default: bool) -> Result<bool> {
        match self.field(name) {
            None => Ok(default),
            Some(ValueRef::Boolean(boolean)) => Ok(boolean),
            Some(value) => number::as_f64(value)
                .map(|number| number != 0.0)
                .ok_or_else(|| self.mismatch(name, value, "types '[bool, long, int, decimal, double]'")),
        }
    }

    /// A field that is a whole number of any numeric type.
    pub fn integer(&self, name: &str) -> Result<Option<i64>> {
        self.field(name)
            .map(|value| {
                if !value.is_number() {
                    return Err(self.mismatch(name, value, "types '[long, int, decimal, double']"));
                }
                number::truncate_to_i64(value).ok_or_else(|| {
                    Failure::bad_value(format!("BSON field '{}.{name}' is out of range: {}", self.command.name, ValueText(value)))
                })
            })
            .transpose()
    }

    /// A whole number that is not negative.
    pub fn size(&self, name: &str) -> Result<Option<u64>> {
        self.integer(name)?
            .map(|number| {
                u64::try_from(number).map_err(|_| {
                    Failure::new(
                        ErrorCode(51024),
                        format!(
                            "BSON field '{name}' value must be >= 0, actual value '{number}'"
                        ),
                    )
                })
            })
            .transpose()
    }

    /// The documents of an array field, whether it came in the body or as a sequence.
    pub fn documents(&self, name: &str) -> Result<Vec<DocumentRef<'a>>> {
        if let Some(sequence) = self.request.sequence(name) {
            return Ok(sequence.documents.clone().collect());
        }
        let array = self.array(name)?.ok_or_else(|| {
            Failure::new(
                ErrorCode::IDL_FAILED_TO_PARSE,
                format!("BSON field '{}.{name}' is missing but a required field", self.command.name),
            )
        })?;
        array
            .iter()
            .enumerate()
            .map(|(index, value)| {
                value.as_document().ok_or_else(|| self.mismatch(&format!("{name}.{index}"), value, "type 'object'"))
            })
            .collect()
    }

    /// Notes a record that the reply will acknowledge.
    pub fn note_written(&mut self, lsn: Option<Lsn>) {
        self.written = self.written.max(lsn);
    }

    pub(crate) fn written(&self) -> Option<Lsn> {
        self.written
    }

    /// Refuses to go on where others would have to wait; call before anything is done.
    pub fn refuse_if_long(&self, is_long: bool) -> Result<(), Halt> {
        if is_long && self.pace == Pace::Short { Err(Halt::TooLong) } else { Ok(()) }
    }

    /// When `maxTimeMS` runs out.
    pub fn deadline(&self) -> Option<Instant> {
        self.options.max_time.map(|limit| self.started + limit)
    }
}
