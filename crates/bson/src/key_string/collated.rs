//! Keys whose strings are in a collator's order.

use super::{END, put_text};
use crate::ValueRef;
use crate::order::{bracket, rank};
use crate::string_order::{Collator, key_text};

/// Appends a value's ascending key.
pub(super) fn put(buffer: &mut Vec<u8>, value: ValueRef<'_>, collator: &dyn Collator) {
    match value {
        ValueRef::String(text) | ValueRef::Symbol(text) => {
            buffer.push(bracket::STRING);
            put_text(buffer, &key_text(text, collator));
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
