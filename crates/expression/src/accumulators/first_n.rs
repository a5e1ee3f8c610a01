//! `$firstN`: the first values, at most `n`.

use super::several::{Several, Which};
use super::{Form, Kind, Strings};

pub(super) const KIND: Kind = Kind {
    name: "$firstN",
    strings: Strings::AsBytes,
    form: Form::InputAndCount,
    make: |settings| Box::new(Several::new(settings.count, Which::First)),
};
