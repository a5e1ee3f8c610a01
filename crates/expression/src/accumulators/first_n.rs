//! `$firstN`: the first values, at most `n`.

use super::several::{Several, Which};
use super::{Form, Kind};

pub(super) const KIND: Kind =
    Kind { name: "$firstN", form: Form::InputAndCount, make: |count| Box::new(Several::new(count, Which::First)) };
