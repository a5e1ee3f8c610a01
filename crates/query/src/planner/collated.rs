//! Translates a filter for an index with a collation.
//!
//! Bounds on such an index are of values in the form that its keys have ([`StringOrder::in_keys`]); other code of the
//! planner needs no knowledge of collations. An index whose order is not the query's only serves conditions without
//! strings.

use bunko_bson::{StringOrder, Value, order};
use bunko_matcher::planted::{Fault, active};
use bunko_matcher::{Comparison, ExprComparison, Expression};
use std::borrow::Cow;
use std::sync::Arc;

/// The string orders of an index and of a query.
#[derive(Clone, Copy)]
pub(crate) struct Orders<'o> {
    pub index: &'o StringOrder,
    pub query: &'o StringOrder,
}

/// The expression with values in the form of the index's keys; `None` if the index's order cannot serve it at `path`.
pub(super) fn in_keys<'e>(expression: &'e Expression, path: &str, orders: Orders<'_>) -> Option<Cow<'e, Expression>> {
    let Orders { index, query } = orders;
    if index.is_bytes() && query.is_bytes() {
        return Some(Cow::Borrowed(expression));
    }
    if !serves(expression, path, orders) {
        return None;
    }
    Some(if index.is_bytes() { Cow::Borrowed(expression) } else { Cow::Owned(translated(expression, index)) })
}

fn serves(expression: &Expression, path: &str, orders: Orders<'_>) -> bool {
    let index = orders.index;
    let fits = |value: &Value| {
        index == orders.query || active(Fault::OrderOfStringsIgnored) || !StringOrder::holds_strings(value.as_ref())
    };
    match expression {
        Expression::Compare { value, .. } => fits(value),
        Expression::In { values, regexes, .. } => values.iter().all(fits) && (regexes.is_empty() || index.is_bytes()),
        Expression::Regex { .. } => index.is_bytes() || active(Fault::PatternsCollated),
        Expression::And(children) | Expression::Or(children) | Expression::Nor(children) => {
            children.iter().all(|child| serves(child, path, orders))
        }
        Expression::Not(child)
        | Expression::ElemMatchObject { filter: child, .. }
        | Expression::ElemMatchValue { condition: child, .. } => serves(child, path, orders),
        Expression::Expr(expr) => {
            // The strings inside a document need not be in the order of their keys.
            let is_ordered = |own: &ExprComparison| {
                own.op == Comparison::Eq || index.is_bytes() || !matches!(own.value, Value::Document(_))
            };
            let mut own = expr.implied().iter().filter(|implied| implied.path == path);
            own.all(|own| fits(&own.value) && is_ordered(own))
        }
        _ => true,
    }
}

/// Key values in key order, without duplicates. Inside documents and arrays, the order of strings may differ from the
/// order of their keys.
fn in_order(mut values: Vec<Value>) -> Vec<Value> {
    values.sort_by(|one, other| order::compare(one.as_ref(), other.as_ref()));
    values.dedup_by(|one, other| order::equal(one.as_ref(), other.as_ref()));
    values
}

fn translated(expression: &Expression, index: &StringOrder) -> Expression {
    let all = |children: &[Expression]| children.iter().map(|child| translated(child, index)).collect();
    let one = |child: &Expression| Box::new(translated(child, index));
    match expression {
        Expression::Compare { path, op, value } => {
            Expression::Compare { path: path.clone(), op: *op, value: index.in_keys(value.as_ref()) }
        }
        Expression::In { path, values, regexes } => Expression::In {
            path: path.clone(),
            values: Arc::new(in_order(values.iter().map(|value| index.in_keys(value.as_ref())).collect())),
            regexes: regexes.clone(),
        },
        Expression::And(children) => Expression::And(all(children)),
        Expression::Or(children) => Expression::Or(all(children)),
        Expression::Nor(children) => Expression::Nor(all(children)),
        Expression::Not(child) => Expression::Not(one(child)),
        Expression::ElemMatchObject { path, filter } => {
            Expression::ElemMatchObject { path: path.clone(), filter: one(filter) }
        }
        Expression::ElemMatchValue { path, condition } => {
            Expression::ElemMatchValue { path: path.clone(), condition: one(condition) }
        }
        Expression::Expr(expr) => Expression::Expr(expr.with_implied_values(|value| index.in_keys(value.as_ref()))),
        other => other.clone(),
    }
}
