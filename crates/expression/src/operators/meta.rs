//! `$meta`: metadata of the document.

use super::{Call, Evaluated, EvaluationContext, Expression, Form, Operator, Result, Strings};
use crate::metadata::Offered;
use crate::{ParseScope, meta};
use bunko_bson::{Value, ValueRef};

pub(super) const OPERATOR: Operator =
    Operator { name: "$meta", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };

/// Parses `$meta` into a call whose argument is the name under which the metadata is kept.
fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let name = meta::parse(value, scope)?;
    Ok(Call::new(operator, vec![Expression::literal(Value::String(name.into()))]))
}

/// `$$SEARCH_META`, or a path in it: metadata about all results of a search. Each document carries it.
pub(crate) fn of_search(path: Option<&str>, scope: &ParseScope) -> Expression {
    scope.want_metadata(Offered::NONE);
    let name = |name: &str| Expression::literal(Value::String(name.into()));
    let whole = Expression::call(Call::new(&OPERATOR, vec![name("searchMeta")]));
    let fields = path.into_iter().flat_map(|path| path.split('.'));
    fields
        .fold(whole, |inner, field| Expression::call(Call::new(&super::get_field::OPERATOR, vec![name(field), inner])))
}

#[expect(clippy::unnecessary_wraps, reason = "all operators are evaluated by functions of this type")]
fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let name = call.arguments[0].as_literal().and_then(ValueRef::as_str).unwrap_or_default();
    Ok(context.metadata(name).map_or(Evaluated::Missing, Evaluated::from))
}
