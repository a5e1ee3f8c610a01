//! Checks which commands may be part of a transaction, and their fields about it.

use bunko_bson::{ArrayRef, DocumentRef, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::Request;
use bunko_request::facts::{Changes, CommandFacts, TransactionUse};
use bunko_request::fields::wrong_type;
use bunko_request::inner_pipelines::pipelines_in;
use bunko_stages::TransactionUse as StageUse;

/// The part of a command in its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionPart {
    /// The command begins the transaction.
    First,
    /// The command continues the transaction.
    Later,
    /// The command is `commitTransaction`.
    Commit,
    /// The command is `abortTransaction`.
    Abort,
}

/// The fields that make a command part of a transaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct TransactionFields {
    autocommit: Option<bool>,
    starts: Option<bool>,
}

/// Databases that transactions cannot use.
const OWN_DATABASES: [&str; 3] = ["admin", "config", "local"];

/// The collection with the definitions of a database's views.
const VIEWS: &str = "system.views";

impl TransactionFields {
    /// Parses `autocommit` or `startTransaction`.
    /// # Errors
    /// `TypeMismatch`.
    pub fn read(&mut self, name: &str, value: ValueRef<'_>) -> Result<()> {
        let given = match value {
            ValueRef::Null | ValueRef::Undefined => None,
            ValueRef::Boolean(boolean) => Some(boolean),
            other => return Err(wrong_type(&format!("OperationSessionInfo.{name}"), other, "bool")),
        };
        if name == "autocommit" {
            self.autocommit = given;
        } else {
            self.starts = given;
        }
        Ok(())
    }

    /// Whether the fields make the command part of a transaction.
    pub fn are_inside(self) -> bool {
        self.autocommit == Some(false)
    }

    /// The name of the first field that is present; `None` if none is.
    pub fn first_given(self) -> Option<&'static str> {
        self.autocommit.map(|_| "autocommit").or(self.starts.map(|_| "startTransaction"))
    }

    /// The part of a command with a number in its transaction; `None` if the fields do not make it part of one.
    /// # Errors
    /// `InvalidOptions` for fields that contradict each other; `OperationNotSupportedInTransaction`.
    pub fn part_of(self, command: &CommandFacts, request: &Request<'_>) -> Result<Option<TransactionPart>> {
        let refuse = |message: &str| Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        match (self.autocommit, self.starts) {
            (Some(true), _) => refuse("Specifying autocommit=true is not allowed."),
            (_, Some(false)) => refuse("Specifying startTransaction=false is not allowed."),
            (None, Some(true)) => refuse("'startTransaction' field requires 'autocommit' field to also be specified"),
            (None, None) => Ok(None),
            (Some(false), starts) => {
                let part =
                    part_of(command, if starts.is_some() { TransactionPart::First } else { TransactionPart::Later })?;
                check_target(command, request)?;
                Ok(Some(part))
            }
        }
    }
}

/// Whether the body makes the command part of a transaction, whatever its other fields.
pub fn is_inside(body: DocumentRef<'_>) -> bool {
    matches!(body.get("autocommit"), Some(ValueRef::Boolean(false)))
}

fn part_of(command: &CommandFacts, place: TransactionPart) -> Result<TransactionPart> {
    match (command.transaction, place) {
        (TransactionUse::Anywhere, place) => Ok(place),
        (TransactionUse::NotFirst, TransactionPart::Later) => Ok(TransactionPart::Later),
        (TransactionUse::Commits, TransactionPart::Later) => Ok(TransactionPart::Commit),
        (TransactionUse::Aborts, TransactionPart::Later) => Ok(TransactionPart::Abort),
        (TransactionUse::Refused, _) => {
            Err(not_supported(format!("Cannot run '{}' in a multi-document transaction.", command.name)))
        }
        (TransactionUse::NotFirst | TransactionUse::Commits | TransactionUse::Aborts, _) => {
            Err(not_supported(format!("Cannot run {} at the start of a transaction", command.name)))
        }
    }
}

/// Refuses databases, collections and stages that a transaction cannot use.
fn check_target(command: &CommandFacts, request: &Request<'_>) -> Result<()> {
    // A bulkWrite runs on admin, and each of its namespaces has its own database.
    if matches!(command.changes, Changes::DocumentsOfSeveral) {
        let mut databases = request.bulk_namespaces().filter_map(|namespace| namespace.split('.').next());
        return databases.try_for_each(check_database);
    }
    if command.transaction == TransactionUse::Anywhere {
        check_database(request.database)?;
        check_profile(request.database, request.argument().as_str().unwrap_or_default())?;
    }
    // Among the commands that transactions allow, only those with a pipeline have this field.
    request.body.get("pipeline").and_then(ValueRef::as_array).map_or(Ok(()), check_stages)
}

fn check_database(database: &str) -> Result<()> {
    if OWN_DATABASES.contains(&database) {
        return Err(not_supported(format!("Cannot run command against the '{database}' database in a transaction.")));
    }
    Ok(())
}

/// Refuses the server's own collections whose past states transactions cannot read, even if a stage or a view names
/// them.
/// # Errors
/// 51071 for view definitions, `OperationNotSupportedInTransaction` for `system.profile`.
pub fn check_read(database: &str, collection: &str) -> Result<()> {
    if collection == VIEWS {
        let message = format!("{database}.{collection} cannot be read in a multi-document transaction");
        return Err(Failure::new(ErrorCode(51071), message));
    }
    check_profile(database, collection)
}

/// Refuses `system.profile`, whose past states transactions cannot read.
/// # Errors
/// `OperationNotSupportedInTransaction`.
fn check_profile(database: &str, collection: &str) -> Result<()> {
    if collection != Namespace::PROFILE_COLLECTION {
        return Ok(());
    }
    Err(not_supported(format!("Cannot run command against the '{database}.{collection}' collection in a transaction.")))
}

/// Checks the stages, and the stages of pipelines inside them.
fn check_stages(stages: ArrayRef<'_>) -> Result<()> {
    for stage in stages.iter().filter_map(ValueRef::as_document).filter_map(DocumentRef::first) {
        let Some(entry) = bunko_stages::find(stage.name) else { continue };
        if entry.transaction == StageUse::Refused {
            let message = format!(
                "Operation not permitted in transaction :: caused by :: Aggregation stage {} cannot run within a \
                 multi-document transaction.",
                stage.name
            );
            return Err(not_supported(message));
        }
        pipelines_in(entry, stage.value).try_for_each(check_stages)?;
    }
    Ok(())
}

/// The refusal of something that transactions cannot do.
pub fn not_supported(message: String) -> Failure {
    Failure::new(ErrorCode::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message)
}
