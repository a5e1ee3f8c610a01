//! `$firstN`: the first values, at most `n`.

use super::several::{KeptValues, Which};
use super::{Form, Kind, Strings};

pub(super) const KIND: Kind = Kind {
    name: "$firstN",
    strings: Strings::AsBytes,
    form: Form::InputAndCount,
    make: |settings| Box::new(KeptValues::new(settings.count, Which::First)),
};
