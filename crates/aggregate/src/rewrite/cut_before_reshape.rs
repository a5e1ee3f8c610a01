//! Moves `$skip` and `$limit` before stages that make exactly one document of each.
//!
//! **Proof.** The stage keeps the number and the order of documents and looks at one at a time, so the same positions are
//! dropped before it as after it. Errors on dropped documents are hidden, as MongoDB hides them.

use super::{Kind, Rule};
use crate::Stage;
use bunko_matcher::planted::{Fault, active};

pub(super) const RULE: Rule = Rule { name: "cutBeforeReshape", kind: Kind::Cut(goes_before) };

fn goes_before(stage: &dyn Stage) -> bool {
    stage.makes_one_of_each() || active(Fault::OneOfEach) && stage.unwinding().is_some()
}
