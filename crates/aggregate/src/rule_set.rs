//! Sets of rewrites, so that a test can leave some out.

/// A set of rules, by their positions in the table of `rewrite`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleSet(u32);

impl RuleSet {
    /// The set with one more rule.
    pub(crate) fn with(self, position: usize) -> Self {
        Self(self.0 | 1 << position)
    }

    pub(crate) fn holds(self, position: usize) -> bool {
        self.0 & (1 << position) != 0
    }
}

/// Which rewrites a pipeline gets. Tests check that results are equal with all, some and none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrites {
    /// All rewrites.
    Applied,
    /// As `Applied`, without these rules.
    Without(RuleSet),
    /// No rewrites: every stage does its own work, on whole documents passed one by one.
    Off,
}

impl Rewrites {
    /// Whether pipelines are rewritten at all.
    pub(crate) fn are_applied(self) -> bool {
        self != Self::Off
    }
}
