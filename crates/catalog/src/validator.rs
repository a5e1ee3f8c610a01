//! Validators: conditions for documents of a collection when they are written.
//!
//! Source: MongoDB manual, "Schema Validation".

use crate::{Collection, EncryptedFields, Namespace};
use bunko_bson::{DocumentBuf, DocumentRef, StringOrder, Value, ValueRef, extended_json};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Evaluated, EvaluationContext, Expression, ParseScope, Variables};
use bunko_matcher::{ExprCompiler, ExprPredicate, Filter};
use bunko_operation::{OperationContext, OperationSource};
use bunko_store::Store;
use std::sync::Arc;

/// The writes that are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// All writes.
    Strict,
    /// Inserts, and updates of documents that were valid.
    Moderate,
}

/// The treatment of an invalid document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// The document is refused.
    Error,
    /// The document is written, with a line in the server's log.
    Warn,
    /// The document is refused, with a line in the server's log.
    ErrorAndLog,
}

/// All conditions for a collection's documents, parsed.
pub(crate) struct Validator {
    encrypted: Option<EncryptedFields>,
    of_users: Option<UserValidator>,
}

/// The validator that `create` or `collMod` was given.
struct UserValidator {
    /// A failure if this version does not understand the stored validator; writes are then refused.
    filter: Result<Filter>,
    level: Level,
    action: Action,
}

/// The options of a copy without its validator: the documents were checked when they were first stored.
pub(crate) fn without_validator(options: &DocumentBuf) -> DocumentBuf {
    let is_judge = |name: &str| matches!(name, "validator" | "validationLevel" | "validationAction");
    let mut without = DocumentBuf::new();
    for element in options.as_ref().iter().filter(|element| !is_judge(element.name)) {
        without.append(element.name, element.value);
    }
    without
}

impl Validator {
    /// Reads the conditions from a collection's options; `None` if there are none. `strings` is the collection's
    /// collation.
    pub fn of(options: DocumentRef<'_>, store: &Arc<Store>, strings: &StringOrder) -> Option<Self> {
        let (encrypted, of_users) = (EncryptedFields::of(options), UserValidator::of(options, store, strings));
        (encrypted.is_some() || of_users.is_some()).then_some(Self { encrypted, of_users })
    }

    /// Checks a document that is about to be written. `replaced` is the document that it replaces, if any.
    /// # Errors
    /// `DocumentValidationFailure`, with `errInfo` if it comes from the users' validator; failures of an `$expr`; as
    /// `OperationContext::check`.
    pub fn check(
        &self,
        collection: &Collection,
        document: &[u8],
        replaced: Option<&[u8]>,
        operation: &dyn OperationSource,
    ) -> Result<()> {
        if let Some(encrypted) = &self.encrypted {
            encrypted.check(DocumentRef::trusted(document))?;
        }
        match &self.of_users {
            Some(validator) => validator.check(collection, document, replaced, operation),
            None => Ok(()),
        }
    }
}

impl UserValidator {
    fn of(options: DocumentRef<'_>, store: &Arc<Store>, strings: &StringOrder) -> Option<Self> {
        let validator = options.get("validator").and_then(ValueRef::as_document)?;
        let text = |name: &str| options.get(name).and_then(ValueRef::as_str);
        let level = match text("validationLevel") {
            Some("off") => return None,
            Some("moderate") => Level::Moderate,
            _ => Level::Strict,
        };
        let action = match text("validationAction") {
            Some("warn") => Action::Warn,
            Some("errorAndLog") => Action::ErrorAndLog,
            _ => Action::Error,
        };
        if validator.is_empty() {
            return None;
        }
        Some(Self { filter: parse(validator, store, strings), level, action })
    }

    fn check(
        &self,
        collection: &Collection,
        document: &[u8],
        replaced: Option<&[u8]>,
        operation: &dyn OperationSource,
    ) -> Result<()> {
        let operation = operation.operation();
        if operation.bypasses_validation() {
            return Ok(());
        }
        let filter = self.filter.as_ref().map_err(Failure::clone)?;
        let document = DocumentRef::trusted(document);
        if filter.matches_within(document, operation)? {
            return Ok(());
        }
        if let Some(replaced) = replaced.filter(|_| self.level == Level::Moderate)
            && !filter.matches_within(DocumentRef::trusted(replaced), operation)?
        {
            return Ok(());
        }
        let information = DocumentBuf::new()
            .with("failingDocumentId", document.get("_id").unwrap_or(ValueRef::Null))
            .with("details", &filter.failure_details(document, operation)?);
        if self.action != Action::Error {
            log(&collection.namespace(), information.as_ref());
        }
        if self.action == Action::Warn {
            return Ok(());
        }
        let failure = Failure::new(ErrorCode::DOCUMENT_VALIDATION_FAILURE, "Document failed validation");
        Err(failure.with_details(DocumentBuf::new().with("errInfo", &information).as_ref()))
    }
}

/// Parses a new validator.
/// # Errors
/// As [`Filter::parse_validator`].
pub fn check_validator(validator: DocumentRef<'_>, store: &Arc<Store>) -> Result<()> {
    parse(validator, store, StringOrder::BYTES).map(drop)
}

fn parse(validator: DocumentRef<'_>, store: &Arc<Store>, strings: &StringOrder) -> Result<Filter> {
    Filter::parse_validator(validator, &ExprInValidator { store: Arc::clone(store), strings: strings.clone() })
}

fn log(namespace: &Namespace, information: DocumentRef<'_>) {
    let information = extended_json::to_relaxed(ValueRef::Document(information));
    tracing::warn!(
        target: "STORAGE", id = 20294, namespace = namespace.as_str(), errInfo = information,
        "Document would fail validation"
    );
}

/// Compiles operands of `$expr` in a validator, which outlives the operation that set it.
struct ExprInValidator {
    store: Arc<Store>,
    strings: StringOrder,
}

struct Predicate {
    expression: Expression,
    store: Arc<Store>,
    strings: StringOrder,
}

/// Variables that a validator may use now. A store that keeps its history belongs to a member of a set, and its newest
/// time is the cluster's.
fn variables_of(store: &Store) -> Variables {
    Variables::new().with_cluster_time(store.keeps_history().then(|| store.newest_time()))
}

impl ExprCompiler for ExprInValidator {
    fn compile(&self, expression: ValueRef<'_>) -> Result<Arc<dyn ExprPredicate>> {
        let scope = ParseScope::new(&variables_of(&self.store)).folding(&self.strings, &Arc::default());
        let expression = Expression::parse(expression, &scope)?;
        Ok(Arc::new(Predicate { expression, store: Arc::clone(&self.store), strings: self.strings.clone() }))
    }

    fn strings(&self) -> &StringOrder {
        &self.strings
    }

    /// `None`, because the command that sets a validator counts its own work, and a stored validator has no operation.
    fn operation(&self) -> Option<&OperationContext> {
        None
    }
}

impl Predicate {
    /// Evaluates the expression, and returns what `read` makes of the result.
    fn evaluate<T>(
        &self,
        document: DocumentRef<'_>,
        operation: Option<&OperationContext>,
        read: impl FnOnce(Evaluated<'_>) -> T,
    ) -> Result<T> {
        let now_ms = i64::try_from(self.store.clock().now_ms()).unwrap_or(i64::MAX);
        let unlimited;
        let operation = match operation {
            Some(operation) => operation,
            None => {
                unlimited = OperationContext::unlimited();
                &unlimited
            }
        };
        let variables = variables_of(&self.store);
        let context = EvaluationContext::new(document, &variables, now_ms, operation).with_strings(&self.strings);
        self.expression.evaluate(&context).map(read)
    }
}

impl ExprPredicate for Predicate {
    fn matches(&self, document: DocumentRef<'_>, operation: Option<&OperationContext>) -> Result<bool> {
        self.evaluate(document, operation, |result| result.is_true())
    }

    fn result(&self, document: DocumentRef<'_>, operation: Option<&OperationContext>) -> Result<Option<Value>> {
        self.evaluate(document, operation, |result| result.get().map(ValueRef::to_value))
    }
}
