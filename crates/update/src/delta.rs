//! What operators change of a document, as entries of the oplog have it (`diff` of `{$v: 2}`): by the paths that they name.
//!
//! A document's delta: `d` names fields that went, `u` has new values of fields, `i` fields that came behind the last, `s` and a
//! field's name the delta inside it. An array's begins with `a: true`; `u` and an index has a new element, `s` and an index the
//! delta inside that element. Elements that were put between an array's end and a new one are null, and not told.
//! Source: the format as oplogs of MongoDB 5.0 and later show it.
//!
//! It is written while the document is made. The rejected design, a comparison of both versions, cannot know that an operator
//! replaced a whole value in which little became different.

use bunko_bson::{DocumentBuf, Type};

/// How deep deltas lie in each other; what changes below is told as a new value of what holds it.
const DEPTH_MAX: usize = 60;

/// What is told of one application of an update.
pub(crate) struct Delta {
    /// From the whole document to what is looked at now.
    levels: Vec<Level>,
}

/// The delta of one document or array, as bytes of elements.
enum Level {
    Document { gone: Vec<u8>, given: Vec<u8>, came: Vec<u8>, inside: Vec<u8> },
    Array { elements: Vec<u8> },
}

impl Delta {
    pub fn new() -> Self {
        Self { levels: Vec::new() }
    }

    /// What follows is inside a document, until [`Self::leave`].
    pub fn enter_document(&mut self) {
        self.levels.push(Level::Document { gone: vec![], given: vec![], came: vec![], inside: vec![] });
    }

    /// What follows is inside an array, until [`Self::leave`].
    pub fn enter_array(&mut self) {
        self.levels.push(Level::Array { elements: Vec::new() });
    }

    /// The document or array is complete: `element` is what it has become.
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

    /// A field or element has another value.
    pub fn updated(&mut self, element: &[u8]) {
        match self.levels.last_mut() {
            Some(Level::Document { given, .. }) => given.extend_from_slice(element),
            Some(Level::Array { elements }) => put_renamed(elements, element),
            None => {}
        }
    }

    /// A field or element is there that was not.
    pub fn inserted(&mut self, element: &[u8]) {
        match self.levels.last_mut() {
            Some(Level::Document { came, .. }) => came.extend_from_slice(element),
            Some(Level::Array { elements }) => put_renamed(elements, element),
            None => {}
        }
    }

    /// A field is gone.
    pub fn removed(&mut self, element: &[u8]) {
        if let Some(Level::Document { gone, .. }) = self.levels.last_mut() {
            gone.push(Type::Boolean as u8);
            gone.extend_from_slice(name(element));
            gone.extend_from_slice(&[0, 0]);
        }
    }

    /// The whole document's, once that was left by nobody.
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

/// An array's element under its name in a delta.
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
