//! The ways of cached plans.
//!
//! Queries of one shape may name their conditions in different orders, and a smaller filter has them at other positions.
//! So the cache names an `$or` by the paths and operators in it. If several have one name, their places among these tell
//! them apart.

use crate::plan::Chosen;
use crate::planner::Order;
use bunko_catalog::CachedWay;
use bunko_matcher::{Comparison, Condition, Expression};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::Discriminant;

/// The choice that a cached way is for a filter with these conditions; `None` if the filter lacks its `$or`.
pub(crate) fn chosen(way: CachedWay, predicates: &[Expression]) -> Option<Chosen> {
    match way {
        CachedWay::Index(index) => Some(Chosen::One(index)),
        CachedWay::Region(index) => Some(Chosen::Region(index)),
        CachedWay::Branches { name: own, before, is_merged } => {
            let is_named = |predicate: &Expression| matches!(predicate, Expression::Or(_)) && name(predicate) == own;
            let all = predicates.iter().enumerate().filter(|(_, predicate)| is_named(predicate));
            let (position, _) = all.into_iter().nth(before)?;
            Some(Chosen::Branches { position, order: if is_merged { Order::AsAsked } else { Order::Any } })
        }
    }
}

/// The way by which the cache keeps a choice. It has no intersections: estimates choose them anew for each query.
pub(crate) fn of(chosen: Chosen, predicates: &[Expression]) -> CachedWay {
    match chosen {
        Chosen::One(index) | Chosen::Both(index, _) => CachedWay::Index(index),
        Chosen::Region(index) => CachedWay::Region(index),
        Chosen::Branches { position, order } => {
            let own = name(&predicates[position]);
            let earlier = predicates[..position].iter().filter(|predicate| matches!(predicate, Expression::Or(_)));
            let before = earlier.filter(|predicate| name(predicate) == own).count();
            CachedWay::Branches { name: own, before, is_merged: order == Order::AsAsked }
        }
    }
}

/// An operator on a path, without its constants.
type Asked<'e> = (&'e str, Option<Comparison>, Option<Discriminant<Condition>>, bool);

fn name(alternatives: &Expression) -> u64 {
    let mut asked = Vec::new();
    gather(alternatives, false, &mut asked);
    // Whether a condition occurs once or twice may depend on its constants.
    let mut hashes: BTreeSet<u64> = BTreeSet::new();
    hashes.extend(asked.iter().map(hash));
    hash(&hashes)
}

fn hash(part: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    part.hash(&mut hasher);
    hasher.finish()
}

fn gather<'e>(expression: &'e Expression, is_negated: bool, asked: &mut Vec<Asked<'e>>) {
    match expression {
        // Several equalities become one list.
        Expression::OnPath(path, Condition::Compare(Comparison::Eq, _) | Condition::In { .. }) => {
            asked.push((path.as_str(), Some(Comparison::Eq), None, is_negated));
        }
        Expression::OnPath(path, Condition::Compare(op, _)) => asked.push((path.as_str(), Some(*op), None, is_negated)),
        Expression::OnPath(path, condition) => {
            asked.push((path.as_str(), None, Some(std::mem::discriminant(condition)), is_negated));
        }
        Expression::Expr(expr) => {
            asked.extend(expr.implied().iter().map(|implied| (&*implied.path, Some(implied.op), None, is_negated)));
        }
        _ => {}
    }
    let is_negated = is_negated != matches!(expression, Expression::Nor(_) | Expression::Not(_));
    expression.parts().iter().for_each(|part| gather(part, is_negated, asked));
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_matcher::Filter;
    use bunko_store::KeyspaceId;
    use bunko_testkit::shell;

    fn filter(text: &str) -> Filter {
        let mut filter = Filter::parse(shell::parse_document(text).expect("a filter").as_ref()).expect("a filter");
        filter.simplify();
        filter
    }

    fn branches(position: usize) -> Chosen {
        Chosen::Branches { position, order: Order::Any }
    }

    #[test]
    fn an_or_keeps_its_name_in_another_order_and_with_other_constants() {
        let (one, other) = ("{$or: [{a: 1}, {b: {$gt: 2}}]}", "{$or: [{c: 1}, {d: 2}]}");
        let sent = filter(&format!("{{$and: [{one}, {other}]}}"));
        let turned = filter(&format!("{{$and: [{other}, {one}]}}"));
        let constants =
            filter("{$and: [{$or: [{c: 7}, {c: 9}, {d: 3}]}, {$or: [{b: {$gt: 9}}, {a: {$in: [4, 5]}}]}, {e: 1}]}");
        for position in 0..2 {
            let way = of(branches(position), sent.root().conjuncts());
            assert_eq!(chosen(way, sent.root().conjuncts()), Some(branches(position)));
            assert_eq!(chosen(way, turned.root().conjuncts()), Some(branches(1 - position)));
            assert_eq!(chosen(way, constants.root().conjuncts()), Some(branches(1 - position)));
            assert_eq!(chosen(way, filter("{$or: [{a: 1}, {b: 2}]}").root().conjuncts()), None);
        }
    }

    #[test]
    fn of_several_alike_the_place_decides() {
        let alike = filter("{$and: [{$or: [{a: 1}, {b: 1}]}, {$or: [{c: 1}, {d: 1}]}, {$or: [{a: 2}, {b: 2}]}]}");
        for position in 0..3 {
            let way = of(branches(position), alike.root().conjuncts());
            assert_eq!(chosen(way, alike.root().conjuncts()), Some(branches(position)));
        }
        assert_eq!(chosen(CachedWay::Region(KeyspaceId(3)), &[]), Some(Chosen::Region(KeyspaceId(3))));
    }
}
