//! `$maxN`: the greatest values, greatest first; null and missing are ignored, at most `n`.

use super::several::{KeptValues, Which};
use super::{Form, Kind, Strings};

pub(super) const KIND: Kind = Kind {
    name: "$maxN",
    strings: Strings::Collated,
    form: Form::RankedInputAndCount,
    make: |settings| Box::new(KeptValues::new(settings.count, Which::Greatest)),
};
