//! A call of an operator: reading its arguments from BSON, and its parsed form.

use crate::compiled_pattern::Pattern;
use crate::element_order::ElementOrder;
use crate::number::Number;
use crate::variables::{Binding, EvaluationContext};
use crate::{Evaluated, Expression, ParseScope};
pub(crate) use bunko_bson::StringUse as Strings;
use bunko_bson::ValueRef;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_javascript::Function;
use std::sync::Arc;

/// One entry of the table of operators.
pub(crate) struct Operator {
    /// The operator's name, with its `$`.
    pub(crate) name: &'static str,
    /// Whether the operator compares strings.
    pub(crate) strings: Strings,
    /// How the operator's arguments are written.
    pub(crate) form: Form,
    /// Evaluates a call. It evaluates arguments on demand, so that conditionals can skip some.
    pub(crate) evaluate: for<'a> fn(&'a Call, &EvaluationContext<'a>) -> Result<Evaluated<'a>>,
}

/// How arguments are written.
pub(crate) enum Form {
    /// `{$op: [a, b]}`, or `{$op: a}` for one.
    Positional(Arity),
    /// `{$op: {name: a}}`, kept in the order of the parameters.
    Named(&'static Parameters),
    /// Any value, which is not parsed as an expression.
    Constant,
    /// Parsed by the operator itself.
    Special(fn(&'static Operator, ValueRef<'_>, &ParseScope) -> Result<Call>),
}

/// Number of positional arguments.
pub(crate) enum Arity {
    Exactly(usize),
    /// One. Conversions have their own error for another number.
    Conversion,
    Between(usize, usize),
    Any,
}

/// An error's code and text; `{}` stands for the value found instead.
pub(crate) type Refusal = (i32, &'static str);

/// Named parameters and the errors about them, which differ from operator to operator.
pub(crate) struct Parameters {
    /// The argument is not a document; `{}` is its type.
    pub(crate) not_an_object: Refusal,
    /// `{}` is the unknown name.
    pub(crate) unknown: Refusal,
    /// Each parameter's name, and the error if it is required and missing.
    pub(crate) names: &'static [(&'static str, Option<Refusal>)],
}

/// Makes the error of a refusal; `found` takes the place of `{}` in its text.
pub(crate) fn refuse(refusal: Refusal, found: &str) -> Failure {
    Failure::new(ErrorCode(refusal.0), refusal.1.replacen("{}", found, 1))
}

/// An operator with its arguments.
pub(crate) struct Call {
    pub(crate) operator: &'static Operator,
    pub(crate) arguments: Box<[Expression]>,
    /// The first slot, if the operator binds variables.
    pub(crate) first_slot: u32,
    pub(crate) prepared: Prepared,
}

/// Work on constant arguments that is done once.
pub(crate) enum Prepared {
    Nothing,
    /// A regular expression.
    Pattern(Pattern),
    /// A sort order of elements.
    Order(ElementOrder),
    /// The percentiles to compute, as fractions.
    Percentiles(Arc<[f64]>),
    /// A script.
    Script(Function),
}

impl Call {
    pub(crate) fn new(operator: &'static Operator, arguments: Vec<Expression>) -> Self {
        Self { operator, arguments: arguments.into(), first_slot: 0, prepared: Prepared::Nothing }
    }

    /// Reads an operator's arguments.
    pub(crate) fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Self> {
        match &operator.form {
            Form::Positional(arity) => {
                let arguments = positional(value, scope)?;
                arity.check(operator.name, arguments.len())?;
                Ok(Self::new(operator, arguments))
            }
            Form::Named(parameters) => Ok(Self::new(operator, parameters.parse(value, scope)?)),
            Form::Constant => Ok(Self::new(operator, vec![Expression::literal(value.to_value())])),
            Form::Special(parse) => parse(operator, value, scope),
        }
    }

    /// The operator's name, for messages.
    pub(crate) fn name(&self) -> &'static str {
        self.operator.name
    }

    /// Evaluates one argument.
    #[inline]
    pub(crate) fn argument<'a>(&'a self, index: usize, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
        self.arguments[index].evaluate(context)
    }

    /// Whether an optional argument was given.
    pub(crate) fn has(&self, index: usize) -> bool {
        self.arguments.get(index).is_some_and(|argument| !argument.is_absent())
    }

    /// Evaluates an optional argument; `None` if it was not given.
    pub(crate) fn optional<'a>(
        &'a self,
        index: usize,
        context: &EvaluationContext<'a>,
    ) -> Result<Option<Evaluated<'a>>> {
        if self.has(index) { self.argument(index, context).map(Some) } else { Ok(None) }
    }

    /// Evaluates an argument with the call's variables bound to `values`, from the first slot on. The result may borrow
    /// from `values`, so it is passed to `take`.
    pub(crate) fn argument_with<'a, T>(
        &'a self,
        index: usize,
        context: &EvaluationContext<'a>,
        values: &[Option<ValueRef<'a>>],
        take: impl FnOnce(Evaluated<'_>) -> Result<T>,
    ) -> Result<T> {
        let binding = self.binding(context, values);
        take(self.argument(index, &context.bound(&binding))?)
    }

    /// Binds the call's variables to `values`.
    pub(crate) fn binding<'b>(
        &self,
        context: &EvaluationContext<'b>,
        values: &'b [Option<ValueRef<'b>>],
    ) -> Binding<'b> {
        Binding { first_slot: self.first_slot, values, outer: context.locals() }
    }

    /// A failure with MongoDB's code; the message begins with the operator's name.
    pub(crate) fn failure(&self, code: i32, message: &str) -> Failure {
        Failure::new(ErrorCode(code), format!("{}{message}", self.operator.name))
    }

    /// Evaluates the first argument; `None` if it is null, missing or undefined, for which most operators return null.
    pub(crate) fn not_null<'a>(&'a self, context: &EvaluationContext<'a>) -> Result<Option<Evaluated<'a>>> {
        let value = self.argument(0, context)?;
        Ok(if value.is_nullish() { None } else { Some(value) })
    }

    /// The first argument as a number; `None` if it is null.
    /// # Errors
    /// 28765 for any other type.
    pub(crate) fn number(&self, context: &EvaluationContext<'_>) -> Result<Option<Number>> {
        let Some(value) = self.not_null(context)? else { return Ok(None) };
        match value.get().and_then(Number::of) {
            Some(number) => Ok(Some(number)),
            None => Err(self.failure(28765, &format!(" only supports numeric types, not {}", value.type_name()))),
        }
    }
}

impl Arity {
    pub(crate) fn check(&self, name: &str, given: usize) -> Result<()> {
        match *self {
            Self::Exactly(count) if given != count => {
                let message = format!("Expression {name} takes exactly {count} arguments. {given} were passed in.");
                Err(Failure::new(ErrorCode(16020), message))
            }
            Self::Conversion if given != 1 => {
                let message = format!("{name} requires a single argument, got {given}");
                Err(Failure::new(ErrorCode(50723), message))
            }
            Self::Between(least, most) if given < least || given > most => {
                let message = format!(
                    "Expression {name} takes at least {least} arguments, and at most {most}, but {given} were passed in."
                );
                Err(Failure::new(ErrorCode(28667), message))
            }
            _ => Ok(()),
        }
    }
}

/// Parses arguments written as an array, or one argument written without an array.
pub(crate) fn positional(value: ValueRef<'_>, scope: &ParseScope) -> Result<Vec<Expression>> {
    match value {
        ValueRef::Array(array) => array.iter().map(|value| Expression::parse(value, scope)).collect(),
        _ => Ok(vec![Expression::parse(value, scope)?]),
    }
}

impl Parameters {
    /// Parses named arguments, in the order of the parameters.
    pub(crate) fn parse(&self, value: ValueRef<'_>, scope: &ParseScope) -> Result<Vec<Expression>> {
        self.read(value)?
            .into_iter()
            .map(|given| given.map_or(Ok(Expression::ABSENT), |v| Expression::parse(v, scope)))
            .collect()
    }

    /// Finds named arguments, in the order of the parameters, without parsing them.
    pub(crate) fn read<'v>(&self, value: ValueRef<'v>) -> Result<Vec<Option<ValueRef<'v>>>> {
        let Some(document) = value.as_document() else {
            return Err(refuse(self.not_an_object, value.kind().alias()));
        };
        let mut given = vec![None; self.names.len()];
        for element in document {
            let Some(index) = self.names.iter().position(|(name, _)| *name == element.name) else {
                return Err(refuse(self.unknown, element.name));
            };
            given[index] = Some(element.value);
        }
        for (value, (_, required)) in given.iter().zip(self.names) {
            if let (None, Some(refusal)) = (value, required) {
                return Err(refuse(*refusal, ""));
            }
        }
        Ok(given)
    }
}
