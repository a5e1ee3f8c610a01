//! Translates a filter for an index with a collation.
//!
//! Bounds on such an index are of values in the form that its keys have ([`StringOrder::in_keys`]); other code of the
//! planner needs no knowledge of collations. An index whose order is not the query's only serves conditions without
//! strings.

use super::asked_paths::asks_for;
use bunko_bson::{StringOrder, Value, order};
use bunko_matcher::planted::{Fault, active};
use bunko_matcher::{Comparison, Condition, ExprComparison, Expression};
use std::borrow::Cow;
use std::sync::Arc;

/// The string orders of an index and of a query.
#[derive(Clone, Copy)]
pub(crate) struct Orders<'o> {
    pub index: &'o StringOrder,
    pub query: &'o StringOrder,
}

/// The expression with values in the form of the index's keys; `None` if it has no condition on `path`, or if the index's
/// order cannot serve it there.
pub(super) fn in_keys<'e>(expression: &'e Expression, path: &str, orders: Orders<'_>) -> Option<Cow<'e, Expression>> {
    let Orders { index, query } = orders;
    if index.is_bytes() && query.is_bytes() {
        return Some(Cow::Borrowed(expression));
    }
    // A long list is not translated for each of the fields that it is not on.
    if !asks_for(expression, path) || !serves(expression, path, orders) {
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
        Expression::OnPath(_, Condition::Compare(_, value)) => fits(value),
        Expression::OnPath(_, Condition::In { values, regexes }) => {
            values.iter().all(fits) && (regexes.is_empty() || index.is_bytes())
        }
        Expression::OnPath(_, Condition::Regex(_)) => index.is_bytes() || active(Fault::PatternsCollated),
        Expression::Expr(expr) => {
            // The strings inside a document need not be in the order of their keys.
            let is_ordered = |own: &ExprComparison| {
                own.op == Comparison::Eq || index.is_bytes() || !matches!(own.value, Value::Document(_))
            };
            let mut own = expr.implied().iter().filter(|implied| implied.path == path);
            own.all(|own| fits(&own.value) && is_ordered(own))
        }
        other => other.parts().iter().all(|part| serves(part, path, orders)),
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
        Expression::OnPath(path, condition) => {
            let condition = match condition {
                Condition::Compare(op, value) => Condition::Compare(*op, index.in_keys(value.as_ref())),
                Condition::In { values, regexes } => Condition::In {
                    values: Arc::new(in_order(values.iter().map(|value| index.in_keys(value.as_ref())).collect())),
                    regexes: regexes.clone(),
                },
                Condition::ElemMatchObject(filter) => Condition::ElemMatchObject(one(filter)),
                Condition::ElemMatchValue(condition) => Condition::ElemMatchValue(one(condition)),
                other => other.clone(),
            };
            Expression::OnPath(path.clone(), condition)
        }
        Expression::And(children) => Expression::And(all(children)),
        Expression::Or(children) => Expression::Or(all(children)),
        Expression::Nor(children) => Expression::Nor(all(children)),
        Expression::Not(child) => Expression::Not(one(child)),
        Expression::Expr(expr) => Expression::Expr(expr.with_implied_values(|value| index.in_keys(value.as_ref()))),
        other => other.clone(),
    }
}
