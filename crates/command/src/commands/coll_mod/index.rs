//! `collMod`'s `index`: which index is meant, and what is to become of it.

use crate::fields::wrong_type;
use crate::invocation::Invocation;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, ValueRef, number, order};
use bunko_catalog::{Collection, Index};
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;

/// The operand of `index`.
pub(super) struct IndexChange<'a> {
    name: Option<&'a str>,
    key_pattern: Option<DocumentRef<'a>>,
    expire_after_seconds: Option<ValueRef<'a>>,
    hidden: Option<bool>,
    unique: Option<bool>,
    prepare_unique: Option<bool>,
}

impl<'a> IndexChange<'a> {
    /// Reads it.
    /// # Errors
    /// `TypeMismatch`, `IDLUnknownField`.
    pub fn parse(index: DocumentRef<'a>) -> Result<Self> {
        let mut change = Self {
            name: None,
            key_pattern: None,
            expire_after_seconds: None,
            hidden: None,
            unique: None,
            prepare_unique: None,
        };
        for element in index {
            let (value, place) = (element.value, format!("collMod.index.{}", element.name));
            let is_given = !value.is_nullish();
            match element.name {
                "name" if is_given => {
                    change.name = Some(value.as_str().ok_or_else(|| wrong_type(&place, value, "string"))?);
                }
                "keyPattern" if is_given => {
                    change.key_pattern = Some(value.as_document().ok_or_else(|| wrong_type(&place, value, "object"))?);
                }
                "expireAfterSeconds" if is_given => {
                    if !value.is_number() {
                        return Err(wrong_type(&place, value, "long"));
                    }
                    change.expire_after_seconds = Some(value);
                }
                "hidden" if is_given => change.hidden = Some(flag(&place, value)?),
                "unique" if is_given => change.unique = Some(flag(&place, value)?),
                "prepareUnique" if is_given => change.prepare_unique = Some(flag(&place, value)?),
                "name" | "keyPattern" | "expireAfterSeconds" | "hidden" | "unique" | "prepareUnique" => {}
                _ => {
                    return Err(Failure::new(
                        ErrorCode::IDL_UNKNOWN_FIELD,
                        format!("BSON field '{place}' is an unknown field."),
                    ));
                }
            }
        }
        Ok(change)
    }

    /// Whether an index is to become unique, which is all that can be tried without being done.
    pub fn converts_to_unique(&self) -> bool {
        self.unique == Some(true)
    }

    /// Carries it out. Properties that indexes do not have here can only be given the value that they have.
    /// # Errors
    /// `InvalidOptions`, `BadValue`, `IndexNotFound`; `CommandNotSupported` for a property that indexes do not have here.
    pub fn run(&self, invocation: &Invocation<'_>, collection: &Collection) -> Result<()> {
        let index = self.find(collection)?;
        if self.unique == Some(false) {
            return Err(Failure::bad_value("Cannot make index non-unique"));
        }
        if self.hidden == Some(true) && index.is_id() {
            return Err(Failure::bad_value("can't hide _id index"));
        }
        if self.expire_after_seconds.is_some() && index.fields.len() > 1 {
            return Err(invalid("TTL indexes are single-field indexes, compound indexes do not support TTL"));
        }
        if self.unique == Some(true) && !index.is_unique {
            return Err(invalid("Cannot make index unique with 'unique: true' without 'prepareUnique' set before"));
        }
        let not_built = [
            ("index.expireAfterSeconds", self.expire_after_seconds.is_some()),
            ("index.hidden", self.hidden == Some(true)),
            ("index.prepareUnique", self.prepare_unique == Some(true)),
        ];
        match not_built.iter().find(|(_, is_asked)| *is_asked) {
            Some((option, _)) => Err(invocation.unsupported(option)),
            None => Ok(()),
        }
    }

    fn find(&self, collection: &Collection) -> Result<Arc<Index>> {
        let indexes = collection.ready_indexes();
        let (found, shown) = match (self.name, self.key_pattern) {
            (Some(_), Some(_)) => return Err(invalid("Cannot specify both key pattern and name.")),
            (None, None) => return Err(invalid("must specify either index name or key pattern")),
            _ if !self.changes_something() => {
                return Err(invalid("no expireAfterSeconds, hidden, unique, or prepareUnique field"));
            }
            (Some(name), None) => (indexes.into_iter().find(|index| index.name == name), name.to_owned()),
            (None, Some(pattern)) => {
                let is_meant = |index: &Arc<Index>| order::compare_documents(index.key_pattern(), pattern).is_eq();
                (indexes.into_iter().find(is_meant), ValueText(ValueRef::Document(pattern)).to_string())
            }
        };
        found.ok_or_else(|| {
            let namespace = collection.namespace();
            Failure::new(ErrorCode::INDEX_NOT_FOUND, format!("cannot find index {shown} for ns {namespace}"))
        })
    }

    fn changes_something(&self) -> bool {
        self.expire_after_seconds.is_some()
            || self.hidden.is_some()
            || self.unique.is_some()
            || self.prepare_unique.is_some()
    }
}

fn invalid(message: &str) -> Failure {
    Failure::new(ErrorCode::INVALID_OPTIONS, message)
}

/// A boolean, or a number that stands for one.
fn flag(place: &str, value: ValueRef<'_>) -> Result<bool> {
    match value {
        ValueRef::Boolean(flag) => Ok(flag),
        value => number::as_f64(value).map(|number| number != 0.0).ok_or_else(|| wrong_type(place, value, "bool")),
    }
}
