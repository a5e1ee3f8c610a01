//! Options that reads and writes share: `collation` and `let`.

use crate::invocation::Invocation;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::QueryScope;
use std::sync::Arc;

/// Lets binary comparison pass, the only collation there is.
/// # Errors
/// `CommandNotSupported` for a language's own rules, `FailedToParse` where `locale` is missing.
pub(crate) fn check_collation(collation: Option<DocumentRef<'_>>) -> Result<()> {
    let Some(collation) = collation.filter(|collation| !collation.is_empty()) else { return Ok(()) };
    match collation.get("locale") {
        Some(ValueRef::String("simple")) => Ok(()),
        Some(locale) => Err(Failure::new(
            ErrorCode::COMMAND_NOT_SUPPORTED,
            format!("collation with locale {} is not supported yet, only \"simple\" is", ValueText(locale)),
        )),
        None => Err(Failure::new(
            ErrorCode::IDL_FAILED_TO_PARSE,
            "BSON field 'collation.locale' is missing but a required field",
        )),
    }
}

/// What the expressions of a command see.
/// # Errors
/// `CommandNotSupported` for a `let` that defines something.
pub(crate) fn query_scope(invocation: &Invocation<'_>) -> Result<Arc<QueryScope>> {
    if invocation.document("let")?.is_some_and(|variables| !variables.is_empty()) {
        return Err(Failure::new(
            ErrorCode::COMMAND_NOT_SUPPORTED,
            format!("'let' is not supported by {} yet", invocation.command.name),
        ));
    }
    Ok(Arc::new(QueryScope { now_ms: invocation.service.world.now_ms(), ..QueryScope::default() }))
}
