//! Constant folding: an expression of constants is evaluated once, while it is parsed.
//!
//! MongoDB parses a whole command before it evaluates the constants, and then reports their failures even where there
//! is no document to evaluate them for. So folding only notes a failure, and the caller that has parsed the whole
//! command checks for it.

use crate::call::{Call, Operator, Strings};
use crate::expression::Node;
use crate::variables::{EvaluationContext, ParseScope, Variable, Variables};
use crate::{Evaluated, Expression};
use bunko_bson::{DocumentRef, StringOrder, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;

/// Largest folded value, in bytes. A larger value is evaluated each time, so that a plan's memory stays bounded.
const FOLDED_BYTES_MAX: usize = 1024 * 1024;

/// How much of an operator may be folded.
enum Rule {
    /// The whole operator, if all arguments are constant.
    Whole,
    /// Nothing: the operator's value differs each time, or depends on variables that the operator binds, or MongoDB
    /// does not fold it.
    Nothing,
    /// Also leading constants: the operator combines its arguments from the left.
    Front,
    /// Also adjacent constants.
    Neighbours,
    /// Also constants at any position: their order does not matter. They are moved last.
    Anywhere,
    /// A constant of this truth value decides the result, at any position; other constants are dropped.
    Junction(Decisive),
    /// A constant condition selects a branch.
    Condition,
    Switch,
    IfNull,
}

/// The truth value of an argument that decides a junction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Decisive {
    False,
    True,
}

/// The rule of an operator. Operators without an arm are folded as a whole.
/// Source: `explain` of MongoDB 8.2 for pipelines with constants.
fn rule(operator: &str) -> Rule {
    match operator {
        "$_internalJsEmit" | "$filter" | "$function" | "$getField" | "$let" | "$map" | "$meta" | "$rand"
        | "$reduce" | "$setField" | "$sortArray" | "$unsetField" => Rule::Nothing,
        "$add" | "$multiply" => Rule::Front,
        "$concat" | "$concatArrays" => Rule::Neighbours,
        "$setIntersection" | "$setUnion" => Rule::Anywhere,
        "$and" => Rule::Junction(Decisive::False),
        "$or" => Rule::Junction(Decisive::True),
        "$cond" => Rule::Condition,
        "$switch" => Rule::Switch,
        "$ifNull" => Rule::IfNull,
        _ => Rule::Whole,
    }
}

impl Expression {
    /// The value of an argument that must be constant: it may read variables of `let`, which are known when the command
    /// is parsed, but neither documents nor system variables. A missing value counts as null. `None` if the argument is
    /// not constant.
    /// # Errors
    /// Errors of its operators.
    pub fn constant_value(&self, scope: &ParseScope) -> Result<Option<Value>> {
        if let Some(value) = self.as_literal() {
            return Ok(Some(value.to_value()));
        }
        let Some(variables) = scope.known().filter(|_| self.is_constant_of(&|variable| !variable.is_of_system()))
        else {
            return Ok(None);
        };
        let unlimited = OperationContext::unlimited();
        let operation = scope.operation().unwrap_or(&unlimited);
        // The expression reads no time.
        let context = EvaluationContext::new(DocumentRef::EMPTY, variables, 0, operation);
        let value = self.evaluate(&context.with_strings(scope.strings()))?.into_value();
        Ok(Some(value.unwrap_or(Value::Null)))
    }

    /// Whether the expression reads no document and no variable that an operator binds, and MongoDB folds its
    /// operators.
    pub fn is_constant(&self) -> bool {
        self.is_constant_of(&|_| true)
    }

    /// As [`Self::is_constant`], but the expression may only read variables that `may_read` accepts.
    fn is_constant_of(&self, may_read: &impl Fn(Variable) -> bool) -> bool {
        let is_constant = |part: &Self| part.is_constant_of(may_read);
        match &self.node {
            Node::Literal(_) | Node::Absent => true,
            Node::Path { variable: Variable::Root | Variable::Local(_) | Variable::Decision(_), .. } => false,
            Node::Path { variable, .. } => may_read(*variable),
            Node::Document(fields) => fields.iter().all(|(_, expression)| is_constant(expression)),
            Node::Array(elements) => elements.iter().all(is_constant),
            Node::Call(call) => {
                !matches!(rule(call.operator.name), Rule::Nothing) && call.arguments.iter().all(is_constant)
            }
        }
    }
}

/// The call, or its value if its arguments are constant.
/// # Errors
/// Errors of counting work. A failure of the operator itself is only noted.
pub(crate) fn folded(mut call: Call, scope: &ParseScope) -> Result<Expression> {
    match rule(call.operator.name) {
        Rule::Nothing => return Ok(Expression::call(call)),
        Rule::Condition => return Ok(condition(call)),
        Rule::Switch => return Ok(switch(call, scope)),
        Rule::IfNull => return Ok(if_null(call)),
        Rule::Junction(decisive) => return Ok(junction(call, decisive)),
        _ if call.arguments.iter().all(is_settled) => {}
        Rule::Whole => return Ok(Expression::call(call)),
        Rule::Front => {
            let mut front = std::mem::take(&mut call.arguments).into_vec();
            let behind = front.split_off(front.iter().take_while(|argument| is_settled(argument)).count());
            let mut arguments = folded_run(call.operator, front, scope)?;
            arguments.extend(behind);
            call.arguments = arguments.into();
            return Ok(Expression::call(call));
        }
        Rule::Neighbours => {
            fold_runs(&mut call, scope)?;
            return Ok(Expression::call(call));
        }
        Rule::Anywhere => {
            // Stable: the other arguments keep their order.
            call.arguments.sort_by_key(is_settled);
            fold_runs(&mut call, scope)?;
            return Ok(Expression::call(call));
        }
    }
    Ok(value(&call, scope)?.map_or_else(|| Expression::call(call), Expression::literal))
}

/// Whether the argument is a constant, or was not given.
fn is_settled(argument: &Expression) -> bool {
    argument.is_absent() || argument.as_literal().is_some()
}

/// The truth value of a constant; `None` for other expressions.
fn truth(argument: &Expression) -> Option<bool> {
    argument.as_literal().map(|value| Evaluated::Ref(value).is_true())
}

/// The value of a call with constant arguments; `None` if it is missing or very large, or if the call fails.
fn value(call: &Call, scope: &ParseScope) -> Result<Option<Value>> {
    let unlimited;
    let operation = match scope.operation() {
        Some(operation) => operation,
        None => {
            unlimited = OperationContext::unlimited();
            &*unlimited
        }
    };
    let variables = Variables::default();
    let strings = match call.operator.strings {
        Strings::Collated => scope.strings(),
        Strings::AsBytes => StringOrder::BYTES,
    };
    let context = EvaluationContext::new(DocumentRef::EMPTY, &variables, 0, operation).with_strings(strings);
    operation.work(1)?;
    match (call.operator.evaluate)(call, &context) {
        Ok(evaluated) => Ok(evaluated.into_value().filter(|value| value.as_ref().content_bytes() <= FOLDED_BYTES_MAX)),
        Err(failure) if failure.is_too_long() => Err(failure),
        Err(failure) => {
            // An interrupted operation fails now; a failure of the call itself is only noted.
            operation.check()?;
            scope.constant_failure().note(failure);
            Ok(None)
        }
    }
}

/// Replaces adjacent constants by one constant.
fn fold_runs(call: &mut Call, scope: &ParseScope) -> Result<()> {
    let mut arguments = Vec::with_capacity(call.arguments.len());
    let mut run = Vec::new();
    for argument in std::mem::take(&mut call.arguments) {
        if is_settled(&argument) {
            run.push(argument);
            continue;
        }
        arguments.extend(folded_run(call.operator, std::mem::take(&mut run), scope)?);
        arguments.push(argument);
    }
    arguments.extend(folded_run(call.operator, run, scope)?);
    call.arguments = arguments.into();
    Ok(())
}

/// Evaluates a run of adjacent constants. Returns the one constant, or the run itself if it cannot be folded.
fn folded_run(operator: &'static Operator, run: Vec<Expression>, scope: &ParseScope) -> Result<Vec<Expression>> {
    if run.len() < 2 {
        return Ok(run);
    }
    let run = Call::new(operator, run);
    Ok(value(&run, scope)?.map_or_else(|| run.arguments.into_vec(), |value| vec![Expression::literal(value)]))
}

/// `$and` and `$or`: constants that do not decide the result are dropped.
fn junction(mut call: Call, decisive: Decisive) -> Expression {
    let decisive = decisive == Decisive::True;
    if call.arguments.iter().any(|argument| truth(argument) == Some(decisive)) {
        return Expression::literal(Value::Boolean(decisive));
    }
    let mut arguments = std::mem::take(&mut call.arguments).into_vec();
    arguments.retain(|argument| truth(argument).is_none());
    if arguments.is_empty() {
        return Expression::literal(Value::Boolean(!decisive));
    }
    call.arguments = arguments.into();
    Expression::call(call)
}

/// `$cond`. As on MongoDB, the branch not taken has been parsed too, and its failure noted.
fn condition(call: Call) -> Expression {
    let Some(truth) = call.arguments.first().and_then(truth) else { return Expression::call(call) };
    let chosen = call.arguments.into_iter().nth(if truth { 1 } else { 2 });
    chosen.unwrap_or(Expression::ABSENT)
}

/// `$switch`: a case that is always false is dropped; a case that is always true becomes the default. No remaining case
/// and no default is a failure.
fn switch(mut call: Call, scope: &ParseScope) -> Expression {
    let mut given = std::mem::take(&mut call.arguments).into_vec();
    let mut default = given.pop().unwrap_or(Expression::ABSENT);
    let mut branches = Vec::new();
    let mut given = given.into_iter();
    while let (Some(case), Some(then)) = (given.next(), given.next()) {
        match truth(&case) {
            Some(false) => {}
            Some(true) => {
                default = then;
                break;
            }
            None => branches.extend([case, then]),
        }
    }
    if branches.is_empty() {
        if !default.is_absent() {
            return default;
        }
        let message =
            "Cannot execute a switch statement where all the cases evaluate to false without a default".to_owned();
        scope.constant_failure().note(Failure::new(ErrorCode(40069), message));
    }
    branches.push(default);
    call.arguments = branches.into();
    Expression::call(call)
}

/// `$ifNull`: drops constants that are null, and the arguments after a constant that is not null.
fn if_null(mut call: Call) -> Expression {
    let given = std::mem::take(&mut call.arguments).into_vec();
    let last = given.len().saturating_sub(1);
    let mut arguments = Vec::new();
    for (index, argument) in given.into_iter().enumerate() {
        let is_null = argument.as_literal().map(ValueRef::is_nullish);
        if is_null != Some(true) || index == last {
            arguments.push(argument);
        }
        if is_null == Some(false) {
            break;
        }
    }
    if arguments.len() == 1 {
        return arguments.pop().unwrap_or(Expression::ABSENT);
    }
    call.arguments = arguments.into();
    Expression::call(call)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::{ArrayBuf, DocumentBuf};

    fn constant_failure(source: &DocumentBuf) -> Option<i32> {
        let scope = ParseScope::default();
        Expression::parse(ValueRef::from(source), &scope).expect("parses");
        scope.constant_failure().check("Failed").err().map(|failure| failure.code().0)
    }

    fn call(operator: &str, arguments: &[Value]) -> DocumentBuf {
        DocumentBuf::new().with(operator, &arguments.iter().map(Value::as_ref).collect::<ArrayBuf>())
    }

    fn division_by_zero() -> Value {
        Value::Document(call("$divide", &[Value::Int32(1), Value::Int32(0)]))
    }

    fn text(text: &str) -> Value {
        Value::String(text.to_owned())
    }

    #[test]
    fn constants_that_fail_are_noted() {
        assert_eq!(constant_failure(&call("$add", &[division_by_zero(), text("$x")])), Some(2));
        assert_eq!(constant_failure(&call("$add", &[Value::Int32(1), text("two"), text("$x")])), Some(14));
        assert_eq!(constant_failure(&call("$add", &[text("$x"), Value::Int32(1), text("two")])), None);
        assert_eq!(constant_failure(&call("$divide", &[text("$x"), Value::Int32(0)])), None);
        assert_eq!(constant_failure(&call("$setEquals", &[text("$x"), Value::Int32(0)])), Some(5_887_502));
        assert_eq!(constant_failure(&call("$setEquals", &[text("$x"), text("$y")])), None);
    }

    #[test]
    fn branches_that_are_never_taken_fail_where_mongodb_lets_them() {
        let cond = call("$cond", &[Value::Boolean(true), Value::Int32(1), division_by_zero()]);
        assert_eq!(constant_failure(&cond), Some(2));
        assert_eq!(constant_failure(&call("$ifNull", &[Value::Int32(1), division_by_zero()])), None);
        assert_eq!(constant_failure(&call("$ifNull", &[Value::Null, division_by_zero()])), Some(2));
    }

    #[test]
    fn switches_without_a_way_out_fail() {
        let switch = |case: &Value| {
            let branch = DocumentBuf::new().with("case", case).with("then", 1_i32);
            let branches: ArrayBuf = [ValueRef::from(&branch)].into_iter().collect();
            DocumentBuf::new().with("$switch", &DocumentBuf::new().with("branches", &branches))
        };
        assert_eq!(constant_failure(&switch(&Value::Boolean(false))), Some(40069));
        assert_eq!(constant_failure(&switch(&text("$x"))), None);
    }

    #[test]
    fn large_values_are_not_kept() {
        let range = |end| call("$range", &[Value::Int32(0), Value::Int32(end)]);
        let is_folded = |source: &DocumentBuf| {
            let parsed = Expression::parse(ValueRef::from(source), &ParseScope::default()).expect("parses");
            parsed.as_literal().is_some()
        };
        assert!(is_folded(&range(10)));
        assert!(!is_folded(&range(1_000_000)));
    }
}
