//! `$accumulator`, whose scripts keep a group's state, and the reduction in the pipeline of a `mapReduce`.

use super::{Accumulator, Custom, Form, Kind, Settings, Strings, value_bytes};
use crate::script::{self, Refusals};
use crate::{Evaluated, EvaluationContext, Expression, ParseScope};
use bunko_bson::{ArrayBuf, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_javascript::Function;
use std::sync::Arc;

pub(super) const ACCUMULATOR: Kind = Kind { name: "$accumulator", strings: Strings::AsBytes, form: Form::Custom, make };
pub(super) const REDUCE: Kind =
    Kind { name: "$_internalJsReduce", strings: Strings::AsBytes, form: Form::Reduce, make };

/// Maximum size of the values that a group keeps before it reduces them, in bytes.
const VALUES_BYTES_MAX: usize = 4 * 1024 * 1024;

fn required<T>(field: Option<T>, name: &str, code: i32) -> Result<T> {
    let missing = || Failure::new(ErrorCode(code), format!("$accumulator missing required argument '{name}'"));
    field.ok_or_else(missing)
}

fn function(name: &str, value: ValueRef<'_>, scope: &ParseScope) -> Result<Function> {
    let refusals = Refusals {
        not_constant: (4_544_701, format!("$accumulator '{name}' must be a constant")),
        no_text: (4_544_702, format!("$accumulator '{name}' must be a string or code")),
    };
    script::parse(ACCUMULATOR.name, value, refusals, scope)
}

fn check_language(language: ValueRef<'_>) -> Result<()> {
    let (code, message) = match language {
        ValueRef::String("js") => return Ok(()),
        ValueRef::String(_) => (4_544_705, "$accumulator only supports lang: 'js'".to_owned()),
        other => (4_544_704, format!("$accumulator lang must be a string; found: {}", other.kind().alias())),
    };
    Err(Failure::new(ErrorCode(code), message))
}

impl Custom {
    /// Reads `$accumulator`; also returns the expression that feeds it. Arguments are read in written order, so that
    /// the error is about the first wrong one. `initArgs`, `finalize` and `lang` are optional.
    pub(super) fn parse(argument: ValueRef<'_>, scope: &ParseScope) -> Result<(Self, Expression)> {
        let ValueRef::Document(specification) = argument else {
            let found = argument.kind().alias();
            let message = format!("$accumulator expects an object as an argument; found: {found}");
            return Err(Failure::new(ErrorCode(4_544_703), message));
        };
        let (mut init, mut accumulate, mut merge, mut finalize) = (None, None, None, None);
        let (mut init_arguments, mut input) = (None, None);
        for element in specification {
            match element.name {
                "init" => init = Some(function("init", element.value, scope)?),
                "accumulate" => accumulate = Some(function("accumulate", element.value, scope)?),
                "merge" => merge = Some(function("merge", element.value, scope)?),
                "finalize" => finalize = Some(function("finalize", element.value, scope)?),
                "initArgs" => init_arguments = Some(Expression::parse(element.value, scope)?),
                "accumulateArgs" => input = Some(Expression::parse(element.value, scope)?),
                "lang" => check_language(element.value)?,
                other => {
                    let message = format!("$accumulator got an unexpected field: {other}");
                    return Err(Failure::new(ErrorCode(4_544_706), message));
                }
            }
        }
        let init = required(init, "init", 4_544_707)?;
        let accumulate = required(accumulate, "accumulate", 4_544_708)?;
        // A group sees all its documents, so `merge` is never called.
        required(merge, "merge", 4_544_709)?;
        let input = required(input, "accumulateArgs", 4_544_710)?;
        let init_arguments = init_arguments.unwrap_or_else(|| Expression::literal(Value::Array(ArrayBuf::new())));
        Ok((Self::States { init, init_arguments, accumulate, finalize }, input))
    }

    /// Reads `$_internalJsReduce`; also returns the expression that feeds it.
    pub(super) fn parse_reduce(argument: ValueRef<'_>, scope: &ParseScope) -> Result<(Self, Expression)> {
        let failure = |code, message: &str| Failure::new(ErrorCode(code), message);
        let ValueRef::Document(specification) = argument else {
            return Err(failure(31326, "$_internalJsReduce requires an object argument"));
        };
        let data = specification.get("data").ok_or_else(|| failure(31349, "$_internalJsReduce requires 'data'"))?;
        let text = specification.get("eval").ok_or_else(|| failure(31243, "$_internalJsReduce requires 'eval'"))?;
        let refusals = Refusals {
            not_constant: (31244, "$_internalJsReduce 'eval' must be a constant".to_owned()),
            no_text: (31244, "$_internalJsReduce 'eval' must be of type string or code".to_owned()),
        };
        let reduce = script::parse(REDUCE.name, text, refusals, scope)?;
        Ok((Self::Reduction(reduce), Expression::parse(data, scope)?))
    }

    /// The state of a new group: the result of `init`, or null for a reduction.
    pub(super) fn initial(&self, group: &EvaluationContext<'_>) -> Result<Value> {
        let Self::States { init, init_arguments, .. } = self else { return Ok(Value::Null) };
        let arguments = init_arguments.evaluate(group)?;
        let Some(ValueRef::Array(arguments)) = arguments.get() else {
            let message = "$accumulator initArgs must evaluate to an array";
            return Err(Failure::new(ErrorCode(4_544_711), message));
        };
        init.call(None, &arguments.iter().collect::<Vec<_>>())
    }
}

fn make(settings: &Settings) -> Box<dyn Accumulator> {
    let custom = settings.custom.clone();
    match custom.as_deref() {
        Some(Custom::Reduction(_)) => Box::new(Reduced { custom, key: Value::Null, values: ArrayBuf::new() }),
        _ => Box::new(States { custom, state: settings.initial.clone() }),
    }
}

/// The state of `$accumulator` for a group.
struct States {
    custom: Option<Arc<Custom>>,
    state: Value,
}

impl Accumulator for States {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        let Some(Custom::States { accumulate, .. }) = self.custom.as_deref() else { return Ok(()) };
        let Some(ValueRef::Array(arguments)) = value.get() else {
            let message = "$accumulator accumulateArgs must evaluate to an array";
            return Err(Failure::new(ErrorCode(4_544_712), message));
        };
        let arguments: Vec<_> = std::iter::once(self.state.as_ref()).chain(arguments.iter()).collect();
        self.state = accumulate.call(None, &arguments)?;
        Ok(())
    }

    fn value(&self) -> Value {
        self.state.clone()
    }

    fn outcome(self: Box<Self>) -> Result<Value> {
        match self.custom.as_deref() {
            Some(Custom::States { finalize: Some(finalize), .. }) => finalize.call(None, &[self.state.as_ref()]),
            _ => Ok(self.state),
        }
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + value_bytes(self.state.as_ref())
    }
}

/// The emitted values of a key that are not reduced yet.
struct Reduced {
    custom: Option<Arc<Custom>>,
    key: Value,
    values: ArrayBuf,
}

impl Reduced {
    /// Reduces all values to one; a single value is returned as it is.
    fn reduce(&mut self) -> Result<Value> {
        let values = std::mem::take(&mut self.values);
        let mut iterator = values.as_ref().iter();
        match (iterator.next(), iterator.next(), self.custom.as_deref()) {
            (Some(only), None, _) => Ok(only.to_value()),
            (Some(_), Some(_), Some(Custom::Reduction(reduce))) => {
                reduce.call(None, &[self.key.as_ref(), ValueRef::Array(values.as_ref())])
            }
            _ => Ok(Value::Undefined),
        }
    }
}

impl Accumulator for Reduced {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        let emitted = value.get().and_then(ValueRef::as_document);
        let Some(emitted) = emitted else {
            return Err(Failure::new(ErrorCode(31251), "$_internalJsReduce requires 'data' to be an object"));
        };
        if self.values.count() == 0 {
            self.key = emitted.get("k").map_or(Value::Null, ValueRef::to_value);
        }
        let value = emitted.get("v").unwrap_or(ValueRef::Undefined);
        if self.values.count() > 1 && self.values.len_bytes() + value.content_bytes() > VALUES_BYTES_MAX {
            let reduced = self.reduce()?;
            self.values.push(reduced.as_ref());
        }
        self.values.push(value);
        Ok(())
    }

    fn value(&self) -> Value {
        Value::Array(self.values.clone())
    }

    fn outcome(mut self: Box<Self>) -> Result<Value> {
        self.reduce()
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + value_bytes(self.key.as_ref()) + self.values.len_bytes()
    }
}
