//! Why indexes do not serve a query: `rejectedBecause` of explain.
//!
//! The planner drops an index without a note of the reason. Explain asks afterwards, and the same bounds and scores are
//! derived again: planning itself pays nothing for it.

use super::asked_paths::asks_for;
use super::choose::{Candidate, takes_all};
use super::collated::Orders;
use super::index_bounds::names_array_index;
use super::index_filter;
use super::near_plan::scan_of_region;
use super::positions;
use super::predicates::{Keys, bounds};
use super::sort_order::{Split, split};
use super::steps::Steps;
use crate::hint::Hint;
use crate::plan::{Chosen, DecidedBy, Plan, Trial};
use bunko_bson::StringOrder;
use bunko_catalog::{Answers, Index, IndexState};
use bunko_matcher::{Condition, Expression};
use std::fmt;
use std::sync::Arc;

/// The reason that a plan does not use an index.
#[derive(Debug)]
pub(crate) enum Rejection {
    Building,
    Hidden,
    /// The hint names something else.
    NotHinted,
    NotInSettings,
    NotInIndexFilter,
    /// Only an operator of its own can use the index.
    OfOneOperator,
    /// The query does not say that all its documents are in the partial index.
    PartialFilter,
    Collation,
    /// No condition on the first field, but one on a later field.
    NoPrefix {
        first: String,
        later: String,
    },
    /// No condition on any field.
    NoCondition {
        first: String,
    },
    /// Arrays at the path leave no bounds.
    BoundsWithArrays {
        path: String,
    },
    NoBounds {
        path: String,
    },
    /// Asked for only in an `$or`, and another alternative has no index.
    OnlyInAlternative {
        path: String,
    },
    /// Arrays at the path mix up the order of the documents.
    OrderWithArrays {
        path: String,
    },
    /// The first field of the sort is that of the index, and the order is another one.
    OtherOrder,
    Sparse,
    LostTrial {
        results: u64,
        works: u64,
        winner_results: u64,
        winner_works: u64,
    },
    /// Its estimated cost is clearly higher.
    Costs {
        cost: f64,
        winner_cost: f64,
    },
    Behind {
        winner: String,
        by: Merit,
    },
    /// The plan is of another kind: a lookup, a search, or scans for the branches of an `$or`.
    OtherPlan,
    /// The steps of looking for reasons were used up.
    Unexamined,
}

/// The rule of `choose` that prefers one index to another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Merit {
    Bounds,
    Order,
    KeysAlone,
    FewerFields,
    Age,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Building => f.write_str("the index is being built"),
            Self::Hidden => f.write_str("the index is hidden"),
            Self::NotHinted => f.write_str("the hint names another index or the collection scan"),
            Self::NotInSettings => f.write_str("the query settings of this shape do not allow the index"),
            Self::NotInIndexFilter => f.write_str("the index filter of this shape does not list the index"),
            Self::OfOneOperator => f.write_str("only its own operators use the index, and the filter has none of them"),
            Self::PartialFilter => f.write_str("the filter does not imply the index's partialFilterExpression"),
            Self::Collation => f.write_str("the index's collation is not the query's, and the filter compares strings"),
            Self::NoPrefix { first, later } => {
                write!(f, "the filter has a condition on '{later}', but none on '{first}', the first field")
            }
            Self::NoCondition { first } => {
                write!(f, "neither the filter nor the sort asks for '{first}', the first field")
            }
            Self::BoundsWithArrays { path } => {
                write!(f, "the condition on '{path}' gives no bounds, since '{path}' holds arrays (multikey)")
            }
            Self::OnlyInAlternative { path } => {
                write!(f, "only an alternative of the $or asks for '{path}', and another alternative has no index")
            }
            Self::NoBounds { path } => write!(f, "the condition on '{path}' gives no bounds"),
            Self::OrderWithArrays { path } => {
                write!(f, "the keys are not in the sort's order, since '{path}' holds arrays (multikey)")
            }
            Self::OtherOrder => f.write_str("the keys are not in the sort's order"),
            Self::Sparse => f.write_str("the index is sparse, and documents that it leaves out may match"),
            Self::LostTrial { results, works, winner_results, winner_works } => write!(
                f,
                "it lost the trial: it found {results} in {works} works, and the winner {winner_results} in {winner_works}"
            ),
            Self::Costs { cost, winner_cost } => {
                write!(f, "its estimated cost is {cost:.0}, and the winner's {winner_cost:.0}")
            }
            Self::Behind { winner, by } => match by {
                Merit::Bounds => write!(f, "'{winner}' has narrower bounds"),
                Merit::Order => write!(f, "'{winner}' gives the sort's order too"),
                Merit::KeysAlone => {
                    write!(f, "'{winner}' checks more conditions on its keys, or answers from keys alone")
                }
                Merit::FewerFields => write!(f, "'{winner}' is as good, and has fewer fields"),
                Merit::Age => write!(f, "'{winner}' is as good, and older"),
            },
            Self::OtherPlan => f.write_str("the plan finds the documents without it"),
            Self::Unexamined => f.write_str("the filter has too many conditions to look for the reason"),
        }
    }
}

/// The indexes that a plan does not use, with the reasons. An index on `_id` that the query does not ask for is left out:
/// every collection has one. A plan that reads nothing, or that was made without looking at the indexes, has no reasons.
pub(crate) fn rejections(plan: &Plan) -> Vec<(Arc<Index>, Rejection)> {
    if plan.is_stopped() || matches!(plan.query().filter.root(), Expression::AlwaysFalse) {
        return Vec::new();
    }
    let used = &plan.parts().used;
    let query = plan.query();
    let asks_for_id = query.filter.root().conjuncts().iter().any(|predicate| asks_for(predicate, "_id"))
        || query.sort.as_ref().is_some_and(|sort| sort.parts().any(|(path, _)| path.dotted() == "_id"));
    let is_told = |index: &&Arc<Index>| {
        (asks_for_id || index.name != "_id_") && !used.iter().any(|used| used.index.keyspace == index.keyspace)
    };
    let steps = Steps::new(&query.scope.operation, query.filter_document.as_ref().len_bytes());
    let reason = |index: &Arc<Index>| (Arc::clone(index), reason(plan, index, &steps));
    plan.collection().indexes().iter().filter(is_told).map(reason).collect()
}

/// Whether more scans than may be merged would have given the order of the query's sort.
pub(crate) fn has_too_many_scans_to_merge(plan: &Plan) -> bool {
    let query = plan.query();
    let Some(sort) = query.sort.as_ref().filter(|_| plan.sorts() && !plan.is_stopped()) else { return false };
    let (predicates, strings) = (query.filter.root().conjuncts(), &query.scope.strings);
    let steps = Steps::new(&query.scope.operation, query.filter_document.as_ref().len_bytes());
    plan.collection().ready_indexes().iter().any(|index| {
        index.kind.answers() != Answers::ByItself
            && steps.take(index, predicates)
            && excluded(plan, index).is_none()
            && split(&Candidate::new(index, predicates, Some(sort), strings).bounds, sort) == Split::TooMany
    })
}

fn reason(plan: &Plan, index: &Arc<Index>, steps: &Steps<'_>) -> Rejection {
    let query = plan.query();
    let (predicates, sort, strings) = (query.filter.root().conjuncts(), query.sort.as_ref(), &query.scope.strings);
    // The bounds of the index, and those of the plan's own index beside them.
    if !steps.look_at(index) || !steps.take(index, predicates) || !steps.take(index, predicates) {
        return Rejection::Unexamined;
    }
    excluded(plan, index).or_else(|| lost(plan, index)).unwrap_or_else(|| {
        if index.kind.answers() == Answers::ByItself {
            return Rejection::OtherPlan;
        }
        let candidate = Candidate::new(index, predicates, sort, strings);
        if !candidate.bounds.is_narrowed() && candidate.sorted.is_none() {
            return without_use(plan, &candidate);
        }
        if !candidate.bounds.is_complete() {
            return Rejection::Sparse;
        }
        behind(plan, &candidate)
    })
}

/// The reason that an index is not a candidate, whatever its bounds.
fn excluded(plan: &Plan, index: &Arc<Index>) -> Option<Rejection> {
    let (query, collection) = (plan.query(), plan.collection());
    let settings = query.scope.settings.as_deref();
    let allowed = settings.and_then(|settings| settings.allowed_in(collection.namespace().as_str()));
    let filter = if allowed.is_none() { index_filter(collection, query) } else { None };
    let is_hinted = |hint: &Hint| match hint {
        Hint::Name(name) => *name == index.name,
        Hint::KeyPattern(pattern) => {
            bunko_bson::order::compare_documents(index.key_pattern(), pattern.as_ref()).is_eq()
        }
        Hint::Natural(_) => false,
    };
    if index.state() != IndexState::Ready {
        return Some(Rejection::Building);
    }
    if index.is_hidden {
        return Some(Rejection::Hidden);
    }
    if allowed.is_some_and(|allowed| !allowed.allows(index)) {
        return Some(Rejection::NotInSettings);
    }
    if filter.as_ref().is_some_and(|filter| !filter.allows(&index.name, index.key_pattern())) {
        return Some(Rejection::NotInIndexFilter);
    }
    if allowed.is_none() && filter.is_none() && query.hint.as_ref().is_some_and(|hint| !is_hinted(hint)) {
        return Some(Rejection::NotHinted);
    }
    let predicates = query.filter.root().conjuncts();
    let is_searched = scan_of_region(index, predicates, &query.scope.strings).is_some();
    if index.kind.answers() == Answers::ByItself && !is_searched {
        return Some(Rejection::OfOneOperator);
    }
    let asks_for_it = is_searched
        || index.fields.first().is_some_and(|first| predicates.iter().any(|one| asks_for(one, &first.path)));
    let is_partial = !takes_all(index, predicates, &query.scope.strings);
    (is_partial && asks_for_it).then_some(Rejection::PartialFilter)
}

/// The estimates or the trial by which the index lost.
fn lost(plan: &Plan, index: &Index) -> Option<Rejection> {
    let contest = plan.contest()?;
    let trials = &contest.trials;
    let others = || trials.iter().skip(1).filter(|trial| trial.plan.uses(index));
    let alone = others().find(|trial| trial.plan.chosen() == Some(Chosen::One(index.keyspace)));
    // Otherwise it serves a branch of an `$or` whose plan lost.
    let own = alone.or_else(|| others().next())?;
    if contest.decided_by == DecidedBy::Estimates {
        let cost = |trial: &Trial| trial.plan.estimate().map(|estimate| estimate.cost.likely);
        return Some(Rejection::Costs { cost: cost(own)?, winner_cost: cost(&trials[0])? });
    }
    let counts = |trial: &Trial| (trial.totals.returned, trial.works);
    let ((results, works), (winner_results, winner_works)) = (counts(own), counts(&trials[0]));
    Some(Rejection::LostTrial { results, works, winner_results, winner_works })
}

/// The reason that an index neither narrows the search nor gives the order.
fn without_use(plan: &Plan, candidate: &Candidate) -> Rejection {
    let query = plan.query();
    let (bounds_of_index, predicates) = (&candidate.bounds, query.filter.root().conjuncts());
    let (index, strings) = (&bounds_of_index.index, &query.scope.strings);
    // Fields of a wildcard index have names of their own, which no client knows.
    let name = |position| index.key_pattern().iter().nth(position).map(|field| field.name.to_owned());
    let path = |position: usize| name(position).unwrap_or_else(|| index.fields[position].path.clone());
    let is_asked =
        |position: usize| predicates.iter().any(|predicate| asks_for(predicate, &index.fields[position].path));
    let is_sorted_by_first = query
        .sort
        .as_ref()
        .and_then(|sort| sort.parts().next())
        .is_some_and(|(sorted, _)| sorted.dotted() == index.fields[0].path);
    let compares_strings = || predicates.iter().any(|one| asks_for(one, &index.fields[0].path) && holds_strings(one));
    if index.strings != *strings && (is_sorted_by_first || compares_strings()) {
        return Rejection::Collation;
    }
    let mut asking = predicates.iter().filter(|predicate| asks_for(predicate, &index.fields[0].path));
    if is_asked(0) && asking.all(|predicate| matches!(predicate, Expression::Or(_))) {
        return if plan.uses_index() { Rejection::OtherPlan } else { Rejection::OnlyInAlternative { path: path(0) } };
    }
    if is_asked(0) {
        let orders = Orders { index: &index.strings, query: strings };
        let first = &index.fields[0].path;
        let may_serve = |predicate| !names_array_index(first) || positions::is_served(predicate, first, Keys::One);
        let is_bounded = |predicate| may_serve(predicate) && bounds(predicate, first, Keys::One, orders).is_some();
        let is_for_arrays = bounds_of_index.is_multikey_at(0) && predicates.iter().any(is_bounded);
        return if is_for_arrays {
            Rejection::BoundsWithArrays { path: path(0) }
        } else {
            Rejection::NoBounds { path: path(0) }
        };
    }
    if is_sorted_by_first && bounds_of_index.is_multikey_at(0) && !bounds_of_index.sorts_at(0) {
        return Rejection::OrderWithArrays { path: path(0) };
    }
    match (1..index.fields.len()).find(|position| is_asked(*position)) {
        Some(later) => Rejection::NoPrefix { first: path(0), later: path(later) },
        None if is_sorted_by_first => Rejection::OtherOrder,
        None => Rejection::NoCondition { first: path(0) },
    }
}

/// Whether a condition compares values with strings, so that a collation matters.
fn holds_strings(predicate: &Expression) -> bool {
    match predicate {
        Expression::OnPath(_, Condition::Compare(_, value)) => StringOrder::holds_strings(value.as_ref()),
        Expression::OnPath(_, Condition::In { values, .. }) => {
            values.iter().any(|value| StringOrder::holds_strings(value.as_ref()))
        }
        Expression::OnPath(..) => false,
        other => other.parts().iter().any(holds_strings),
    }
}

/// The rule by which the plan's own index comes before a candidate.
fn behind(plan: &Plan, candidate: &Candidate) -> Rejection {
    let query = plan.query();
    let (predicates, sort, strings) = (query.filter.root().conjuncts(), query.sort.as_ref(), &query.scope.strings);
    let [used] = plan.parts().used.as_slice() else { return Rejection::OtherPlan };
    let winner = Candidate::new(&used.index, predicates, sort, strings);
    if !winner.bounds.is_narrowed() && winner.sorted.is_none() {
        return Rejection::OtherPlan;
    }
    let by = if winner.reach() > candidate.reach() {
        Merit::Bounds
    } else if winner.sorted.is_some() && candidate.sorted.is_none() {
        Merit::Order
    } else if winner.worth() > candidate.worth() {
        Merit::KeysAlone
    } else if winner.bounds.fields.len() < candidate.bounds.fields.len() {
        Merit::FewerFields
    } else if winner.worth() < candidate.worth() || winner.bounds.fields.len() > candidate.bounds.fields.len() {
        Merit::KeysAlone
    } else {
        Merit::Age
    };
    Rejection::Behind { winner: used.index.name.clone(), by }
}
