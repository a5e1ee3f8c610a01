//! Collections rebuilt from the events of a change stream.

use crate::rebuild::BROKEN;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_testkit::shell::print;
use std::collections::BTreeMap;

/// Documents by the bytes of `{_id}`.
pub type Documents = BTreeMap<Vec<u8>, DocumentBuf>;

/// All collections that a stream reports, by name.
#[derive(Clone, Default, PartialEq)]
pub struct Copy(pub BTreeMap<String, Documents>);

/// Counts of the events of all followers together, which show whether a run has tried enough.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub events: u64,
    pub of_transactions: u64,
    pub updates: u64,
    pub truncated: u64,
    pub ambiguous: u64,
    pub drops: u64,
    pub renames: u64,
    pub invalidations: u64,
}

/// Whether the stream continues after an event.
#[derive(Clone, Copy, PartialEq)]
pub enum Goes {
    On,
    /// Nothing follows: the event was an invalidation.
    Nowhere,
}

impl Copy {
    /// Applies an event.
    ///
    /// # Panics
    /// With [`BROKEN`] if the event is impossible in this state.
    pub fn apply(&mut self, event: DocumentRef<'_>, seen: &mut Seen) -> Goes {
        seen.events += 1;
        seen.of_transactions += u64::from(event.get("txnNumber").is_some());
        let name = name_at(event, "ns");
        match text(event, "operationType") {
            "insert" => self.insert(&name, event),
            "replace" => *self.document(&name, event) = inside(event, "fullDocument").to_owned(),
            "update" => {
                seen.updates += 1;
                let told = inside(event, "updateDescription");
                seen.truncated += u64::from(!array(told, "truncatedArrays").is_empty());
                seen.ambiguous += u64::from(!inside(told, "disambiguatedPaths").is_empty());
                let document = self.document(&name, event);
                *document = updated(document, told);
            }
            "delete" => {
                self.document(&name, event);
                self.collection(&name, event).remove(&key_of(event));
            }
            "create" => {
                let before = self.0.insert(name, Documents::new());
                assert!(before.is_none(), "{BROKEN}: it was there already: {}", shown(event));
            }
            "drop" => {
                seen.drops += 1;
                let before = self.0.remove(&name);
                assert!(before.is_some(), "{BROKEN}: it was not there: {}", shown(event));
            }
            "rename" => {
                seen.renames += 1;
                let moved = self.0.remove(&name).unwrap_or_else(|| panic!("{BROKEN}: not there: {}", shown(event)));
                self.0.insert(name_at(event, "to"), moved);
            }
            "dropDatabase" => {
                let left: Vec<_> = self.0.keys().filter(|left| left.starts_with(&format!("{name}."))).collect();
                assert!(left.is_empty(), "{BROKEN}: {left:?} outlive their database");
            }
            "invalidate" => {
                seen.invalidations += 1;
                return Goes::Nowhere;
            }
            "createIndexes" | "dropIndexes" | "modify" => {}
            other => panic!("{BROKEN}: an event of the kind '{other}'"),
        }
        Goes::On
    }

    fn insert(&mut self, name: &str, event: DocumentRef<'_>) {
        let document = inside(event, "fullDocument").to_owned();
        let before = self.collection(name, event).insert(key_of(event), document);
        assert!(before.is_none(), "{BROKEN}: it was there already: {}", shown(event));
    }

    fn collection(&mut self, name: &str, event: DocumentRef<'_>) -> &mut Documents {
        self.0.get_mut(name).unwrap_or_else(|| panic!("{BROKEN}: in no collection that was created: {}", shown(event)))
    }

    fn document(&mut self, name: &str, event: DocumentRef<'_>) -> &mut DocumentBuf {
        let found = self.collection(name, event).get_mut(&key_of(event));
        found.unwrap_or_else(|| panic!("{BROKEN}: a change of what was not there: {}", shown(event)))
    }

    /// The value of a field in one document, if both exist.
    pub fn number(&self, name: &str, id: &str, field: &str) -> Option<i64> {
        let key = DocumentBuf::new().with("_id", id).into_bytes();
        self.0.get(name)?.get(&key)?.as_ref().get(field).and_then(number::as_i64_exact)
    }

    /// The first difference from a server's state, in words.
    pub fn difference(&self, found: &Self) -> Option<String> {
        let names = |copy: &Self| copy.0.keys().cloned().collect::<Vec<_>>();
        if names(self) != names(found) {
            return Some(format!("rebuilt are {:?}, the server has {:?}", names(self), names(found)));
        }
        self.0.iter().find_map(|(name, documents)| {
            let there = &found.0[name];
            let keys = documents.keys().chain(there.keys());
            let different = keys.into_iter().find(|key| documents.get(*key) != there.get(*key))?;
            let shown = |document: Option<&DocumentBuf>| document.map(|document| shown(document.as_ref()));
            let (rebuilt, there) = (shown(documents.get(different)), shown(there.get(different)));
            Some(format!("{name}: rebuilt is {rebuilt:?}, the server has {there:?}"))
        })
    }
}

/// A document as text, cut if it is long.
pub fn shown(document: DocumentRef<'_>) -> String {
    print(ValueRef::Document(document)).chars().take(2000).collect()
}

/// The document's `{_id}` as bytes.
pub fn key_of(event: DocumentRef<'_>) -> Vec<u8> {
    inside(event, "documentKey").as_bytes().to_vec()
}

fn text<'d>(document: DocumentRef<'d>, field: &str) -> &'d str {
    document.get(field).and_then(ValueRef::as_str).unwrap_or_default()
}

fn inside<'d>(document: DocumentRef<'d>, field: &str) -> DocumentRef<'d> {
    let found = document.get(field).and_then(ValueRef::as_document);
    found.unwrap_or_else(|| panic!("{BROKEN}: no '{field}' in {}", shown(document)))
}

fn array<'d>(document: DocumentRef<'d>, field: &str) -> ArrayRef<'d> {
    let found = document.get(field).and_then(ValueRef::as_array);
    found.unwrap_or_else(|| panic!("{BROKEN}: no '{field}' in {}", shown(document)))
}

fn name_at(event: DocumentRef<'_>, field: &str) -> String {
    let namespace = event.get(field).and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
    match text(namespace, "coll") {
        "" => text(namespace, "db").to_owned(),
        collection => format!("{}.{collection}", text(namespace, "db")),
    }
}

/// One step of a path.
enum Step {
    Field(String),
    Index(usize),
    /// A field or an index: a path without disambiguation names elements of arrays by their numbers.
    Either(String),
}

/// A change of the value at a path.
#[derive(Clone, Copy)]
enum Change<'v> {
    Remove,
    Truncate(usize),
    Put(ValueRef<'v>),
}

/// The document after an `updateDescription`. Source: MongoDB manual 8.2, "update Event".
fn updated(document: &DocumentBuf, told: DocumentRef<'_>) -> DocumentBuf {
    let steps = |path: &str| steps_of(path, inside(told, "disambiguatedPaths"));
    let mut document = document.clone();
    for cut in array(told, "truncatedArrays").iter().filter_map(ValueRef::as_document) {
        let length = cut.get("newSize").and_then(number::as_i64_exact).expect("a number");
        document = changed(document.as_ref(), &steps(text(cut, "field")), Change::Truncate(length as usize));
    }
    for path in array(told, "removedFields").iter().filter_map(ValueRef::as_str) {
        document = changed(document.as_ref(), &steps(path), Change::Remove);
    }
    for field in inside(told, "updatedFields") {
        document = changed(document.as_ref(), &steps(field.name), Change::Put(field.value));
    }
    document
}

fn steps_of(path: &str, told_apart: DocumentRef<'_>) -> Vec<Step> {
    match told_apart.get(path).and_then(ValueRef::as_array) {
        None => path.split('.').map(|part| Step::Either(part.to_owned())).collect(),
        Some(parts) => parts
            .iter()
            .map(|part| match part {
                ValueRef::String(name) => Step::Field(name.to_owned()),
                index => Step::Index(number::as_i64_exact(index).expect("a number") as usize),
            })
            .collect(),
    }
}

fn changed(document: DocumentRef<'_>, steps: &[Step], change: Change<'_>) -> DocumentBuf {
    let (Step::Field(name) | Step::Either(name)) = &steps[0] else {
        panic!("{BROKEN}: an index leads into a document: {}", shown(document));
    };
    let (mut changed, mut is_there) = (DocumentBuf::new(), false);
    for field in document {
        if field.name == name {
            is_there = true;
            value_changed(Some(field.value), &steps[1..], change, &mut |value| {
                changed.append(name, value);
            });
        } else {
            changed.append(field.name, field.value);
        }
    }
    if !is_there {
        value_changed(None, &steps[1..], change, &mut |value| {
            changed.append(name, value);
        });
    }
    changed
}

fn element_changed(array: ArrayRef<'_>, steps: &[Step], change: Change<'_>) -> ArrayBuf {
    let index = match &steps[0] {
        Step::Index(index) => *index,
        Step::Either(digits) => digits.parse().unwrap_or_else(|_| panic!("{BROKEN}: '{digits}' leads into an array")),
        Step::Field(name) => panic!("{BROKEN}: field '{name}' leads into an array"),
    };
    let mut changed = ArrayBuf::new();
    let length = array.iter().count();
    for position in 0..length.max(index + 1) {
        let value = array.iter().nth(position);
        if position == index {
            value_changed(value, &steps[1..], change, &mut |value| {
                changed.push(value);
            });
        } else {
            // Elements between the end and the new element are null.
            changed.push(value.unwrap_or(ValueRef::Null));
        }
    }
    changed
}

fn value_changed(value: Option<ValueRef<'_>>, steps: &[Step], change: Change<'_>, put: &mut dyn FnMut(ValueRef<'_>)) {
    match (value, steps.is_empty(), change) {
        (Some(ValueRef::Document(document)), false, _) => put((&changed(document, steps, change)).into()),
        (Some(ValueRef::Array(array)), false, _) => put((&element_changed(array, steps, change)).into()),
        (Some(ValueRef::Array(array)), true, Change::Truncate(length)) => {
            assert!(array.iter().count() > length, "{BROKEN}: an array is cut to {length}, and is no longer");
            put((&array.iter().take(length).collect::<ArrayBuf>()).into());
        }
        (Some(_), true, Change::Remove) => {}
        (_, true, Change::Put(new)) => put(new),
        (value, ..) => panic!("{BROKEN}: a path leads to {value:?}"),
    }
}
