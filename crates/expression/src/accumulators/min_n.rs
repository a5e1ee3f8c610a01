//! `$minN`: the least values in order; null and missing are ignored, at most `n`.

use super::several::{Several, Which};
use super::{Form, Kind};

pub(super) const KIND: Kind = Kind {
    name: "$minN",
    form: Form::RankedInputAndCount,
    make: |settings| Box::new(Several::new(settings.count, Which::Least)),
};
