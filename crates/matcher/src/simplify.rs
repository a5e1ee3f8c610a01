//! Makes the filters of plans smaller by logic, so that a plan reads fewer keys and tests fewer conditions.
//!
//! - `P and Q` is `P` if `P` implies `Q`, and `P or Q` is then `Q`: this drops repeated conditions, ranges within ranges,
//!   and alternatives that repeat a condition beside them.
//! - `P and not Q` never holds if `P` implies `Q`, and `Q or not P` always does.
//! - `not (A nor B)` is `A or B`, and a `$nor` inside a `$nor` with one condition is that condition.
//! - `not (A and B)` is `not A or not B`, if the conditions are ranges on different paths: an index serves each.
//! - Equalities and lists at one path, of which one must hold, are one list.
//!
//! **Proof.** The rules are those of logic for whole conditions, so arrays on a path do not matter: `{a: {$gt: 5}}` says
//! that some element is greater than 5, and then some element is greater than 3. Nothing is concluded from two conditions
//! on one path together: different elements may satisfy `{a: {$gt: 5}}` and `{a: {$lt: 3}}`. [`Implication`] finds what a
//! condition implies, without regard to other conditions.
//!
//! **Errors.** Only lists of conditions that look at values change. An `$expr` beside them may fail, and whether it is
//! evaluated depends on the conditions before it.
//!
//! The position that a filter finds for `$` depends on the conditions as they were sent, so a filter that is asked for it
//! stays as it is.

use crate::comparison::Comparison;
use crate::constants;
use crate::expression::{Condition, Expression};
use crate::filter::Filter;
use crate::implication::Implication;
use crate::operands::Regex;
use crate::path::Path;
use crate::planted::{Fault, active};
use bunko_bson::{StringOrder, Value, order};
use std::collections::HashMap;
use std::sync::Arc;

/// Longer lists are not searched for pairs of conditions.
const CHILDREN_MAX: usize = 32;

/// Whether all conditions of a list must hold, or one is enough.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Junction {
    And,
    Or,
}

impl Filter {
    /// Drops conditions that others decide. The filter matches the same documents, but its positions mean nothing.
    pub fn simplify(&mut self) {
        self.replace_root(simplified);
    }
}

/// Returns a condition that holds for the same documents and may be smaller.
fn simplified(root: Expression, strings: &StringOrder) -> Expression {
    // Most filters are conditions on different paths, and stay as they are.
    if is_simple(&root) {
        return root;
    }
    constants::folded(Simplifier { implication: Implication::within(strings), strings }.simplified(root))
}

/// Whether no rule can apply: one condition, or a few on different paths.
fn is_simple(root: &Expression) -> bool {
    let Expression::And(children) = root else { return root.path().is_some() };
    children.len() <= 8
        && children.iter().enumerate().all(|(position, child)| {
            child.path().is_some_and(|path| children[..position].iter().all(|earlier| earlier.path() != Some(path)))
        })
}

struct Simplifier<'s> {
    implication: Implication<'s>,
    strings: &'s StringOrder,
}

impl Simplifier<'_> {
    fn simplified(&mut self, expression: Expression) -> Expression {
        match expression {
            Expression::And(children) => self.list(children, Junction::And),
            Expression::Or(children) => self.list(children, Junction::Or),
            Expression::Nor(children) => opposite(self.list(children, Junction::Or)),
            Expression::Not(child) => opposite(self.simplified(*child)),
            other => other,
        }
    }

    fn list(&mut self, children: Vec<Expression>, junction: Junction) -> Expression {
        let children = children.into_iter().map(|child| self.simplified(child)).collect();
        let mut children = match rebuilt(children, junction) {
            Expression::And(children) if junction == Junction::And => children,
            Expression::Or(children) if junction == Junction::Or => children,
            other => return other,
        };
        if !children.iter().all(Expression::looks_at_values_only) {
            return rebuilt(children, junction);
        }
        if junction == Junction::Or {
            children = self.with_lists(children);
        }
        if children.len() <= CHILDREN_MAX {
            if self.is_decided(&children, junction) {
                return if junction == Junction::And { Expression::AlwaysFalse } else { Expression::AlwaysTrue };
            }
            self.drop_implied(&mut children, junction);
        }
        rebuilt(children, junction)
    }

    /// Whether two conditions contradict each other, or one of them always holds.
    fn is_decided(&mut self, children: &[Expression], junction: Junction) -> bool {
        children.iter().any(|negation| {
            let negated = match negation {
                Expression::Not(child) => std::slice::from_ref(&**child),
                // A `$nor` fails if any of its conditions holds, and holds only if all of them fail.
                Expression::Nor(children) if junction == Junction::And || active(Fault::NorDecidesAlternatives) => {
                    children
                }
                _ => return false,
            };
            children.iter().any(|other| {
                negated.iter().any(|negated| match junction {
                    Junction::And => self.implies(other, negated),
                    Junction::Or => self.implies(negated, other),
                })
            })
        })
    }

    /// Drops the conditions that follow from another one, or alternatives from which another one follows.
    fn drop_implied(&mut self, children: &mut Vec<Expression>, junction: Junction) {
        let mut position = 0;
        while position < children.len() {
            let own = &children[position];
            let is_dropped = children.iter().enumerate().any(|(number, other)| {
                number != position
                    && match junction {
                        // A sparse index serves only a filter that says that its field exists.
                        Junction::And if matches!(own, Expression::OnPath(_, Condition::Exists)) => is_same(other, own),
                        Junction::And if active(Fault::FollowingStays) => self.implies(own, other),
                        Junction::And => self.implies(other, own),
                        Junction::Or if active(Fault::NarrowerAlternativeStays) => self.implies(other, own),
                        Junction::Or => self.implies(own, other),
                    }
            });
            if is_dropped {
                children.remove(position);
            } else {
                position += 1;
            }
        }
    }

    fn implies(&mut self, premise: &Expression, conclusion: &Expression) -> bool {
        is_same(premise, conclusion) || self.implication.of_one(premise, conclusion)
    }

    /// Joins alternatives: the equalities and lists at one path become one list.
    fn with_lists(&self, children: Vec<Expression>) -> Vec<Expression> {
        let mut counts: HashMap<&Path, usize> = HashMap::new();
        for path in children.iter().filter_map(path_of_list) {
            *counts.entry(path).or_default() += 1;
        }
        counts.retain(|_, count| *count > 1);
        let mut lists: HashMap<Path, (Vec<Value>, Vec<Regex>)> =
            counts.into_keys().map(|path| (path.clone(), Default::default())).collect();
        if lists.is_empty() {
            return children;
        }
        let mut kept = Vec::with_capacity(children.len());
        for child in children {
            let list = path_of_list(&child).and_then(|path| lists.get_mut(path));
            match (child, list) {
                (Expression::OnPath(_, Condition::Compare(_, value)), Some((values, _))) => values.push(value),
                (Expression::OnPath(_, Condition::In { values: own, regexes: patterns }), Some((values, regexes))) => {
                    values.extend(Arc::unwrap_or_clone(own));
                    regexes.extend(patterns);
                }
                (child, _) => kept.push(child),
            }
        }
        kept.extend(lists.into_iter().map(|(path, (values, regexes))| self.list_at(path, values, regexes)));
        kept
    }

    fn list_at(&self, path: Path, mut values: Vec<Value>, regexes: Vec<Regex>) -> Expression {
        values.sort_by(|one, other| self.strings.compare(one.as_ref(), other.as_ref()));
        values.dedup_by(|one, other| self.strings.equal(one.as_ref(), other.as_ref()));
        Expression::OnPath(path, Condition::one_of(values, regexes))
    }
}

fn rebuilt(children: Vec<Expression>, junction: Junction) -> Expression {
    match junction {
        Junction::And => Expression::and(children),
        Junction::Or => Expression::or(children),
    }
}

/// Returns the opposite of a condition, written with as few negations as possible.
fn opposite(expression: Expression) -> Expression {
    match expression {
        Expression::Or(children) => none_of(children),
        Expression::And(children) if is_divided(&children) => {
            let opposites = children.into_iter().map(opposite).collect();
            if active(Fault::OppositesTogether) { Expression::and(opposites) } else { Expression::or(opposites) }
        }
        Expression::Nor(children) => Expression::or(children),
        Expression::AlwaysTrue => Expression::AlwaysFalse,
        Expression::AlwaysFalse => Expression::AlwaysTrue,
        other => Expression::not(other),
    }
}

/// Returns a condition that holds if none of `children` holds.
fn none_of(children: Vec<Expression>) -> Expression {
    let is_divided = |child: &Expression| matches!(child, Expression::And(inner) if is_divided(inner));
    if !children.iter().any(is_divided) || !children.iter().all(Expression::looks_at_values_only) {
        return Expression::nor(children);
    }
    let (divided, mut others): (Vec<_>, Vec<_>) = children.into_iter().partition(is_divided);
    let rest = match others.pop() {
        Some(only) if others.is_empty() => Some(opposite(only)),
        Some(last) => Some(Expression::nor(others.into_iter().chain([last]).collect())),
        None => None,
    };
    Expression::and(rest.into_iter().chain(divided.into_iter().map(opposite)).collect())
}

/// Maximum number of conditions whose opposites become alternatives.
const DIVIDED_MAX: usize = 8;

/// Whether the opposite of the conditions together is written as alternatives: the opposite of each is a range, and
/// they are on different paths. Otherwise alternatives gain nothing: the opposite of an equality is nearly everything,
/// and conditions on one path have bounds together.
fn is_divided(children: &[Expression]) -> bool {
    let path_of_range = |child: &Expression| match child {
        Expression::OnPath(path, Condition::Exists) => Some(path.clone()),
        Expression::OnPath(path, Condition::Compare(op, _)) if *op != Comparison::Eq => Some(path.clone()),
        Expression::Not(inner) => match &**inner {
            Expression::OnPath(path, Condition::Compare(..) | Condition::In { .. }) => Some(path.clone()),
            _ => None,
        },
        _ => None,
    };
    let paths: Option<Vec<Path>> = children.iter().take(DIVIDED_MAX + 1).map(path_of_range).collect();
    paths.is_some_and(|paths| {
        (1..=DIVIDED_MAX).contains(&paths.len())
            && paths.iter().enumerate().all(|(position, path)| !paths[..position].contains(path))
    })
}

/// The path of an equality or a list; `None` for an equality with a regex, which asks for the regex as a value. In a
/// list the regex would be a pattern.
fn path_of_list(expression: &Expression) -> Option<&Path> {
    match expression {
        Expression::OnPath(_, Condition::Compare(_, Value::Regex { .. })) if !active(Fault::PatternJoinsList) => None,
        Expression::OnPath(path, Condition::Compare(Comparison::Eq, _) | Condition::In { .. }) => Some(path),
        _ => None,
    }
}

/// Whether two expressions are written alike, so that they hold for the same documents.
fn is_same(one: &Expression, other: &Expression) -> bool {
    use Expression::{And, Nor, Not, OnPath, Or};
    match (one, other) {
        (And(one), And(other)) | (Or(one), Or(other)) | (Nor(one), Nor(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Not(one), Not(other)) => is_same(one, other),
        (OnPath(path, one), OnPath(other_path, other)) => path == other_path && is_same_condition(one, other),
        _ => false,
    }
}

/// As [`is_same`], for conditions on one path.
fn is_same_condition(one: &Condition, other: &Condition) -> bool {
    use Condition::{Compare, ElemMatchObject, ElemMatchValue, Exists, In, Mod, Size, Type};
    let equal = |one: &Value, other: &Value| order::equal(one.as_ref(), other.as_ref());
    let alike = |one: &Regex, other: &Regex| one.pattern() == other.pattern() && one.options() == other.options();
    match (one, other) {
        (Compare(op, value), Compare(other_op, other)) => op == other_op && equal(value, other),
        (In { values, regexes }, In { values: others, regexes: other_regexes }) => {
            values.len() == others.len()
                && values.iter().zip(others.iter()).all(|(one, other)| equal(one, other))
                && regexes.len() == other_regexes.len()
                && regexes.iter().zip(other_regexes).all(|(one, other)| alike(one, other))
        }
        (Condition::Regex(regex), Condition::Regex(other)) => alike(regex, other),
        (Exists, Exists) => true,
        (Type(types), Type(others)) => types.is_within(others) && others.is_within(types),
        (Size(size), Size(other)) => size == other,
        (Mod { divisor, remainder }, Mod { divisor: other, remainder: other_remainder }) => {
            divisor == other && remainder == other_remainder
        }
        (ElemMatchObject(one), ElemMatchObject(other)) | (ElemMatchValue(one), ElemMatchValue(other)) => {
            is_same(one, other)
        }
        _ => false,
    }
}
