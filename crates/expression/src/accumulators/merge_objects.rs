//! `$mergeObjects`: the fields of all documents; of equal names, the last value counts.

use super::{Accumulator, Form, Kind, Strings};
use crate::printed::printed;
use crate::{Engine, Evaluated};
use bunko_bson::{DocumentBuf, DocumentRef, Element, Value, ValueRef};
use bunko_errors::{Failure, Result};
use std::collections::BTreeMap;

pub(super) const KIND: Kind = Kind {
    name: "$mergeObjects",
    strings: Strings::AsBytes,
    form: Form::Expression,
    make: |settings| make(settings.engine),
};

/// Up to this many bytes, repeated names are removed only at the end.
const UNTIDY_BYTES: usize = 4096;

pub(crate) fn make(engine: Engine) -> Box<dyn Accumulator> {
    Box::new(Merged { engine, ..Merged::default() })
}

/// Fields in the order of arrival, with repeated names. Repeated names are removed whenever the size has doubled, so
/// that a document costs time for its own fields and not for all fields.
#[derive(Default)]
struct Merged {
    fields: DocumentBuf,
    tidy_bytes: usize,
    engine: Engine,
}

impl Accumulator for Merged {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        let addition = match value.get() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(()),
            Some(ValueRef::Document(document)) => document,
            Some(_) => {
                let (found, kind) = (printed(&value), value.type_name());
                let message = format!("$mergeObjects requires object inputs, but input {found} is of type {kind}");
                return Err(Failure::new(self.engine.code(40400, 5_911_200), message));
            }
        };
        self.fields.extend(addition);
        if self.fields.len_bytes() > 2 * self.tidy_bytes + UNTIDY_BYTES {
            self.fields = tidied(self.fields.as_ref());
            self.tidy_bytes = self.fields.len_bytes();
        }
        Ok(())
    }

    fn value(&self) -> Value {
        Value::Document(tidied(self.fields.as_ref()))
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.fields.len_bytes()
    }
}

/// The fields with each name once: at its first place, with its last value.
fn tidied(fields: DocumentRef<'_>) -> DocumentBuf {
    let mut kept: Vec<Element<'_>> = Vec::new();
    let mut positions = BTreeMap::new();
    for element in fields {
        match positions.get(element.name) {
            Some(&position) => kept[position] = element,
            None => {
                positions.insert(element.name, kept.len());
                kept.push(element);
            }
        }
    }
    let mut document = DocumentBuf::new();
    for element in kept {
        document.append(element.name, element.value);
    }
    document
}
