//! `$stdDevSamp`: the standard deviation estimated from a sample; null of fewer than 2 numbers.

use super::deviation::Deviation;
use super::{Accumulator, Form, Kind, Strings};

pub(super) const KIND: Kind =
    Kind { name: "$stdDevSamp", strings: Strings::AsBytes, form: Form::Expression, make: |_| make() };

/// A new one.
pub(crate) fn make() -> Box<dyn Accumulator> {
    Box::new(Deviation::new(1))
}
