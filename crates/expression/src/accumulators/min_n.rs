//! `$minN`: the least values in order; null and missing are ignored, at most `n`.

use super::several::{KeptValues, Which};
use super::{Form, Kind, Strings};

pub(super) const KIND: Kind = Kind {
    name: "$minN",
    strings: Strings::Collated,
    form: Form::RankedInputAndCount,
    make: |settings| Box::new(KeptValues::new(settings.count, Which::Least)),
};
