//! `$replaceRoot`, also `$replaceWith`: puts a document that an expression yields in each document's place.

use super::Change;
use crate::{Dependencies, Evaluated, EvaluationContext, Expression, ParseScope, PathChanges};
use bunko_bson::{DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// The expression that yields the new document.
pub(super) struct NewRoot(Expression);

pub(super) fn parse(_: &'static str, value: ValueRef<'_>, scope: &ParseScope) -> Result<Change> {
    let ValueRef::Document(specification) = value else {
        let message =
            format!("expected an object as specification for $replaceRoot stage, got {}", value.kind().alias());
        return Err(Failure::new(ErrorCode(40229), message));
    };
    if let Some(unknown) = specification.iter().find(|element| element.name != "newRoot") {
        return Err(Failure::unknown_field(format_args!("$replaceRoot.{}", unknown.name)));
    }
    let Some(new_root) = specification.get("newRoot") else {
        return Err(Failure::missing_field("$replaceRoot.newRoot"));
    };
    Ok(Change::Root(NewRoot(Expression::parse(new_root, scope)?)))
}

/// Reads the expression that stands alone.
pub(super) fn parse_alone(_: &'static str, value: ValueRef<'_>, scope: &ParseScope) -> Result<Change> {
    Ok(Change::Root(NewRoot(Expression::parse(value, scope)?)))
}

impl NewRoot {
    pub(super) fn made(&self, stage: &str, context: &EvaluationContext<'_>) -> Result<DocumentBuf> {
        match self.0.evaluate(context)? {
            Evaluated::Owned(Value::Document(replacement)) => Ok(replacement),
            Evaluated::Ref(ValueRef::Document(replacement)) => {
                context.operation().work(1 + replacement.len_bytes() / 64)?;
                Ok(replacement.to_owned())
            }
            other => Err(not_a_document(stage, &other, context.root())),
        }
    }

    pub(super) fn lend<T>(
        &self,
        stage: &str,
        context: &EvaluationContext<'_>,
        take: impl FnOnce(DocumentRef<'_>) -> Result<T>,
    ) -> Result<T> {
        let evaluated = self.0.evaluate(context)?;
        match evaluated.get() {
            Some(ValueRef::Document(replacement)) => take(replacement),
            _ => Err(not_a_document(stage, &evaluated, context.root())),
        }
    }

    pub(super) fn add_dependencies(&self, dependencies: &mut Dependencies) {
        self.0.add_dependencies(dependencies);
    }

    pub(super) fn path_changes(&self) -> Option<PathChanges> {
        self.0.path_changes()
    }

    pub(super) fn path(&self) -> Option<String> {
        self.0.as_field()
    }
}

fn not_a_document(stage: &str, found: &Evaluated<'_>, document: DocumentRef<'_>) -> Failure {
    let (what, blank) = if stage == "$replaceRoot" { ("newRoot", " ") } else { ("replacement", "") };
    let message = format!(
        "'{what}' expression {blank}must evaluate to an object, but resulting value was: {}. Type of resulting value: '{}'. Input document: {}",
        found.get().map_or("MISSING".to_owned(), |value| bunko_bson::text::ValueText(value).to_string()),
        found.type_name(),
        bunko_bson::text::ValueText(ValueRef::Document(document)),
    );
    Failure::new(ErrorCode(40228), message)
}
