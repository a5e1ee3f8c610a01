//! The geometries that a document holds at a path.

use crate::stored::Stored;
use bunko_bson::{DocumentRef, ValueRef};

/// The values at a dotted path, one for each document of the arrays on the way. An array at the end is one value.
pub fn values_at<'d>(document: DocumentRef<'d>, path: &str) -> Vec<ValueRef<'d>> {
    let mut found = Vec::new();
    collect(document, path, &mut found);
    found
}

fn collect<'d>(document: DocumentRef<'d>, path: &str, found: &mut Vec<ValueRef<'d>>) {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    match (document.get(name), rest) {
        (Some(value), None) => found.push(value),
        (Some(ValueRef::Document(inner)), Some(rest)) => collect(inner, rest, found),
        (Some(ValueRef::Array(array)), Some(rest)) => {
            let position = rest.split_once('.').map_or(rest, |(first, _)| first);
            // The names of an array's elements are their positions.
            if array.as_document().get(position).is_some() {
                collect(array.as_document(), rest, found);
                return;
            }
            array.iter().filter_map(ValueRef::as_document).for_each(|element| collect(element, rest, found));
        }
        _ => {}
    }
}

/// The geometries at a path. If the value is an array and no geometry, its elements are taken one by one. Values that
/// are not geometry are ignored.
pub fn stored_at<'d>(document: DocumentRef<'d>, path: &str) -> Vec<(Stored, ValueRef<'d>)> {
    let mut found = Vec::new();
    for value in values_at(document, path) {
        match (Stored::parse(value), value) {
            (Ok(stored), _) => found.push((stored, value)),
            (Err(_), ValueRef::Array(array)) => {
                let parse = |element| Stored::parse(element).ok().map(|stored| (stored, element));
                found.extend(array.iter().filter_map(parse));
            }
            (Err(_), _) => {}
        }
    }
    found
}
