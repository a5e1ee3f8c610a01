//! `$stdDevPop`: the standard deviation of a population; null without numbers.

use super::deviation::Deviation;
use super::{Accumulator, Form, Kind, Strings};

pub(super) const KIND: Kind =
    Kind { name: "$stdDevPop", strings: Strings::AsBytes, form: Form::Expression, make: |_| make() };

pub(crate) fn make() -> Box<dyn Accumulator> {
    Box::new(Deviation::new(0))
}
