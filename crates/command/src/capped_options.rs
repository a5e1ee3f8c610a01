//! The options of `create` and `collMod` that limit a capped collection.

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::Fields;

/// Largest size of a capped collection, in bytes. Source: MongoDB manual, "create", `size`.
pub(crate) const BYTES_MAX: i64 = 1 << 50;
/// The document limit that stands for no limit.
pub(crate) const DOCUMENTS_MAX: i64 = i32::MAX as i64;

/// The options of `create` that limit a capped collection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CappedOptions {
    pub is_capped: bool,
    /// Maximum size in bytes, if given.
    pub size: Option<i64>,
    pub documents: Option<i64>,
}

impl CappedOptions {
    /// # Errors
    /// As [`parse_size`] and [`parse_documents`].
    pub(crate) fn parse(fields: &Fields<'_>) -> Result<Self> {
        Ok(Self {
            is_capped: fields.boolean("capped", false)?,
            size: parse_size(fields, "size")?,
            documents: parse_documents(fields, "max")?,
        })
    }
}

/// A requested size in bytes, from 1 to 2^50. Doubles are truncated, decimals are rounded half to even.
/// # Errors
/// `TypeMismatch`; `BadValue` outside the range.
pub(crate) fn parse_size(fields: &Fields<'_>, name: &str) -> Result<Option<i64>> {
    let Some(value) = fields.field(name) else { return Ok(None) };
    let size = whole(fields, name, value)?;
    if (1..=BYTES_MAX).contains(&size) {
        return Ok(Some(size));
    }
    Err(Failure::bad_value(format!("BSON field '{name}' value must be >= 1 and <= {BYTES_MAX}, actual value '{size}'")))
}

/// As [`parse_size`], for commands that create a capped collection from another one.
/// # Errors
/// `InvalidOptions` if it is not a number or below 1; `BadValue` above the range.
pub(crate) fn parse_size_of_copy(fields: &Fields<'_>) -> Result<i64> {
    let size = fields.field("size").and_then(cut_off).unwrap_or(0);
    if size < 1 {
        let message = "Capped collection size must be greater than zero";
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    }
    if size > BYTES_MAX {
        return Err(Failure::bad_value(format!(
            "BSON field 'size' value must be >= 1 and <= {BYTES_MAX}, actual value '{size}'"
        )));
    }
    Ok(size)
}

/// The options of a capped copy of a collection. The limit on documents is not copied.
pub(crate) fn of_copy(source: DocumentRef<'_>, size: i64) -> DocumentBuf {
    let mut kept = DocumentBuf::new();
    let has_no_meaning = |name: &str| matches!(name, "max" | "clusteredIndex" | "expireAfterSeconds");
    for element in source.iter().filter(|element| !has_no_meaning(element.name)) {
        kept.append(element.name, element.value);
    }
    put_into(kept.as_ref(), Some(size), None)
}

/// A limit on documents; 0 and less mean no limit.
/// # Errors
/// `TypeMismatch`; `BadValue` from 2^31 on.
pub(crate) fn parse_documents(fields: &Fields<'_>, name: &str) -> Result<Option<i64>> {
    let Some(value) = fields.field(name) else { return Ok(None) };
    match whole(fields, name, value)? {
        documents if documents > DOCUMENTS_MAX => {
            Err(Failure::bad_value("max in a capped collection has to be < 2^31 or not set"))
        }
        documents if documents <= 0 => Ok(Some(DOCUMENTS_MAX)),
        documents => Ok(Some(documents)),
    }
}

fn whole(fields: &Fields<'_>, name: &str, value: ValueRef<'_>) -> Result<i64> {
    if !value.is_number() {
        return Err(fields.mismatch(name, value, "types '[long, int, decimal, double]'"));
    }
    Ok(cut_off(value).unwrap_or(0))
}

/// Converts a number to an integer. Doubles are truncated, decimals are rounded half to even. `None` for another type.
pub(crate) fn cut_off(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Decimal128(decimal) => number::clamp_to_i64(ValueRef::Decimal128(decimal.round_to_integral())),
        value => number::clamp_to_i64(value),
    }
}

/// A collection's options with new limits in place of the old. A size is kept as requested.
pub(crate) fn put_into(options: DocumentRef<'_>, size: Option<i64>, documents: Option<i64>) -> DocumentBuf {
    let before = |name: &str| options.get(name).and_then(number::as_i64_exact);
    let mut changed = DocumentBuf::new().with("capped", true);
    if let Some(size) = size.or_else(|| before("size")) {
        append(&mut changed, "size", size);
    }
    if let Some(documents) = documents.or_else(|| before("max")) {
        append(&mut changed, "max", documents);
    }
    for element in options.iter().filter(|element| !matches!(element.name, "capped" | "size" | "max")) {
        changed.append(element.name, element.value);
    }
    changed
}

fn append(options: &mut DocumentBuf, name: &str, number: i64) {
    match i32::try_from(number) {
        Ok(number) => options.append(name, number),
        Err(_) => options.append(name, number),
    };
}
