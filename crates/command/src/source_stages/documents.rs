//! `$documents`: the documents that an expression yields, without a collection.
//!
//! Errors: `InvalidNamespace` beside a collection's name, 5858203 where the expression yields no array, 40228 for an
//! element that is no document.

use super::{SourceStage, Subject};
use crate::invocation::Invocation;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::Expression;

pub(super) const STAGE: SourceStage = SourceStage { name: "$documents", subject: Subject::Database, documents };

fn documents(
    invocation: &Invocation<'_>,
    namespace: &Namespace,
    specification: ValueRef<'_>,
) -> Result<Vec<DocumentBuf>> {
    if invocation.argument().as_str().is_some() {
        let message = format!("$documents is not valid on a collection ({namespace}), only with {{aggregate: 1}}");
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    }
    let scope = invocation.scope();
    let expression = Expression::parse(specification, &scope.parse_scope())?;
    let context = scope.context(DocumentRef::EMPTY);
    let evaluated = expression.evaluate(&context)?;
    let Some(ValueRef::Array(array)) = evaluated.get() else {
        let message = format!("$documents needs an array of objects, found: {}", evaluated.type_name());
        return Err(Failure::new(ErrorCode(5_858_203), message));
    };
    array
        .iter()
        .map(|element| {
            element.as_document().map(DocumentRef::to_owned).ok_or_else(|| {
                let message = format!(
                    "$documents needs an array of objects, found in it: {} of type {}",
                    ValueText(element),
                    element.kind().alias()
                );
                Failure::new(ErrorCode(40228), message)
            })
        })
        .collect()
}
