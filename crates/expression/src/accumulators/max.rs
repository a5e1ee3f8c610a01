//! `$max`: the greatest value; null if all values are null or missing.

use super::extreme::Extreme;
use super::{Accumulator, Form, Kind, Strings};
use std::cmp::Ordering;

pub(super) const KIND: Kind =
    Kind { name: "$max", strings: Strings::Collated, form: Form::Expression, make: |_| make() };

pub(crate) fn make() -> Box<dyn Accumulator> {
    Box::new(Extreme::new(Ordering::Greater))
}
