//! Expressions: parsed once, evaluated per document.

use crate::call::Call;
use crate::made::{self, MadeArray, MadeDocument};
use crate::number::{Number, Operand};
use crate::path_values::{PathSlot, PathValue};
use crate::variables::{EvaluationContext, Variable};
use crate::{Dependencies, Evaluated, FieldPath, OtherFields, ParseScope, PathChange, PathChanges};
use bunko_bson::{Value, ValueRef};
use bunko_errors::Result;

/// An aggregation expression. Source: MongoDB manual, "Aggregation Expressions".
pub struct Expression {
    pub(crate) node: Node,
}

/// The kinds of expressions.
pub(crate) enum Node {
    /// A constant; documents and arrays of constants are constants too.
    Literal(Value),
    /// An optional argument that was not given.
    Absent,
    /// `$a.b`, `$$name`, `$$name.a.b`.
    Path {
        variable: Variable,
        path: FieldPath,
        /// The slot of its value, if the path is looked up together with other paths.
        slot: Option<PathSlot>,
    },
    /// A document some of whose values are computed.
    Document(Vec<(String, Expression)>),
    /// An array some of whose elements are computed.
    Array(Vec<Expression>),
    /// An operator.
    Call(Call),
}

impl Expression {
    /// Makes a constant; nothing inside is read as an expression.
    /// # Errors
    /// 16493 for a string of 16 MiB or more.
    pub(crate) fn constant(value: ValueRef<'_>, scope: &ParseScope) -> Result<Self> {
        if let ValueRef::String(text) = value {
            made::check_string_length(text.len())?;
        }
        scope.work(made::steps(value))?;
        Ok(Self::literal(value.to_value()))
    }

    /// Makes an expression with a constant value.
    pub fn literal(value: Value) -> Self {
        Self { node: Node::Literal(value) }
    }

    /// An optional argument that was not given.
    pub(crate) const ABSENT: Self = Self { node: Node::Absent };

    /// Makes an expression of an operator with its arguments.
    pub(crate) fn call(call: Call) -> Self {
        Self { node: Node::Call(call) }
    }

    /// Whether this is an optional argument that was not given.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.node, Node::Absent)
    }

    /// The value, if it is constant.
    pub fn as_literal(&self) -> Option<ValueRef<'_>> {
        if let Node::Literal(value) = &self.node { Some(value.as_ref()) } else { None }
    }

    /// Splits a document with one field, which is not constant, into the field's name and value. Returns any other
    /// expression unchanged, without a name.
    #[must_use]
    pub fn without_only_name(mut self) -> (Option<String>, Self) {
        if let Node::Document(fields) = &mut self.node
            && fields.len() == 1
            && let Some((name, value)) = fields.pop()
        {
            return (Some(name), value);
        }
        (None, self)
    }

    /// Whether the expression is `{$meta: "sortKey"}`.
    pub(crate) fn is_sort_key(&self) -> bool {
        match &self.node {
            Node::Call(call) if call.operator.name == "$meta" => {
                call.arguments[0].as_literal().and_then(ValueRef::as_str) == Some("sortKey")
            }
            _ => false,
        }
    }

    /// The dotted path, if the expression is just the value of a field.
    pub fn as_field(&self) -> Option<String> {
        match &self.node {
            Node::Path { variable: Variable::Root, path, .. } if !path.is_empty() => Some(path.dotted()),
            _ => None,
        }
    }

    /// The fields of a document that the expression makes, each with the dotted path whose value it gets; `None` for a
    /// field with any other value. `None` if it makes no document, or a constant one.
    pub fn as_document(&self) -> Option<Vec<(String, Option<String>)>> {
        let Node::Document(fields) = &self.node else { return None };
        Some(fields.iter().map(|(name, value)| (name.clone(), value.as_field())).collect())
    }

    /// Whether it fails for no document: it is a path, a constant, or a document or array of these. The limits on the bytes
    /// and the nesting of a value protect memory, and are no matter of a value that is not made.
    pub(crate) fn cannot_fail(&self) -> bool {
        match &self.node {
            Node::Literal(_) | Node::Absent | Node::Path { .. } => true,
            Node::Document(fields) => fields.iter().all(|(_, value)| value.cannot_fail()),
            Node::Array(elements) => elements.iter().all(Self::cannot_fail),
            Node::Call(_) => false,
        }
    }

    /// How a document's paths are treated if the expression's value replaces the document; `None` if that is not known,
    /// or if the value may be no document.
    pub fn path_changes(&self) -> Option<PathChanges> {
        match &self.node {
            Node::Path { variable: Variable::Root, path, .. } if path.is_empty() => Some(PathChanges::none()),
            Node::Document(_) | Node::Literal(Value::Document(_)) => {
                let mut changes = PathChanges { named: Vec::new(), others: OtherFields::Dropped };
                self.merge_into(&mut changes)?;
                Some(changes)
            }
            Node::Call(call) if call.operator.name == "$mergeObjects" => {
                let mut changes = PathChanges { named: Vec::new(), others: OtherFields::Dropped };
                call.arguments.iter().try_for_each(|argument| argument.merge_into(&mut changes))?;
                Some(changes)
            }
            _ => None,
        }
    }

    /// Adds the fields of a later argument of `$mergeObjects`. A field that is missing there keeps its earlier value.
    fn merge_into(&self, changes: &mut PathChanges) -> Option<()> {
        let mut set = |name: &str, source: Option<String>| {
            let is_first = changes.others == OtherFields::Dropped && changes.named.iter().all(|(one, _)| one != name);
            changes.named.retain(|(one, _)| one != name);
            let change = source.filter(|_| is_first).map_or(PathChange::Computed, PathChange::CopyOf);
            changes.named.push((name.to_owned(), change));
        };
        match &self.node {
            Node::Document(fields) => fields.iter().for_each(|(name, value)| set(name, value.as_field())),
            Node::Literal(Value::Document(constant)) => {
                constant.as_ref().iter().for_each(|field| set(field.name, None));
            }
            Node::Path { variable: Variable::Root, path, .. } if path.is_empty() => {
                changes.named.iter_mut().for_each(|(_, change)| *change = PathChange::Computed);
                changes.others = OtherFields::Kept;
            }
            _ => return None,
        }
        Some(())
    }

    /// The value for one document. A borrowed value lives as long as both the expression and the document.
    /// # Errors
    /// Errors of its operators: wrong types, division by zero, and so on.
    #[inline]
    pub fn evaluate<'a>(&'a self, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
        match self.found(context) {
            PathValue::Found(value) => Ok(value.value().into()),
            PathValue::Missing => Ok(Evaluated::Missing),
            PathValue::Unknown => self.evaluate_node(context),
        }
    }

    /// Evaluates to an operand of an operator on numbers.
    /// # Errors
    /// As [`Self::evaluate`].
    #[inline]
    pub fn operand<'a>(&'a self, context: &EvaluationContext<'a>) -> Result<Operand<'a>> {
        let value = match self.found(context) {
            PathValue::Found(value) => match Number::of_encoded(value) {
                Some(number) => return Ok(Operand::Number(number)),
                None => value.value().into(),
            },
            PathValue::Missing => Evaluated::Missing,
            PathValue::Unknown => self.evaluate_node(context)?,
        };
        match value.get().and_then(Number::of) {
            Some(number) => Ok(Operand::Number(number)),
            None => Ok(Operand::Other(value)),
        }
    }

    /// The value that was found for the expression's slot; unknown if the expression is no path, or has no slot.
    #[inline]
    fn found<'a>(&self, context: &EvaluationContext<'a>) -> PathValue<'a> {
        match &self.node {
            Node::Path { slot: Some(slot), .. } => context.found_at(*slot),
            _ => PathValue::Unknown,
        }
    }

    fn evaluate_node<'a>(&'a self, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
        match &self.node {
            Node::Literal(value) => Ok(Evaluated::Ref(value.as_ref())),
            Node::Absent => Ok(Evaluated::Missing),
            Node::Path { variable: Variable::Root, path, .. } if !path.is_empty() => {
                let root = context.root();
                context.operation().work(1 + root.len_bytes() / 256)?;
                match context.stand_in().and_then(|stand_in| stand_in.at(path)) {
                    Some(value) => Ok(value),
                    None => Ok(path.of(root)),
                }
            }
            Node::Path { variable, path, .. } => match context.variable(*variable) {
                None => Ok(Evaluated::Missing),
                Some(value) => {
                    context.operation().work(path.steps(value))?;
                    Ok(path.follow(value))
                }
            },
            Node::Call(call) => {
                context.operation().work(1)?;
                (call.operator.evaluate)(call, context)
            }
            Node::Document(fields) => evaluate_document(fields, context),
            Node::Array(elements) => evaluate_array(elements, context),
        }
    }

    /// Whether the expression reads the variable `wanted`.
    pub(crate) fn reads(&self, wanted: Variable) -> bool {
        match &self.node {
            Node::Literal(_) | Node::Absent => false,
            Node::Path { variable, .. } => *variable == wanted,
            Node::Document(fields) => fields.iter().any(|(_, expression)| expression.reads(wanted)),
            Node::Array(elements) => elements.iter().any(|element| element.reads(wanted)),
            Node::Call(call) => call.arguments.iter().any(|argument| argument.reads(wanted)),
        }
    }

    /// Adds the fields that the expression reads.
    pub fn add_dependencies(&self, dependencies: &mut Dependencies) {
        match &self.node {
            Node::Literal(_) | Node::Absent => {}
            Node::Path { variable: Variable::Root, path, .. } if path.is_empty() => dependencies.add_all(),
            Node::Path { variable: Variable::Root, path, .. } => dependencies.add(path.dotted()),
            Node::Path { .. } => {}
            Node::Document(fields) => {
                for (_, expression) in fields {
                    expression.add_dependencies(dependencies);
                }
            }
            Node::Array(elements) => elements.iter().for_each(|element| element.add_dependencies(dependencies)),
            Node::Call(call) => call.arguments.iter().for_each(|argument| argument.add_dependencies(dependencies)),
        }
    }
}

fn evaluate_document<'a>(fields: &'a [(String, Expression)], context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let mut document = MadeDocument::new("object", context);
    for (name, expression) in fields {
        if let Some(value) = expression.evaluate(context)?.get() {
            document.append(name, value)?;
        }
    }
    Ok(document.finish())
}

fn evaluate_array<'a>(elements: &'a [Expression], context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let mut array = MadeArray::new("array", context);
    for element in elements {
        array.push(element.evaluate(context)?.or_null())?;
    }
    Ok(array.finish())
}
