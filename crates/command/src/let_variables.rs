//! `let`: variables that a command defines for its expressions.

use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, Expression};
use bunko_query::QueryScope;
use bunko_request::fields::Fields;
use std::sync::Arc;

/// System variables that servers of a cluster set for each other with `let`.
const SET_BY_SERVERS: [&str; 5] = ["NOW", "CLUSTER_TIME", "JS_SCOPE", "IS_MR", "USER_ROLES"];

/// The definitions of a command's `let`. Each may use variables before it, and none may use a document's fields.
#[derive(Clone, Copy, Default)]
pub(crate) struct Let<'a>(Option<DocumentRef<'a>>);

impl<'a> Let<'a> {
    /// # Errors
    /// `TypeMismatch`.
    pub(crate) fn parse(fields: &Fields<'a>) -> Result<Self> {
        Ok(Self(fields.document("let")?.filter(|definitions| !definitions.is_empty())))
    }

    /// The scope with the variables.
    /// # Errors
    /// `FailedToParse` for a name that users may not define, 4738901 for a name that only servers may set, 4890500 for
    /// a value that depends on a document; errors of the expressions.
    pub(crate) fn define_in(self, scope: Arc<QueryScope>) -> Result<Arc<QueryScope>> {
        let Some(definitions) = self.0 else { return Ok(scope) };
        let mut scope = QueryScope::clone(&scope);
        for definition in definitions {
            check_settable(definition.name)?;
            let value = {
                let expression = Expression::parse(definition.value, &scope.parse_scope())?;
                check_constant(definition.name, definition.value, &expression)?;
                expression.evaluate(&scope.context(DocumentRef::EMPTY))?.into_value()
            };
            scope.variables.define(definition.name, value)?;
        }
        Ok(Arc::new(scope))
    }
}

/// Checks a name, which comes before its expression is parsed.
fn check_settable(name: &str) -> Result<()> {
    if SET_BY_SERVERS.contains(&name) {
        let message = format!("Attempt to set internal constant: {name}");
        return Err(Failure::new(ErrorCode(4_738_901), message));
    }
    bunko_expression::check_defined_name(name)
        .map_err(|failure| failure.with_prefix("Invalid 'let' parameter :: caused by :: "))
}

fn check_constant(name: &str, value: ValueRef<'_>, expression: &Expression) -> Result<()> {
    let mut dependencies = Dependencies::default();
    expression.add_dependencies(&mut dependencies);
    if dependencies == Dependencies::default() {
        return Ok(());
    }
    let value = bunko_bson::text::ValueText(value);
    let message = format!(
        "Command let Expression tried to access a field, but this is not allowed because Command Let \
                           expressions run before the query examines any documents. Variable '{name}': {value}"
    );
    Err(Failure::new(ErrorCode(4_890_500), message))
}
