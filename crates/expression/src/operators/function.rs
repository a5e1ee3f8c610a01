//! `$function`, which runs a script, and the operator for the `map` of `mapReduce`.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::call::Prepared;
use crate::script::{self, Refusals};
use crate::{Expression, ParseScope};
use bunko_bson::{Value, ValueRef};
use bunko_errors::{ErrorCode, Failure};
use bunko_javascript::Function;

pub(super) const OPERATOR: Operator =
    Operator { name: "$function", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };
/// `map` in the pipeline of a `mapReduce`: emits keys and values.
pub(super) const EMIT: Operator = Operator {
    name: "$_internalJsEmit",
    strings: Strings::AsBytes,
    form: Form::Special(parse_emit),
    evaluate: evaluate_emit,
};

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let arguments = call.argument(0, context)?;
    let Some(ValueRef::Array(arguments)) = arguments.get() else {
        return Err(Failure::new(ErrorCode(31266), "The args field must be of type array"));
    };
    let arguments: Vec<_> = arguments.iter().collect();
    Ok(function(call)?.call(None, &arguments)?.into())
}

fn function(call: &Call) -> Result<&Function> {
    match &call.prepared {
        Prepared::Script(function) => Ok(function),
        _ => Err(Failure::new(ErrorCode::INTERNAL_ERROR, "a script was not compiled")),
    }
}

fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let failure = |code, message: String| Failure::new(ErrorCode(code), message);
    let ValueRef::Document(specification) = value else {
        let found = value.kind().alias();
        return Err(failure(31260, format!("$function requires an object as an argument, found: {found}")));
    };
    let required =
        |name: &str, code, message: &str| specification.get(name).ok_or_else(|| failure(code, message.to_owned()));
    let refusals = Refusals {
        not_constant: (31432, "The body function must be a constant expression".to_owned()),
        no_text: (31262, "The body function must evaluate to type string or code".to_owned()),
    };
    let body = required("body", 31261, "The body function must be specified.")?;
    let function = script::parse(operator.name, body, refusals, scope)?;
    let arguments = required("args", 31263, "The args field must be specified.")?;
    let arguments = Expression::parse(arguments, scope)?;
    script::check_language(required("lang", 31418, "The lang field must be specified.")?, 31419)?;
    Ok(Call { prepared: Prepared::Script(function), ..Call::new(operator, vec![arguments]) })
}

fn evaluate_emit<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let this = call.argument(0, context)?;
    let Some(ValueRef::Document(this)) = this.get() else {
        return Err(Failure::new(ErrorCode(31225), "'this' must be an object."));
    };
    Ok(Value::Array(function(call)?.emits(this)?).into())
}

fn parse_emit(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let failure = |code, message: &str| Failure::new(ErrorCode(code), message);
    let ValueRef::Document(specification) = value else {
        return Err(failure(31221, "$_internalJsEmit requires an object as an argument"));
    };
    let this = specification.get("this").ok_or_else(|| failure(31222, "The map function must specify 'this'"))?;
    let text = specification.get("eval").ok_or_else(|| failure(31223, "The map function must be specified."))?;
    let refusals = Refusals {
        not_constant: (31224, "The map function must be a constant".to_owned()),
        no_text: (31224, "The map function must evaluate to type string or code".to_owned()),
    };
    let function = script::parse(operator.name, text, refusals, scope)?;
    let this = Expression::parse(this, scope)?;
    Ok(Call { prepared: Prepared::Script(function), ..Call::new(operator, vec![this]) })
}
