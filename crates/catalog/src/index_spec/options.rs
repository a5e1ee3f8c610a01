//! Options of indexes of all kinds, read and checked.

use crate::key_pattern::{cannot_create, is_true};
use crate::kinds::{self, KINDS};
use crate::partial_filter::PartialFilter;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, Element, StringOrder, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;

/// Options of every kind of index; kinds add their own.
/// Source: MongoDB manual, "createIndexes".
const OPTIONS: &[&str] = &[
    "key",
    "name",
    "ns",
    "v",
    "background",
    "unique",
    "sparse",
    "hidden",
    "collation",
    "expireAfterSeconds",
    "partialFilterExpression",
    "storageEngine",
    "clustered",
    "prepareUnique",
    "dropDups",
    "bucketSize",
    "originalSpec",
    "_id",
];
/// Options that the `_id` index may have.
const ID_OPTIONS: &[&str] = &["key", "name", "ns", "v", "collation", "clustered", "_id"];

/// Options of some kinds whose values are strings.
const STRINGS: &[&str] = &["default_language", "language_override"];
/// Options of some kinds whose values are numbers.
const NUMBERS: &[&str] = &[
    "2dsphereIndexVersion",
    "bits",
    "bucketSize",
    "coarsestIndexedLevel",
    "finestIndexedLevel",
    "max",
    "min",
    "textIndexVersion",
];

/// The values of options that every kind has.
#[derive(Default)]
pub(super) struct Options {
    pub is_unique: bool,
    pub prepares_unique: bool,
    pub is_sparse: bool,
    pub is_hidden: bool,
    pub partial_filter: Option<Arc<PartialFilter>>,
    pub expire_after_seconds: Option<i32>,
    pub strings: Option<StringOrder>,
    /// The version of its keys, which has no effect.
    pub version: Option<i32>,
    /// The options as `listIndexes` shows them.
    pub shown: DocumentBuf,
}

impl Options {
    pub fn read(&mut self, spec: DocumentRef<'_>, name: &str, value: ValueRef<'_>, of_kind: &[&str]) -> Result<()> {
        match name {
            "key" | "name" | "ns" => {}
            "v" => self.version = Some(version(spec, value)?),
            // Shown, but without effect, as in MongoDB since 4.2.
            "background" => {
                truth(name, value)?;
                self.shown.append(name, value);
            }
            "unique" | "sparse" | "hidden" | "prepareUnique" => self.read_flag(name, value)?,
            "partialFilterExpression" => {
                let filter = value.as_document().ok_or_else(|| wrong_type(name, "an object", value))?;
                self.partial_filter = Some(Arc::new(PartialFilter::parse(filter, StringOrder::BYTES)?));
                self.shown.append(name, value);
            }
            "expireAfterSeconds" => {
                let seconds = expiry(spec, value)?;
                self.expire_after_seconds = Some(seconds);
                self.shown.append(name, seconds);
            }
            // The user's specification of an index on a time series, kept in the index on its buckets. It does not
            // affect the keys.
            "originalSpec" => {
                value.as_document().ok_or_else(|| wrong_type(name, "an object", value))?;
                self.shown.append(name, value);
            }
            "storageEngine" => {
                let engines = value.as_document().ok_or_else(|| wrong_type(name, "an object", value))?;
                check_storage_engine(engines)?;
                self.shown.append(name, value);
            }
            "collation" => {
                self.strings = Some(collation(value)?);
            }
            // Has had no effect since MongoDB 3.0, and is not listed. Source: MongoDB issue SERVER-14710.
            "dropDups" => drop(truth(name, value)?),
            // Has no effect, and is not listed.
            "_id" => {}
            "clustered" => {
                if !truth(name, value)? {
                    return Err(Failure::new(ErrorCode(6_492_800), "Value 'false' for field 'clustered' is invalid"));
                }
                return Err(unsupported(name));
            }
            "bucketSize" => {
                check_type_of_kinds(name, value)?;
                self.shown.append(name, value);
            }
            // An option of this index's own kind, which reads the value itself.
            _ if of_kind.contains(&name) => check_type_of_kinds(name, value)?,
            "wildcardProjection" => {
                return Err(Failure::bad_value(format!("The field '{name}' is only allowed in an 'wildcard' index")));
            }
            _ if is_option(name) => self.read_of_other_kind(name, value)?,
            _ => {
                return Err(Failure::new(
                    ErrorCode::INVALID_INDEX_SPECIFICATION_OPTION,
                    format!(
                        "The field '{name}' is not valid for an index specification. Specification: {}",
                        ValueText(ValueRef::Document(spec))
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Reads an option that is shown only if it is true. `hidden` takes booleans only, the others numbers too.
    fn read_flag(&mut self, name: &str, value: ValueRef<'_>) -> Result<()> {
        let is_set = match value {
            ValueRef::Boolean(is_set) => is_set,
            _ if name == "hidden" => return Err(wrong_type(name, "a boolean", value)),
            _ => truth(name, value)?,
        };
        match name {
            "unique" => self.is_unique = is_set,
            "sparse" => self.is_sparse = is_set,
            "hidden" => self.is_hidden = is_set,
            _ => self.prepares_unique = is_set,
        }
        self.show_if(name, is_set);
        Ok(())
    }

    /// Checks the type of an option that another kind of index has. The option has no effect.
    /// Source: MongoDB issue SERVER-76108.
    fn read_of_other_kind(&mut self, name: &str, value: ValueRef<'_>) -> Result<()> {
        check_type_of_kinds(name, value)?;
        if name == "weights" {
            return Err(cannot_create(format!("the field '{name}' can only be specified with text indexes")));
        }
        if STRINGS.contains(&name) {
            self.shown.append(name, value);
        }
        Ok(())
    }

    fn show_if(&mut self, name: &str, is_so: bool) {
        if is_so {
            self.shown.append(name, true);
        }
    }

    pub fn check_together(&self, spec: DocumentRef<'_>, key: DocumentRef<'_>) -> Result<()> {
        if self.is_sparse && self.partial_filter.is_some() {
            return Err(cannot_create("cannot mix \"partialFilterExpression\" and \"sparse\" options".to_owned()));
        }
        if self.version == Some(1) && self.strings.is_some() {
            return Err(cannot_create(format!(
                "Invalid index specification {}; cannot create an index with the 'collation' option and v=1",
                ValueText(ValueRef::Document(spec))
            )));
        }
        // Terms and their scores count as one field.
        let fields = key.iter().filter(|field| field.name != kinds::TEXT_SCORES).count();
        if self.expire_after_seconds.is_some() && fields > 1 {
            return Err(cannot_create(format!(
                "TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: {}",
                ValueText(ValueRef::Document(spec))
            )));
        }
        Ok(())
    }
}

/// Checks the type of an option of some kinds, for every kind of index.
/// # Errors
/// `TypeMismatch`.
fn check_type_of_kinds(name: &str, value: ValueRef<'_>) -> Result<()> {
    let is_weights = matches!(value, ValueRef::Document(_) | ValueRef::Array(_) | ValueRef::String(_));
    if STRINGS.contains(&name) && value.as_str().is_none() {
        return Err(wrong_type(name, "a string", value));
    }
    if NUMBERS.contains(&name) && !value.is_number() {
        return Err(wrong_type(name, "a number", value));
    }
    if name == "weights" && !is_weights {
        return Err(wrong_type(name, "an object", value));
    }
    Ok(())
}

pub(super) fn is_option(name: &str) -> bool {
    OPTIONS.contains(&name) || KINDS.iter().any(|kind| kind.options.contains(&name))
}

pub(super) fn check_id_options(spec: DocumentRef<'_>) -> Result<Options> {
    if let Some(element) = spec.iter().find(|element| !ID_OPTIONS.contains(&element.name)) {
        return Err(Failure::new(
            ErrorCode::INVALID_INDEX_SPECIFICATION_OPTION,
            format!(
                "The field '{}' is not valid for an _id index specification. Specification: {}",
                element.name,
                ValueText(ValueRef::Document(spec))
            ),
        ));
    }
    let mut options = Options::default();
    spec.iter().try_for_each(|element| options.read(spec, element.name, element.value, &[]))?;
    Ok(options)
}

fn collation(value: ValueRef<'_>) -> Result<StringOrder> {
    match value {
        ValueRef::Document(collation) if collation.is_empty() => {
            Err(Failure::bad_value("The field 'collation' cannot be an empty object."))
        }
        ValueRef::Document(collation) => bunko_collation::parse(collation),
        other => Err(wrong_type("collation", "an object", other)),
    }
}

/// The value of `v`.
fn version(spec: DocumentRef<'_>, value: ValueRef<'_>) -> Result<i32> {
    if !value.is_number() {
        return Err(wrong_type("v", "a number", value));
    }
    let given = number::as_i64_exact(value).and_then(|given| i32::try_from(given).ok()).ok_or_else(|| {
        let given = ValueText(value);
        Failure::bad_value(format!("Index version must be representable as a 32-bit integer, but got {given}"))
    })?;
    if !matches!(given, 1 | 2) {
        return Err(cannot_create(format!(
            "Invalid index specification {}; cannot create an index with v={given}",
            ValueText(ValueRef::Document(spec))
        )));
    }
    Ok(given)
}

/// The value of `expireAfterSeconds`.
fn expiry(spec: DocumentRef<'_>, value: ValueRef<'_>) -> Result<i32> {
    let text = ValueText(ValueRef::Document(spec));
    let Some(number) = number::as_f64(value) else {
        return Err(cannot_create(format!(
            "TTL index 'expireAfterSeconds' option must be numeric, but received a type of '{}'. Index spec: {text}",
            value.kind().alias()
        )));
    };
    let seconds = number::truncate_to_i64(value).filter(|_| !number.is_nan());
    seconds.and_then(|seconds| i32::try_from(seconds).ok()).filter(|seconds| *seconds >= 0 && number >= 0.0).ok_or_else(
        || {
            cannot_create(format!(
                "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a different number \
                 than {}. Index spec: {text}",
                ValueText(value)
            ))
        },
    )
}

/// Checks options by engine. None of Bunko's engines has any, so only empty ones are accepted.
fn check_storage_engine(engines: DocumentRef<'_>) -> Result<()> {
    let says_nothing = |option: Element<'_>| option.name == "configString" && option.value.as_str() == Some("");
    for engine in engines {
        match engine.value.as_document() {
            Some(options) if options.iter().all(says_nothing) => {}
            Some(_) => {
                return Err(Failure::new(
                    ErrorCode::INVALID_OPTIONS,
                    format!("options of storage engine '{}' for an index are not supported", engine.name),
                ));
            }
            None => {
                return Err(Failure::bad_value(format!(
                    "'storageEngine.{}' has to be an embedded document.",
                    engine.name
                )));
            }
        }
    }
    Ok(())
}

pub(super) fn wrong_type(field: &str, expected: &str, value: ValueRef<'_>) -> Failure {
    Failure::type_mismatch(format!("The field '{field}' must be {expected}, but got {}", value.kind().alias()))
}

fn unsupported(option: &str) -> Failure {
    cannot_create(format!("the index option '{option}' is not supported"))
}

fn truth(name: &str, value: ValueRef<'_>) -> Result<bool> {
    if matches!(value, ValueRef::Boolean(_)) || number::as_f64(value).is_some() {
        return Ok(is_true(value));
    }
    Err(Failure::type_mismatch(format!(
        "The field '{name}' has value {}, which is not convertible to bool",
        ValueText(value)
    )))
}
