//! Conditions on the fields after the texts of a text index. Each of its keys holds their values, so that documents whose
//! values are out of bounds are not read.
//!
//! Such a field holds no array: the index refuses the document. So every condition on it speaks of the one value in the
//! keys.

use super::collated::Orders;
use super::index_bounds::names_array_index;
use super::intervals::Intervals;
use super::predicates::{Keys, bounds};
use bunko_bson::StringOrder;
use bunko_bson::key_string::{self, decode};
use bunko_catalog::{Index, KeySpan, TextIndex, is_shortened};
use bunko_matcher::Expression;

/// The bounds of the fields after the texts.
#[derive(Default)]
pub(crate) struct TextSuffix {
    directions: Vec<key_string::Direction>,
    fields: Vec<(usize, Intervals)>,
}

impl TextSuffix {
    /// The bounds that `predicates` imply.
    pub fn new(index: &Index, predicates: &[Expression], strings: &StringOrder) -> Self {
        let orders = Orders { index: &index.strings, query: strings };
        let all = index.kind.text().map_or(&[][..], TextIndex::suffix);
        let of_field = |path: &str| {
            let found = predicates.iter().filter_map(|predicate| bounds(predicate, path, Keys::One, orders));
            Intervals::in_all(found.map(|bounds| bounds.intervals).collect())
        };
        let named = all.iter().enumerate().filter(|(_, field)| !names_array_index(&field.path));
        let fields = named.filter_map(|(position, field)| Some((position, of_field(&field.path)?))).collect();
        Self { directions: all.iter().map(|field| field.direction).collect(), fields }
    }

    /// Whether a key within a term's span is within the bounds.
    pub fn admits(&self, index: &Index, span: &KeySpan, key: &[u8]) -> bool {
        if self.fields.is_empty() || is_shortened(index, key) {
            return true;
        }
        // A key that cannot be decoded passes; the filter decides.
        let Some(values) = TextIndex::after_score(span, key).and_then(|rest| decode(rest, &self.directions)) else {
            return true;
        };
        self.fields.iter().all(|(position, intervals)| intervals.contains(&values[*position]))
    }
}
