//! The values at a path as joins see them: arrays are traversed, and numbers index into them.

use bunko_bson::{ArrayRef, DocumentRef, ValueRef};

/// How a path comes to its last value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reached {
    ByName,
    /// As the element of an array that the last component names.
    ByPosition,
}

/// Takes the values at a path.
type Visit<'v, 'd> = dyn FnMut(ValueRef<'d>, Reached) + 'v;

/// The values that a local field joins on: an array at the end of the path stands for its elements.
pub(crate) fn local_values<'d>(document: DocumentRef<'d>, path: &[Box<str>]) -> Vec<ValueRef<'d>> {
    let mut values = Vec::new();
    walk(document, path, &mut |value, _| match value {
        ValueRef::Array(array) => values.extend(array.iter()),
        other => values.push(other),
    });
    values
}

/// The values by which an equality filter would find a document: an array at the end of the path stands for itself and
/// for its elements, but only for itself if the path names its position in another array.
pub(crate) fn matched_values<'d>(document: DocumentRef<'d>, path: &[Box<str>]) -> Vec<ValueRef<'d>> {
    let mut values = Vec::new();
    walk(document, path, &mut |value, reached| {
        values.push(value);
        if let (ValueRef::Array(array), Reached::ByName) = (value, reached) {
            values.extend(array.iter());
        }
    });
    values
}

fn walk<'d>(document: DocumentRef<'d>, path: &[Box<str>], visit: &mut Visit<'_, 'd>) {
    let Some((name, rest)) = path.split_first() else { return };
    if let Some(value) = document.get(name) {
        walk_value((value, Reached::ByName), rest, visit);
    }
}

fn walk_value<'d>((value, reached): (ValueRef<'d>, Reached), rest: &[Box<str>], visit: &mut Visit<'_, 'd>) {
    match value {
        _ if rest.is_empty() => visit(value, reached),
        ValueRef::Document(document) => walk(document, rest, visit),
        ValueRef::Array(array) => {
            if let Some(element) = at_position(array, &rest[0]) {
                walk_value((element, Reached::ByPosition), &rest[1..], visit);
            }
            for element in array.iter().filter_map(ValueRef::as_document) {
                walk(element, rest, visit);
            }
        }
        _ => {}
    }
}

/// The element that a path component names, if it is a number without leading zeros.
fn at_position<'d>(array: ArrayRef<'d>, component: &str) -> Option<ValueRef<'d>> {
    let is_number = component == "0" || (!component.starts_with('0') && component.bytes().all(|b| b.is_ascii_digit()));
    is_number.then(|| array.as_document().get(component)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_expression::FieldPath;
    use bunko_testkit::shell;

    fn both(path: &str, document: &str) -> String {
        let document = shell::parse_document(document).expect("a document");
        let path = FieldPath::parse(path).expect("a path");
        let print = |values: Vec<ValueRef<'_>>| values.into_iter().map(shell::print).collect::<Vec<_>>().join(" ");
        let local = print(local_values(document.as_ref(), path.components()));
        format!("{local} | {}", print(matched_values(document.as_ref(), path.components())))
    }

    #[test]
    fn arrays_are_their_elements_and_for_filters_themselves_too() {
        assert_eq!(both("a", "{a: [1, [2]]}"), "1 [2] | [1, [2]] 1 [2]");
        assert_eq!(both("a.b", "{a: [{b: 1}, {c: 2}, {b: [3]}]}"), "1 3 | 1 [3] 3");
        assert_eq!(both("a.1", "{a: [5, 6]}"), "6 | 6");
        assert_eq!(both("a.1", "{a: [5, [6]]}"), "6 | [6]");
        assert_eq!(both("a.1.b", "{a: [5, {b: [6]}]}"), "6 | [6] 6");
        assert_eq!(both("a.01", "{a: [5, 6]}"), " | ");
    }
}
