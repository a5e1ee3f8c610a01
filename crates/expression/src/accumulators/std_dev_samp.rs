//! `$stdDevSamp`: the standard deviation estimated from a sample; null for fewer than 2 numbers.

use super::deviation::Deviation;
use super::{Accumulator, Form, Kind, Strings};

pub(super) const KIND: Kind =
    Kind { name: "$stdDevSamp", strings: Strings::AsBytes, form: Form::Expression, make: |_| make() };

pub(crate) fn make() -> Box<dyn Accumulator> {
    Box::new(Deviation::new(1))
}
