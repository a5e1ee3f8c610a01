//! Deltas between two versions of a document, in the form of oplog entries (`diff` of `{$v: 2}`), for updates by
//! pipelines. Update operators produce their own deltas (`bunko-update`).
//!
//! In a document's delta, `d` names removed fields, `u` has new values of fields, `i` has fields added at the end, and
//! `s` followed by a field's name has the delta inside that field. An array's delta begins with `a: true`; `l` is its
//! new length, `u` and an index a new element, `s` and an index the delta inside that element.
//! Source: the format as oplogs of MongoDB 5.0 and later show it.

use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, Element, ValueRef};

/// How deep differences are searched; deeper values are replaced whole.
const DEPTH_MAX: usize = 60;

/// The delta from `before` to `after`; `None` if fields changed places, which a delta cannot express.
pub(crate) fn between(before: DocumentRef<'_>, after: DocumentRef<'_>) -> Option<DocumentBuf> {
    of_documents(before, after, DEPTH_MAX)
}

fn of_documents(before: DocumentRef<'_>, after: DocumentRef<'_>, depth: usize) -> Option<DocumentBuf> {
    let (mut gone, mut given, mut came) = (DocumentBuf::new(), DocumentBuf::new(), DocumentBuf::new());
    let mut inside = DocumentBuf::new();
    let mut rest = after.iter().peekable();
    for old in before {
        // A delta keeps the order of fields, so either the next new field has the old field's name, or the old field
        // was removed.
        let Some(new) = rest.next_if(|new| new.name == old.name) else {
            gone.append(old.name, false);
            continue;
        };
        if is_same(old.value, new.value) {
            continue;
        }
        match of_values(old.value, new.value, depth) {
            Some(delta) => {
                inside.append(&format!("s{}", new.name), &delta);
            }
            None => {
                given.append(new.name, new.value);
            }
        }
    }
    for Element { name, value } in rest {
        if gone.as_ref().get(name).is_some() || before.get(name).is_some() {
            return None;
        }
        came.append(name, value);
    }
    let mut delta = DocumentBuf::new();
    for (section, fields) in [("d", &gone), ("u", &given), ("i", &came)] {
        if !fields.as_ref().is_empty() {
            delta.append(section, fields);
        }
    }
    delta.extend(inside.as_ref());
    Some(delta)
}

/// The delta inside a value; `None` if the value should be replaced whole.
fn of_values(old: ValueRef<'_>, new: ValueRef<'_>, depth: usize) -> Option<DocumentBuf> {
    let depth = depth.checked_sub(1)?;
    let delta = match (old, new) {
        (ValueRef::Document(old), ValueRef::Document(new)) => of_documents(old, new, depth)?,
        (ValueRef::Array(old), ValueRef::Array(new)) => of_arrays(old, new, depth),
        _ => return None,
    };
    (delta.len_bytes() < size_of(new)).then_some(delta)
}

fn of_arrays(old: ArrayRef<'_>, new: ArrayRef<'_>, depth: usize) -> DocumentBuf {
    let (before, after) = (old.iter().count(), new.iter().count());
    let mut delta = DocumentBuf::new().with("a", true);
    if after < before {
        delta.append("l", after as i32);
    }
    let mut old = old.iter();
    for (index, new) in new.iter().enumerate() {
        let change = match old.next() {
            Some(old) if is_same(old, new) => continue,
            Some(old) => of_values(old, new, depth),
            None => None,
        };
        match change {
            Some(inside) => {
                delta.append(&format!("s{index}"), &inside);
            }
            None => {
                delta.append(&format!("u{index}"), new);
            }
        }
    }
    delta
}

/// Whether two values have equal bytes: for the consumers of a delta, `1` and `1.0` differ.
fn is_same(one: ValueRef<'_>, other: ValueRef<'_>) -> bool {
    match (one, other) {
        (ValueRef::Document(one), ValueRef::Document(other)) => one.as_bytes() == other.as_bytes(),
        _ => DocumentBuf::new().with("", one) == DocumentBuf::new().with("", other),
    }
}

fn size_of(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Document(document) => document.len_bytes(),
        ValueRef::Array(array) => ArrayBuf::len_bytes(&array.iter().collect()),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::extended_json;

    fn delta(before: &str, after: &str) -> Option<String> {
        let parse = |text: &str| bunko_testkit::shell::parse_document(text).expect("a document");
        let (before, after) = (parse(before), parse(after));
        let delta = between(before.as_ref(), after.as_ref())?;
        Some(extended_json::to_relaxed(ValueRef::Document(delta.as_ref())))
    }

    #[test]
    fn fields_go_change_and_come() {
        let told = delta(
            "{_id: 1, a: 1, b: 2, c: {d: 1, e: 'long enough to be kept apart', f: 1}}",
            "{_id: 1, b: 3, c: {d: 2, e: 'long enough to be kept apart', f: 1}, g: 1}",
        );
        assert_eq!(told.as_deref(), Some(r#"{"d":{"a":false},"u":{"b":3},"i":{"g":1},"sc":{"u":{"d":2}}}"#));
        assert_eq!(delta("{a: 1, b: 1}", "{b: 1, a: 1}"), None);
    }

    #[test]
    fn arrays_grow_by_elements_and_shrink_by_their_length() {
        let before = "{a: ['some text that is long', 'and some more', 3]}";
        let grown = delta(before, "{a: ['some text that is long', 'and some more', 3, 4]}");
        assert_eq!(grown.as_deref(), Some(r#"{"sa":{"a":true,"u3":4}}"#));
        let shorter = "{a: ['some text that is long', 'and some more']}";
        assert_eq!(delta(before, shorter).as_deref(), Some(r#"{"sa":{"a":true,"l":2}}"#));
    }
}
