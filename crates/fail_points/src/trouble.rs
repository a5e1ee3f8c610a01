//! The effects of a failpoint on a command.

use bunko_aggregate::{Rewrites, RuleSet};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_observe::namespace_of;
use bunko_request::Request;
use bunko_request::facts::CommandFacts;
use bunko_request::fields::{Fields, wrong_type};
use bunko_session::Halt;
use std::time::Duration;

/// Fields of the `data` of `failCommand`. All clients of this server are external, so `failInternalCommands` and
/// `failLocalClients` never match.
pub(crate) const FIELDS: [&str; 11] = [
    "failCommands",
    "errorCode",
    "errorLabels",
    "closeConnection",
    "blockConnection",
    "blockTimeMS",
    "writeConcernError",
    "appName",
    "namespace",
    "failInternalCommands",
    "failLocalClients",
];

/// Fields that `failCommand` has on MongoDB and not here.
const MISSING: [&str; 3] = ["errorExtraInfo", "failAllCommands", "threadName"];

/// Field with the error code of a statement that fails before its commit.
const BEFORE_COMMIT: &str = "failBeforeCommitExceptionCode";
/// How long a blocked command sleeps between two checks whether it must stop.
const NAP: Duration = Duration::from_millis(10);

/// A command that meets failpoints.
pub struct RunningCommand<'a> {
    /// Its entry in the table of commands.
    pub entry: &'a CommandFacts,
    /// The request.
    pub request: &'a Request<'a>,
    /// The client's application name, if an earlier command of the connection gave it.
    pub application: Option<&'a str>,
    /// Whether it has a time limit.
    pub has_time_limit: bool,
    /// Fails once the command must stop.
    pub check: &'a dyn Fn() -> Result<()>,
}

impl RunningCommand<'_> {
    /// The client's application name, which may be in this command if it is the connection's first.
    fn application(&self) -> Option<&str> {
        self.application.or_else(|| {
            let client = self.request.body.get("client")?.as_document()?;
            client.get("application")?.as_document()?.get("name")?.as_str()
        })
    }
}

/// `data` of `configureFailPoint`.
#[derive(Clone, Debug, Default)]
pub struct Trouble {
    /// The failpoint's name.
    point: &'static str,
    commands: Vec<String>,
    application: Option<String>,
    namespace: Option<String>,
    block: Option<Duration>,
    closes_connection: bool,
    error: Option<ErrorCode>,
    /// Replace the labels that the error would have.
    labels: Option<Vec<String>>,
    write_concern_error: Option<DocumentBuf>,
    /// Rules by which pipelines are not rewritten; `None` for all rules.
    rules: Option<RuleSet>,
}

/// The error that a failpoint adds to the reply of a command that succeeds.
#[derive(Debug)]
pub struct InjectedError {
    /// The document for `writeConcernError`.
    pub error: DocumentBuf,
    /// Replace the labels that the error would have.
    pub labels: Option<Vec<String>>,
}

/// The effect of a failpoint on a statement of a retryable write.
#[derive(Debug)]
pub struct StatementTrouble {
    /// Whether the connection is closed instead of a reply.
    pub closes_connection: bool,
    /// The error that the statement fails with before it does anything; `None` if it runs.
    pub failure: Option<Failure>,
}

/// The rewrite rules with these names.
fn rules(names: &[String]) -> Result<RuleSet> {
    RuleSet::named(names.iter().map(String::as_str)).map_err(|unknown| {
        let known = RuleSet::names().collect::<Vec<_>>().join(", ");
        Failure::bad_value(format!("'data.rules' names no rule '{unknown}'; there are {known}"))
    })
}

impl Trouble {
    /// Parses `data` of a command for a failpoint with the fields `known`.
    /// # Errors
    /// `TypeMismatch`, `BadValue`; `CommandNotSupported` for a field that the failpoint has on MongoDB and not here.
    /// Fields that it does not have on MongoDB either are ignored, as there: driver tests send fields of other
    /// failpoints (PyMongo's asyncio suite does).
    pub(crate) fn parse(
        (command, point): (&'static str, &'static str),
        known: &[&str],
        data: DocumentRef<'_>,
    ) -> Result<Self> {
        let is_missing = |name| known == FIELDS && MISSING.contains(&name);
        if let Some(missing) = data.iter().find(|field| is_missing(field.name)) {
            return Err(Failure::not_supported_yet(&format!("the field 'data.{}' of {point}", missing.name)));
        }
        let mut own = DocumentBuf::new();
        for field in data.iter().filter(|field| known.contains(&field.name)) {
            own.append(field.name, field.value);
        }
        let fields = Fields::new(command, own.as_ref());
        let text = |name: &str| fields.string(name).map(|text| text.map(str::to_owned));
        let block = if fields.boolean("blockConnection", false)? {
            let time_ms = fields.integer("blockTimeMS")?.ok_or_else(|| {
                Failure::bad_value("failpoint option 'blockConnection' needs 'blockTimeMS' of at least 0")
            })?;
            let time_ms = u64::try_from(time_ms)
                .map_err(|_| Failure::bad_value(format!("'blockTimeMS' must be at least 0, found {time_ms}")))?;
            Some(Duration::from_millis(time_ms))
        } else {
            None
        };
        let code = |name: &str| {
            let Some(value) = fields.field(name) else { return Ok(None) };
            let code = number::as_i64_exact(value).and_then(|code| i32::try_from(code).ok());
            let code = code.ok_or_else(|| wrong_type(&format!("data.{name}"), value, "int"))?;
            Ok(Some(ErrorCode(code)).filter(|code| code.0 != 0))
        };
        // A failpoint before the commit closes the connection unless `closeConnection` says otherwise.
        let fails_before_commit = known.contains(&BEFORE_COMMIT);
        let error_code = if fails_before_commit { BEFORE_COMMIT } else { "errorCode" };
        let names = |name: &str| fields.array(name)?.map(|array| texts(name, array.iter())).transpose();
        Ok(Self {
            point,
            commands: names("failCommands")?.unwrap_or_default(),
            application: text("appName")?,
            namespace: text("namespace")?,
            block,
            closes_connection: fields.boolean("closeConnection", fails_before_commit)?,
            error: code(error_code)?,
            labels: names("errorLabels")?,
            write_concern_error: fields.document("writeConcernError")?.map(DocumentRef::to_owned),
            rules: names("rules")?.map(|names| rules(&names)).transpose()?,
        })
    }

    /// How pipelines are rewritten under it.
    pub(crate) fn rewrites(&self) -> Rewrites {
        self.rules.map_or(Rewrites::Off, Rewrites::Without)
    }

    /// Whether it applies to this command of this client.
    pub(crate) fn concerns(&self, command: &RunningCommand<'_>) -> bool {
        let RunningCommand { entry, request, .. } = command;
        let is_named = |name: &String| name == entry.name || entry.aliases.contains(&name.as_str());
        self.commands.iter().any(is_named)
            && self.application.as_deref().is_none_or(|name| command.application() == Some(name))
            && self
                .namespace
                .as_deref()
                .is_none_or(|wanted| namespace_of(entry, request.database, request.body) == wanted)
    }

    /// Its effect on a statement of a retryable write.
    pub(crate) fn of_statement(self) -> StatementTrouble {
        let point = self.point;
        let failure = |code| Failure::new(code, format!("Failing command via '{point}' failpoint"));
        StatementTrouble { closes_connection: self.closes_connection, failure: self.error.map(failure) }
    }

    /// Applies the failpoint to a command. Returns the error to add to its reply.
    /// # Errors
    /// The error that the failpoint injects, if any.
    pub(crate) fn befall(self, command: &RunningCommand<'_>) -> Result<Option<InjectedError>, Halt> {
        if let Some(time) = self.block {
            let mut left = time;
            while !left.is_zero() {
                let nap = left.min(NAP);
                std::thread::sleep(nap);
                left -= nap;
                (command.check)()?;
            }
        }
        if self.closes_connection {
            return Err(Halt::ClosesConnection);
        }
        if let Some(code) = self.error {
            let failure = Failure::new(code, format!("Failing command via '{}' failpoint", self.point));
            return Err(match self.labels {
                Some(labels) => failure.with_labels_instead(labels),
                None => failure,
            }
            .into());
        }
        let labels = self.labels;
        Ok(self.write_concern_error.map(|error| InjectedError { error, labels }))
    }
}

fn texts<'a>(name: &str, values: impl Iterator<Item = ValueRef<'a>>) -> Result<Vec<String>> {
    let text = |value: ValueRef<'a>| {
        value.as_str().map(str::to_owned).ok_or_else(|| wrong_type(&format!("data.{name}"), value, "string"))
    };
    values.map(text).collect()
}
