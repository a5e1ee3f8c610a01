//! The changes that operators make to a document, in the oplog's format (`diff` of `{$v: 2}`): by paths.
//!
//! Delta of a document: `d` names removed fields, `u` has new values of fields, `i` has fields appended after the last,
//! and `s` with a field's name has the delta inside that field. Delta of an array: starts with `a: true`; `u` with an
//! index has a new element, `s` with an index has the delta inside that element. Elements that pad an array up to a new
//! one are null and are not recorded.
//! Source: the format as oplogs of MongoDB 5.0 and later show it.
//!
//! The delta is written while the document is made. The rejected design, a comparison of both versions, cannot know
//! that an operator replaced a whole value that changed little.

use bunko_bson::{DocumentBuf, Type};

/// Maximum depth of nested deltas; a deeper change is recorded as a new value of the field around it.
const DEPTH_MAX: usize = 60;

/// The delta of one application of an update.
pub(crate) struct Delta {
    /// The levels from the whole document to the current one.
    levels: Vec<Level>,
}

/// The delta of one document or array, as encoded elements.
enum Level {
    Document { gone: Vec<u8>, given: Vec<u8>, came: Vec<u8>, inside: Vec<u8> },
    Array { elements: Vec<u8> },
}

impl Delta {
    pub fn new() -> Self {
        Self { levels: Vec::new() }
    }

    /// Starts the delta of a document, which ends with [`Self::leave`].
    pub fn enter_document(&mut self) {
        self.levels.push(Level::Document { gone: vec![], given: vec![], came: vec![], inside: vec![] });
    }

    /// Starts the delta of an array, which ends with [`Self::leave`].
    pub fn enter_array(&mut self) {
        self.levels.push(Level::Array { elements: Vec::new() });
    }

    /// Ends the delta of a document or array; `element` is its new value.
    pub fn leave(&mut self, element: &[u8]) {
        let depth = self.levels.len();
        let Some(inside) = self.levels.pop().filter(|level| !level.is_empty()) else { return };
        if depth > DEPTH_MAX {
            return self.updated(element);
        }
        if let Some(Level::Document { inside: sections, .. } | Level::Array { elements: sections }) =
            self.levels.last_mut()
        {
            put_document(sections, "s", name(element), |bytes| inside.write(bytes));
        }
    }

    /// Records a new value of a field or element.
    pub fn updated(&mut self, element: &[u8]) {
        match self.levels.last_mut() {
            Some(Level::Document { given, .. }) => given.extend_from_slice(element),
            Some(Level::Array { elements }) => put_renamed(elements, element),
            None => {}
        }
    }

    /// Records a new field or element.
    pub fn inserted(&mut self, element: &[u8]) {
        match self.levels.last_mut() {
            Some(Level::Document { came, .. }) => came.extend_from_slice(element),
            Some(Level::Array { elements }) => put_renamed(elements, element),
            None => {}
        }
    }

    /// Records a removed field.
    pub fn removed(&mut self, element: &[u8]) {
        if let Some(Level::Document { gone, .. }) = self.levels.last_mut() {
            gone.push(Type::Boolean as u8);
            gone.extend_from_slice(name(element));
            gone.extend_from_slice(&[0, 0]);
        }
    }

    /// The delta of the whole document, which is the last level left.
    pub fn finish(mut self) -> DocumentBuf {
        let mut bytes = Vec::new();
        if let Some(level) = self.levels.pop() {
            write_document(&mut bytes, |bytes| level.write(bytes));
        } else {
            write_document(&mut bytes, |_| ());
        }
        DocumentBuf::from_trusted(bytes)
    }
}

impl Level {
    fn is_empty(&self) -> bool {
        match self {
            Self::Document { gone, given, came, inside } => {
                [gone, given, came, inside].iter().all(|section| section.is_empty())
            }
            Self::Array { elements } => elements.is_empty(),
        }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Document { gone, given, came, inside } => {
                for (section, fields) in [("d", gone), ("u", given), ("i", came)] {
                    if !fields.is_empty() {
                        put_document(bytes, section, b"", |bytes| bytes.extend_from_slice(fields));
                    }
                }
                bytes.extend_from_slice(inside);
            }
            Self::Array { elements } => {
                bytes.extend_from_slice(&[Type::Boolean as u8, b'a', 0, 1]);
                bytes.extend_from_slice(elements);
            }
        }
    }
}

/// The name of an encoded element.
fn name(element: &[u8]) -> &[u8] {
    element[1..].split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Appends an array element under the name that the delta gives it: `u` and its index.
fn put_renamed(elements: &mut Vec<u8>, element: &[u8]) {
    elements.extend_from_slice(&[element[0], b'u']);
    elements.extend_from_slice(&element[1..]);
}

fn put_document(bytes: &mut Vec<u8>, section: &str, name: &[u8], content: impl FnOnce(&mut Vec<u8>)) {
    bytes.push(Type::Document as u8);
    bytes.extend_from_slice(section.as_bytes());
    bytes.extend_from_slice(name);
    bytes.push(0);
    write_document(bytes, content);
}

fn write_document(bytes: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    content(bytes);
    bytes.push(0);
    let length = ((bytes.len() - start) as u32).to_le_bytes();
    bytes[start..start + 4].copy_from_slice(&length);
}
