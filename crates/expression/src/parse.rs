//! Reads expressions. Operators read their arguments by [`Expression::parse`], which knows the table of operators.

use crate::expression::{Expression, Node};
use crate::field_path::check_component;
use crate::operators::{self, of_search};
use crate::printed::printed_document;
use crate::{FieldPath, ParseScope};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use std::collections::BTreeSet;

impl Expression {
    /// Reads an expression.
    /// # Errors
    /// `InvalidPipelineOperator` for an unknown operator; MongoDB's codes for wrong arguments, paths and variables.
    pub fn parse(value: ValueRef<'_>, scope: &ParseScope) -> Result<Self> {
        match value {
            ValueRef::String(text) if text.starts_with('$') => parse_path(text, scope),
            ValueRef::Document(document) => parse_document(document, scope),
            ValueRef::Array(array) => parse_array(array, scope),
            _ => Self::constant(value, scope),
        }
    }
}

/// Reads `$a.b`, `$$name` or `$$name.a`.
fn parse_path(text: &str, scope: &ParseScope) -> Result<Expression> {
    let (variable, path) = if let Some(rest) = text.strip_prefix("$$") {
        let (name, path) = rest.split_once('.').map_or((rest, None), |(name, path)| (name, Some(path)));
        if name == "SEARCH_META" && scope.is_builtin(name) {
            return Ok(of_search(path, scope));
        }
        (scope.resolve(name)?, path.map(FieldPath::parse_behind_variable).transpose()?)
    } else {
        let path = &text[1..];
        if path.is_empty() {
            return Err(Failure::new(ErrorCode(16872), "'$' by itself is not a valid FieldPath"));
        }
        (scope.current(), Some(FieldPath::parse(path)?))
    };
    let path = path.unwrap_or_default();
    scope.work(1)?;
    Ok(Expression { node: Node::Path { variable, path, slot: None } })
}

/// Reads an operator or a document of expressions.
fn parse_document(document: DocumentRef<'_>, scope: &ParseScope) -> Result<Expression> {
    let Some(first) = document.first() else {
        return Ok(Expression::literal(Value::Document(DocumentBuf::new())));
    };
    if first.name.starts_with('$') {
        if document.count() > 1 {
            let printed = printed_document(document);
            let message = format!(
                "an expression specification must contain exactly one field, the name of the expression. Found {} fields in {printed}",
                document.count()
            );
            return Err(Failure::new(ErrorCode(15983), message));
        }
        scope.work(1)?;
        return operators::parse(first.name, first.value, scope);
    }
    let mut fields: Vec<(String, Expression)> = Vec::new();
    let mut names = BTreeSet::new();
    for element in document {
        check_component(element.name)?;
        if element.name.contains('.') {
            let message = "FieldPath field names may not contain '.'. Consider using $getField or $setField.";
            return Err(Failure::new(ErrorCode(16412), message));
        }
        if !names.insert(element.name) {
            let message = format!("duplicate field name specified in object literal: {}", printed_document(document));
            return Err(Failure::new(ErrorCode(16406), message));
        }
        fields.push((element.name.to_owned(), Expression::parse(element.value, scope)?));
    }
    if fields.iter().all(|(_, expression)| expression.as_literal().is_some()) {
        // Built anew, because a `$literal` inside was replaced by its value.
        let mut constant = DocumentBuf::new();
        for (name, value) in fields.iter().filter_map(|(name, e)| Some((name, e.as_literal()?))) {
            constant.append(name, value);
        }
        return Ok(Expression::literal(Value::Document(constant)));
    }
    Ok(Expression { node: Node::Document(fields) })
}

fn parse_array(array: ArrayRef<'_>, scope: &ParseScope) -> Result<Expression> {
    let elements = array.iter().map(|value| Expression::parse(value, scope)).collect::<Result<Vec<_>>>()?;
    if elements.iter().all(|element| element.as_literal().is_some()) {
        let constant: ArrayBuf = elements.iter().filter_map(Expression::as_literal).collect();
        return Ok(Expression::literal(Value::Array(constant)));
    }
    Ok(Expression { node: Node::Array(elements) })
}
