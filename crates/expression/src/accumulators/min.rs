//! `$min`: the least value; null of none but null and missing.

use super::extreme::Extreme;
use super::{Accumulator, Form, Kind, Strings};
use std::cmp::Ordering;

pub(super) const KIND: Kind =
    Kind { name: "$min", strings: Strings::Collated, form: Form::Expression, make: |_| make() };

/// A new one.
pub(crate) fn make() -> Box<dyn Accumulator> {
    Box::new(Extreme::new(Ordering::Less))
}
