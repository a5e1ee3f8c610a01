//! Rewrites of a pipeline between its parse and its plan.
//!
//! Parsed stages enter a [`LogicalPipeline`] one after the other. Each stage says how it treats its documents
//! ([`Effect`]), and rules decide where the new stage goes. A rule is one file: a constant with a name, and a comment
//! that states when the rewritten pipeline has the same results.
//!
//! - **Conditions move alone.** A `$match` is split into its conjuncts; each moves forward past stage after stage until
//!   no rule can prove the next step. Its paths change on the way: after `{$project: {b: '$k'}}` a condition on `b`
//!   becomes one on `k`.
//! - **Some conditions are copied.** Where a rule can only prove that the results need a condition on the input, the
//!   weaker condition goes to the front and the exact one stays.
//! - **Termination.** A stage is placed once, and a condition only moves forward. A pipeline has
//!   a limited number of [steps]; stages that enter later stay where the client put them, and `explain`
//!   shows [`STOPPED`].
//! - **Errors.** A rewrite may hide an error: an expression is not evaluated on documents that a later filter excludes,
//!   as on MongoDB. It never makes one: only conditions that cannot fail move (see [`Condition`]).
//!
//! `explain` names the rules that fired. The failpoint `disablePipelineOptimization` switches rules off by name, so that
//! tests compare results with each rule on and off.

mod condition;
mod cut_before_reshape;
mod drop_before_count;
mod drop_given_sort;
mod drop_unread_sort;
mod expr_paths;
mod limit_sort;
mod logical;
mod match_before_densify;
mod match_before_graph_lookup;
mod match_before_group;
mod match_before_lookup;
mod match_before_new_root;
mod match_before_redact;
mod match_before_reshape;
mod match_before_sort;
mod match_before_unwind;
mod match_before_window;
mod match_into_lookup;
mod match_into_union;
mod merge_cuts;
mod merge_matches;
mod move_never_matching;
mod moving_sort;
mod operand;
mod origin;
mod sort_before_reshape;
mod sort_before_unwind;
mod split_match;
mod steps;
mod unwind_into_lookup;

pub(crate) use logical::{LogicalPipeline, Rewritten};
pub use steps::StepsLeft;

use crate::effect::Effect;
use crate::rule_set::{Rewrites, RuleSet};
use crate::{Environment, Stage};
use condition::Condition;
use logical::LogicalStage;
use moving_sort::{MovingSort, Passed};
use steps::Steps;

/// Shown by `explain` after the rules of a pipeline that used up its steps.
pub(crate) const STOPPED: &str = "stopped";

/// All rules. A rule of the same kind that comes earlier is tried first.
static RULES: [&Rule; 24] = [
    &split_match::RULE,
    &match_before_reshape::RULE,
    &match_before_new_root::RULE,
    &match_before_unwind::RULE,
    &match_into_lookup::RULE,
    &match_before_lookup::RULE,
    &match_before_graph_lookup::RULE,
    &match_before_redact::RULE,
    &match_before_sort::RULE,
    &match_before_group::RULE,
    &match_before_window::RULE,
    &match_before_densify::RULE,
    &match_into_union::RULE,
    &move_never_matching::RULE,
    &cut_before_reshape::RULE,
    &merge_cuts::RULE,
    &unwind_into_lookup::RULE,
    &sort_before_reshape::RULE,
    &sort_before_unwind::RULE,
    &drop_given_sort::RULE,
    &drop_unread_sort::RULE,
    &drop_before_count::RULE,
    &merge_matches::RULE,
    &limit_sort::RULE,
];

/// A rewrite.
struct Rule {
    /// The name by which it is explained and switched off.
    name: &'static str,
    kind: Kind,
}

/// The decision that a rule makes.
enum Kind {
    /// Whether a `$match` is split into its conjuncts.
    Split,
    /// How a condition passes the stage before it; `None` if the rule does not know.
    Passage(fn(&Effect, &Condition, &Environment) -> Option<Passage>),
    /// Whether a `$skip` or `$limit` goes before a stage.
    Cut(fn(&dyn Stage) -> bool),
    /// How a `$sort` passes the stage before it; `None` if the rule does not know.
    Order(fn(&mut LogicalStage, &MovingSort) -> Option<Passed>),
    /// Lets a stage do the work of the stage after it too; returns whether it does.
    Pair(fn(&mut dyn Stage, &dyn Stage) -> bool),
    /// Tells stages, once all have their places, about the stages after them; returns whether it did.
    Tell(fn(&mut [LogicalStage]) -> bool),
    /// Changes the stages once all have their places; returns whether it changed any.
    Whole(fn(&mut Vec<LogicalStage>, &Environment, &mut Steps<'_>) -> bunko_errors::Result<bool>),
}

/// The result of a rule that lets a condition pass the stage before it.
#[derive(Default)]
struct Passage {
    /// The condition before the stage.
    before: Option<Condition>,
    /// The condition that the stage applies to documents that it gets elsewhere.
    inside: Option<Condition>,
    /// Whether the exact condition stays after the stage.
    stays: bool,
}

impl Passage {
    /// The condition moves to the front.
    fn before(condition: Condition) -> Self {
        Self { before: Some(condition), ..Self::default() }
    }

    /// A condition goes to the front, and the exact one stays.
    fn copied(condition: Condition) -> Self {
        Self { before: Some(condition), stays: true, ..Self::default() }
    }
}

impl RuleSet {
    /// Names of all rules.
    pub fn names() -> impl Iterator<Item = &'static str> {
        RULES.iter().map(|rule| rule.name)
    }

    /// The rules with these names.
    /// # Errors
    /// A name that no rule has.
    pub fn named<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Self, &'n str> {
        names.into_iter().try_fold(Self::default(), |set, name| {
            Ok(set.with(Self::names().position(|known| known == name).ok_or(name)?))
        })
    }
}

/// Whether a rule may be applied.
fn allows(rewrites: Rewrites, rule: &Rule) -> bool {
    let position = || RuleSet::names().position(|name| name == rule.name);
    match rewrites {
        Rewrites::Applied => true,
        Rewrites::Without(rules) => !position().is_some_and(|position| rules.holds(position)),
        Rewrites::Off => false,
    }
}
