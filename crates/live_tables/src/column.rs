//! A column of `bunko stat`.

use crate::reading::Interval;
use crate::units::Units;

/// A column that has a name of its own.
pub(crate) struct Column {
    /// Its name in `-o`, in JSON, and as a header: mongostat's, where mongostat has it.
    pub name: &'static str,
    /// One sentence, without a full stop.
    pub meaning: &'static str,
    /// When it is shown, if no `-o` chooses the columns.
    pub shown: Shown,
    /// The cell; `None` where the server does not tell the fact.
    pub cell: fn(&Interval<'_>, Units) -> Option<String>,
}

/// When a column is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Always,
    /// With several servers, and with `--discover`.
    OfSeveral,
    /// If a server is a member of a set.
    InSet,
    /// If a server has a budget for the memory of operations, as Bunko has.
    OfBunko,
    /// With `--all`, and if `-o` or `-O` names it.
    OnRequest,
}
