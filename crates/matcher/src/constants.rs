//! Removes constant conditions from the filters of plans and stages before planning. A branch of an `$or` that never
//! matches would need an index of its own, and an `$and` with such a condition never matches.
//!
//! MongoDB folds its filters at this point too, after the whole filter is parsed. So a dropped branch may hide an error
//! of its evaluation, but no error of its parsing.

use crate::expression::{Condition, Expression};

/// A filter without its constant conditions. A filter that is constant as a whole becomes [`Expression::AlwaysTrue`],
/// [`Expression::AlwaysFalse`] or the empty filter.
pub(crate) fn folded(root: Expression) -> Expression {
    // Most filters have no constants and stay as they are.
    if holds_constant(&root) { fold(root) } else { root }
}

fn holds_constant(expression: &Expression) -> bool {
    match expression {
        Expression::And(children) | Expression::Or(children) | Expression::Nor(children) => {
            children.iter().any(|child| child.is_empty() || holds_constant(child))
        }
        Expression::Not(child) => child.is_empty() || holds_constant(child),
        other => truth(other).is_some(),
    }
}

fn fold(expression: Expression) -> Expression {
    match expression {
        Expression::And(children) => match undecided(children, false) {
            Some(children) => Expression::and(children),
            None => Expression::AlwaysFalse,
        },
        Expression::Or(children) => match undecided(children, true) {
            Some(children) if children.is_empty() => Expression::AlwaysFalse,
            Some(children) => Expression::or(children),
            None => Expression::AlwaysTrue,
        },
        Expression::Nor(children) => match undecided(children, true) {
            Some(children) if children.is_empty() => Expression::AlwaysTrue,
            Some(children) => Expression::nor(children),
            None => Expression::AlwaysFalse,
        },
        Expression::Not(child) => {
            let child = fold(*child);
            truth_of_folded(&child).map_or_else(|| Expression::not(child), |is_true| constant(!is_true))
        }
        other => truth(&other).map_or(other, constant),
    }
}

/// Folds the children and drops constants; `None` if a child has the truth that decides the whole list.
fn undecided(children: Vec<Expression>, decisive: bool) -> Option<Vec<Expression>> {
    let mut kept = Vec::with_capacity(children.len());
    for child in children {
        let child = fold(child);
        match truth_of_folded(&child) {
            Some(is_true) if is_true == decisive => return None,
            Some(_) => {}
            None => kept.push(child),
        }
    }
    Some(kept)
}

fn constant(is_true: bool) -> Expression {
    if is_true { Expression::AlwaysTrue } else { Expression::AlwaysFalse }
}

/// As [`truth`], for a folded expression. Only the top is looked at, since no constants are inside.
fn truth_of_folded(expression: &Expression) -> Option<bool> {
    match expression {
        Expression::AlwaysTrue => Some(true),
        Expression::AlwaysFalse => Some(false),
        other => other.is_empty().then_some(true),
    }
}

/// The truth of an expression for every document; `None` if it depends on the document.
fn truth(expression: &Expression) -> Option<bool> {
    match expression {
        Expression::AlwaysTrue => Some(true),
        Expression::AlwaysFalse => Some(false),
        Expression::OnPath(_, Condition::In { values, regexes }) if values.is_empty() && regexes.is_empty() => {
            Some(false)
        }
        Expression::Expr(expr) => expr.predicate.constant(),
        Expression::And(children) => truth_of_list(children, false),
        Expression::Or(children) => truth_of_list(children, true),
        Expression::Nor(children) => truth_of_list(children, true).map(|is_true| !is_true),
        Expression::Not(child) => truth(child).map(|is_true| !is_true),
        // If the condition is always true, an element still has to exist.
        Expression::OnPath(_, Condition::ElemMatchObject(inner) | Condition::ElemMatchValue(inner)) => {
            truth(inner).filter(|is_true| !is_true)
        }
        _ => None,
    }
}

/// The truth of a list for every document; one child with truth `decisive` decides the list.
fn truth_of_list(children: &[Expression], decisive: bool) -> Option<bool> {
    let mut whole = Some(!decisive);
    for child in children {
        match truth(child) {
            Some(is_true) if is_true == decisive => return Some(decisive),
            Some(_) => {}
            None => whole = None,
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Filter;
    use bunko_bson::{DocumentBuf, ValueRef};
    use bunko_testkit::shell;

    const LEAVES: &[&str] = &[
        "{a: 1}",
        "{a: {$ne: 1}}",
        "{}",
        "{$alwaysTrue: 1}",
        "{$alwaysFalse: 1}",
        "{a: {$in: []}}",
        "{a: {$nin: []}}",
        "{a: {$not: {$nin: []}}}",
        "{a: {$elemMatch: {$in: []}}}",
        "{a: {$elemMatch: {$nin: []}}}",
        "{a: {$elemMatch: {b: {$in: []}}}}",
    ];

    const DOCUMENTS: &[&str] = &["{}", "{a: 1}", "{a: []}", "{a: [1, 2]}", "{a: [{b: 1}]}"];

    fn document(text: &str) -> DocumentBuf {
        shell::parse_document(text).expect("a document")
    }

    fn planned(filter: &DocumentBuf) -> Filter {
        let compiler = crate::parser::NoExpr { strings: bunko_bson::StringOrder::BYTES, operation: None };
        Filter::parse_for_plan(filter.as_ref(), &compiler).expect("a filter")
    }

    /// Lists of each of `firsts` with each of the leaves.
    fn lists(firsts: &[String]) -> Vec<String> {
        let of = |name: &str, first: &String| {
            LEAVES.iter().map(|second| format!("{{{name}: [{first}, {second}]}}")).collect::<Vec<_>>()
        };
        let names = ["$and", "$or", "$nor"];
        names.iter().flat_map(|name| firsts.iter().flat_map(|first| of(name, first))).collect()
    }

    #[test]
    fn folded_filters_match_the_same_documents_and_hold_no_constants() {
        let leaves: Vec<String> = LEAVES.iter().map(|&leaf| leaf.to_owned()).collect();
        let pairs = lists(&leaves);
        let deep = lists(&pairs);
        let documents: Vec<_> = DOCUMENTS.iter().map(|text| document(text)).collect();
        for text in leaves.iter().chain(&pairs).chain(&deep) {
            let source = document(text);
            let (folded, whole) = (planned(&source), Filter::parse(source.as_ref()).expect("a filter"));
            let root = folded.root();
            assert!(
                matches!(root, Expression::AlwaysTrue | Expression::AlwaysFalse) || !holds_constant(root),
                "{text}: {root:?}"
            );
            for subject in &documents {
                let matches = |filter: &Filter| filter.try_matches(subject.as_ref()).expect("no expressions");
                assert_eq!(matches(&folded), matches(&whole), "{text} of {subject:?}");
            }
        }
    }

    #[test]
    fn constants_are_folded_only_in_filters_that_are_planned() {
        let source = document("{$or: [{a: 1}, {b: {$in: []}}]}");
        let print = |filter: Filter| shell::print(ValueRef::Document(filter.to_document().as_ref()));
        assert_eq!(print(planned(&source)), "{a: {$eq: 1}}");
        let other = Filter::parse(source.as_ref()).expect("a filter");
        assert_eq!(print(other), "{$or: [{a: {$eq: 1}}, {$alwaysFalse: 1}]}");
    }
}
