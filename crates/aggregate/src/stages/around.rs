//! A document without its value at a path, split so that other values can be put there quickly.

use bunko_bson::{DocumentRef, ValueRef, Writer};
use std::collections::BTreeSet;

/// The fields that later stages read of a document, and of the documents on the way to a path.
pub(super) struct ReadFields {
    /// For each path component, the names beside it that are read; `None` if all are.
    names: Vec<Option<BTreeSet<Vec<u8>>>>,
}

impl ReadFields {
    /// Notes the names beside `path` that `fields`, dotted paths, need.
    pub fn new(path: &[Box<str>], fields: &BTreeSet<String>) -> Self {
        let names = (0..path.len()).map(|depth| {
            let mut names = BTreeSet::new();
            for field in fields {
                let mut components = field.split('.');
                let above = &path[..depth];
                let shared = above.iter().take_while(|name| components.next() == Some(&***name)).count();
                match (shared == depth, components.next()) {
                    (true, Some(name)) => {
                        names.insert(name.as_bytes().to_vec());
                    }
                    // The document at this depth, or one around it, is read whole.
                    (true, None) => return None,
                    (false, _) if field.split('.').count() <= shared => return None,
                    (false, _) => {}
                }
            }
            Some(names)
        });
        Self { names: names.collect() }
    }

    /// Whether only the value on the path is read of the document at `depth`.
    fn reads_nothing_around(&self, depth: usize, component: &str) -> bool {
        let names = self.names.get(depth).and_then(Option::as_ref);
        names.is_some_and(|names| names.iter().all(|name| name == component.as_bytes()))
    }

    fn reads(&self, depth: usize, name: &[u8]) -> bool {
        self.names.get(depth).is_none_or(|names| names.as_ref().is_none_or(|names| names.contains(name)))
    }
}

/// For each document on the way to the value: the fields before and after it.
#[derive(Default)]
pub(super) struct Around {
    sides: Vec<Sides>,
}

/// Two documents: the fields before and the fields after.
#[derive(Default)]
struct Sides {
    before: Vec<u8>,
    behind: Vec<u8>,
}

impl Around {
    /// Splits a document around the first field with each name of the path. All values on the way must be documents.
    /// Fields that later stages do not read are omitted.
    pub fn take_apart(&mut self, document: DocumentRef<'_>, path: &[Box<str>], read: Option<&ReadFields>) {
        self.sides.resize_with(path.len(), Sides::default);
        let mut document = document;
        for (depth, (name, sides)) in path.iter().zip(&mut self.sides).enumerate() {
            let mut inner = DocumentRef::EMPTY;
            sides.before.clear();
            sides.behind.clear();
            let mut before = Writer::new(&mut sides.before);
            let mut behind = Writer::new(&mut sides.behind);
            let mut is_behind = false;
            if read.is_some_and(|read| read.reads_nothing_around(depth, name)) {
                let value = if depth + 1 < path.len() { document.get(name) } else { None };
                document = value.and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
                before.end();
                behind.end();
                continue;
            }
            for element in document.iter().encoded() {
                if !is_behind && element.name_bytes() == name.as_bytes() {
                    is_behind = true;
                    inner = element.value().and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
                } else if read.is_none_or(|read| read.reads(depth, element.name_bytes())) {
                    let side = if is_behind { &mut behind } else { &mut before };
                    side.append_encoded(&element);
                }
            }
            before.end();
            behind.end();
            document = inner;
        }
    }

    /// Writes the document with `value` at the path.
    pub fn write(&self, path: &[Box<str>], value: ValueRef<'_>, buffer: &mut Vec<u8>) {
        let mut writer = Writer::new(buffer);
        let Some((last, outer)) = path.split_last() else { return };
        for (name, sides) in outer.iter().zip(&self.sides) {
            writer.extend(DocumentRef::trusted(&sides.before)).begin_document(name);
        }
        let innermost = &self.sides[outer.len()];
        writer.extend(DocumentRef::trusted(&innermost.before)).append(last, value);
        for sides in self.sides.iter().rev() {
            writer.extend(DocumentRef::trusted(&sides.behind)).end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentBuf;
    use bunko_testkit::shell;

    fn put(document: &str, path: &str, fields: Option<&[&str]>) -> String {
        let document = shell::parse_document(document).expect("a document");
        let path: Vec<Box<str>> = path.split('.').map(Into::into).collect();
        let read = fields.map(|fields| ReadFields::new(&path, &fields.iter().map(ToString::to_string).collect()));
        let (mut around, mut buffer) = (Around::default(), Vec::new());
        // Splitting clears the parts of an earlier document.
        around.take_apart(DocumentBuf::new().with("old", 1).as_ref(), &path, None);
        around.take_apart(document.as_ref(), &path, read.as_ref());
        around.write(&path, ValueRef::Int32(9), &mut buffer);
        format!("{:?}", DocumentRef::parse(&buffer).expect("well formed"))
    }

    #[test]
    fn a_value_takes_the_place_of_the_first_of_its_name() {
        assert_eq!(put("{a: 1, b: [], c: 2}", "b", None), put("{a: 1, b: 9, c: 2}", "b", None));
        let nested = "{x: 1, a: {y: 2, b: [1, 2], z: 3}, w: 4}";
        assert_eq!(put(nested, "a.b", None), put("{x: 1, a: {y: 2, b: 9, z: 3}, w: 4}", "a.b", None));
    }

    #[test]
    fn unread_fields_are_left_out() {
        let nested = "{x: 1, a: {y: 2, b: [1, 2], z: 3}, w: 4}";
        let only = |fields: &[&str]| put(nested, "a.b", Some(fields));
        assert_eq!(only(&["a.b", "w"]), put("{a: {b: 0}, w: 4}", "a.b", None));
        assert_eq!(only(&["a.b", "a.z.q"]), put("{a: {b: 0, z: 3}}", "a.b", None));
        assert_eq!(only(&["a"]), put("{a: {y: 2, b: 0, z: 3}}", "a.b", None));
        assert_eq!(only(&[]), put("{a: {b: 0}}", "a.b", None));
        assert_eq!(only(&["a.b.c", "aa"]), put("{a: {b: 0}}", "a.b", None));
    }
}
