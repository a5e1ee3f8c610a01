//! A strict reader of a document: each field is read by name and type, and unknown fields are errors.

use bunko_bson::{ArrayRef, DocumentRef, Value, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use std::cell::RefCell;

/// The error code of a [`Reader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A definition of an index: `BadValue`.
    Definition,
    /// A search: `UnknownError`, with which errors of a search node reach clients.
    Query,
}

impl Refusal {
    /// An error with this message.
    pub fn failure(self, message: impl Into<String>) -> Failure {
        let code = match self {
            Self::Definition => ErrorCode::BAD_VALUE,
            Self::Query => ErrorCode::UNKNOWN_ERROR,
        };
        Failure::new(code, message)
    }
}

/// Reads a document strictly. A null field counts as missing.
pub struct Reader<'a> {
    document: DocumentRef<'a>,
    /// The path of the document, for messages; empty for the outermost.
    path: String,
    refusal: Refusal,
    /// The names of the fields read.
    known: RefCell<Vec<String>>,
}

impl<'a> Reader<'a> {
    /// A reader of the document at `path`.
    pub fn new(document: DocumentRef<'a>, path: impl Into<String>, refusal: Refusal) -> Self {
        Self { document, path: path.into(), refusal, known: RefCell::default() }
    }

    /// A reader of a value, which must be a document.
    /// # Errors
    /// If the value is not a document.
    pub fn of_value(value: ValueRef<'a>, path: impl Into<String>, refusal: Refusal) -> Result<Self> {
        let path = path.into();
        match value {
            ValueRef::Document(document) => Ok(Self::new(document, path, refusal)),
            _ => Err(refusal.failure(format!("\"{path}\" must be a document"))),
        }
    }

    /// The document itself.
    pub fn document(&self) -> DocumentRef<'a> {
        self.document
    }

    /// The error code that the reader uses.
    pub fn refusal(&self) -> Refusal {
        self.refusal
    }

    /// The path of a field.
    pub fn at(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// An error about a field.
    pub fn wrong(&self, name: &str, what: &str) -> Failure {
        self.refusal.failure(format!("\"{}\" {what}", self.at(name)))
    }

    /// An error about the document.
    pub fn failure(&self, what: &str) -> Failure {
        match self.path.as_str() {
            "" => self.refusal.failure(what),
            path => self.refusal.failure(format!("\"{path}\" {what}")),
        }
    }

    /// Whether the field exists, null or not.
    pub fn has(&self, name: &str) -> bool {
        self.document.get(name).is_some()
    }

    /// A field of any type.
    pub fn value(&self, name: &str) -> Option<ValueRef<'a>> {
        self.known.borrow_mut().push(name.to_owned());
        #[cfg(test)]
        tests::ASKED.with_borrow_mut(|asked| asked.insert(name.to_owned()));
        self.document.get(name).filter(|value| !matches!(value, ValueRef::Null))
    }

    /// Reads a field; `expected` names the required type.
    fn typed<T>(&self, name: &str, expected: &str, read: impl FnOnce(ValueRef<'a>) -> Option<T>) -> Result<Option<T>> {
        let Some(value) = self.value(name) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| self.wrong(name, &format!("must be {expected}")))
    }

    /// A string.
    /// # Errors
    /// If it is not a string.
    pub fn string(&self, name: &str) -> Result<Option<&'a str>> {
        self.typed(name, "a string", ValueRef::as_str)
    }

    /// A string that is not empty.
    /// # Errors
    /// If it is not a string, or empty.
    pub fn word(&self, name: &str) -> Result<Option<&'a str>> {
        let word = self.string(name)?;
        if word == Some("") {
            return Err(self.wrong(name, "cannot be empty"));
        }
        Ok(word)
    }

    /// A boolean.
    /// # Errors
    /// If it is not a boolean.
    pub fn boolean(&self, name: &str) -> Result<Option<bool>> {
        self.typed(name, "a boolean", |value| match value {
            ValueRef::Boolean(value) => Some(value),
            _ => None,
        })
    }

    /// An integer, in any type of number except a decimal.
    /// # Errors
    /// If it is not an integer.
    pub fn integer(&self, name: &str) -> Result<Option<i64>> {
        self.typed(name, "an integer", |value| match value {
            ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_) => number::as_i64_exact(value),
            _ => None,
        })
    }

    /// A number, in any type except a decimal.
    /// # Errors
    /// If it is not a number.
    pub fn number(&self, name: &str) -> Result<Option<f64>> {
        self.typed(name, "a number", |value| match value {
            ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_) => number::as_f64(value),
            _ => None,
        })
    }

    /// An array.
    /// # Errors
    /// If it is not an array.
    pub fn array(&self, name: &str) -> Result<Option<ArrayRef<'a>>> {
        self.typed(name, "an array", ValueRef::as_array)
    }

    /// A reader of a document.
    /// # Errors
    /// If it is not a document.
    pub fn inner(&self, name: &str) -> Result<Option<Self>> {
        let document = self.typed(name, "a document", ValueRef::as_document)?;
        Ok(document.map(|document| Self::new(document, self.at(name), self.refusal)))
    }

    /// Readers of the documents in an array.
    /// # Errors
    /// If it is not an array of documents.
    pub fn inners(&self, name: &str) -> Result<Option<Vec<Self>>> {
        let Some(array) = self.array(name)? else { return Ok(None) };
        let read = |(position, value)| Self::of_value(value, format!("{}[{position}]", self.at(name)), self.refusal);
        array.iter().enumerate().map(read).collect::<Result<_>>().map(Some)
    }

    /// A document, or an array of documents.
    /// # Errors
    /// If it is neither.
    pub fn one_or_several(&self, name: &str) -> Result<Option<Vec<Self>>> {
        match self.value(name) {
            None => Ok(None),
            Some(ValueRef::Array(_)) => self.inners(name),
            Some(_) => Ok(self.inner(name)?.map(|only| vec![only])),
        }
    }

    /// The strings of an array.
    /// # Errors
    /// If it is not an array of strings.
    pub fn strings(&self, name: &str) -> Result<Option<Vec<String>>> {
        let Some(array) = self.array(name)? else { return Ok(None) };
        let read = |value: ValueRef<'_>| {
            value.as_str().map(str::to_owned).ok_or_else(|| self.wrong(name, "must be an array of strings"))
        };
        array.iter().map(read).collect::<Result<_>>().map(Some)
    }

    /// The meaning of a word from a list; `None` if the field is missing.
    /// # Errors
    /// If it is another word.
    pub fn one_of<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>> {
        let Some(found) = self.string(name)? else { return Ok(None) };
        let Some((_, meant)) = words.iter().find(|(word, _)| *word == found) else {
            let words = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
            return Err(self.wrong(name, &format!("must be one of [{words}]")));
        };
        Ok(Some(*meant))
    }

    /// A value that must be present.
    /// # Errors
    /// If it is missing.
    pub fn required<T>(&self, found: Option<T>, name: &str) -> Result<T> {
        found.ok_or_else(|| self.wrong(name, "is required"))
    }

    /// An integer within bounds.
    /// # Errors
    /// If it is no such integer.
    pub fn integer_within(&self, name: &str, least: i64, most: i64) -> Result<Option<i64>> {
        let found = self.integer(name)?;
        if found.is_some_and(|found| !(least..=most).contains(&found)) {
            return Err(self.wrong(name, &format!("must be within bounds [{least}, {most}]")));
        }
        Ok(found)
    }

    /// Refuses fields that are known but not supported.
    /// # Errors
    /// If one of the fields is present.
    pub fn not_supported_yet(&self, names: &[&str]) -> Result<()> {
        match names.iter().find(|name| self.value(name).is_some()) {
            Some(name) => Err(Failure::not_supported_yet(&self.at(name))),
            None => Ok(()),
        }
    }

    /// Ends reading.
    /// # Errors
    /// If the document has fields that were not read.
    pub fn done(&self) -> Result<()> {
        let known = self.known.borrow();
        match self.document.iter().find(|field| !known.iter().any(|known| known == field.name)) {
            Some(field) => Err(self.failure(&format!("unrecognized field \"{}\"", field.name))),
            None => Ok(()),
        }
    }

    /// A copy of a value.
    pub fn copy(&self, name: &str) -> Option<Value> {
        self.value(name).map(ValueRef::to_value)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    thread_local! {
        /// The names of all fields that this thread has read.
        pub(crate) static ASKED: RefCell<BTreeSet<String>> = RefCell::default();
    }
}
