//! Keys whose strings are in a collator's order.

use super::{END, put_bytes, put_text};
use crate::ValueRef;
use crate::order::{bracket, rank};
use crate::string_order::Collator;

/// Appends a value's ascending key.
pub(super) fn put(buffer: &mut Vec<u8>, value: ValueRef<'_>, collator: &dyn Collator) {
    match value {
        ValueRef::String(text) | ValueRef::Symbol(text) => {
            buffer.push(bracket::STRING);
            let mut sort_key = Vec::with_capacity(2 * text.len() + 8);
            collator.write_sort_key(text, &mut sort_key);
            put_bytes(buffer, &sort_key);
        }
        ValueRef::Document(document) => {
            buffer.push(bracket::DOCUMENT);
            for element in document {
                buffer.push(rank(element.value.kind()));
                put_text(buffer, element.name);
                put(buffer, element.value, collator);
            }
            buffer.push(END);
        }
        ValueRef::Array(array) => {
            buffer.push(bracket::ARRAY);
            for value in array.iter() {
                put(buffer, value, collator);
            }
            buffer.push(END);
        }
        value => super::put(buffer, value),
    }
}
