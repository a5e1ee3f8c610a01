//! `$lastN`: the last values, at most `n`.

use super::several::{KeptValues, Which};
use super::{Form, Kind, Strings};

pub(super) const KIND: Kind = Kind {
    name: "$lastN",
    strings: Strings::AsBytes,
    form: Form::InputAndCount,
    make: |settings| Box::new(KeptValues::new(settings.count, Which::Last)),
};
