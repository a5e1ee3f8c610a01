//! `$lastN`: the last values, at most `n`.

use super::several::{Several, Which};
use super::{Form, Kind, Strings};

pub(super) const KIND: Kind = Kind {
    name: "$lastN",
    strings: Strings::AsBytes,
    form: Form::InputAndCount,
    make: |settings| Box::new(Several::new(settings.count, Which::Last)),
};
