//! A statement of a batch, and fields that must be present.

use crate::field_kinds::Field;
use crate::fields::{FieldSet, Fields, Met};
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// Parses an entry of `updates` or `deletes`. `place` is its path in messages: `update.updates`.
/// # Errors
/// `IDLUnknownField` for a field that is not in `known`; as [`Field::check`].
pub fn statement<'a>(place: &'static str, body: DocumentRef<'a>, known: &'static [Field]) -> Result<Fields<'a>> {
    let mut met = FieldSet::new(known);
    for field in body.iter().encoded() {
        let name = || String::from_utf8_lossy(field.name_bytes()).into_owned();
        match met.note(&field, body) {
            Met::Known(known) => known.check(place, &field)?,
            Met::Again => {
                let message = format!("BSON field '{place}.{}' is a duplicate field", name());
                return Err(Failure::new(ErrorCode::IDL_DUPLICATE_FIELD, message));
            }
            Met::Unknown => return Err(Failure::unknown_field(format_args!("{place}.{}", name()))),
        }
    }
    Ok(Fields::of_walked(place, body, met))
}

/// A field that must be present and not null.
pub fn required_value<'a>(fields: &Fields<'a>, name: &str) -> Result<ValueRef<'a>> {
    fields.field(name).ok_or_else(|| fields.missing(name))
}

/// A field that must be present, of any type.
pub fn required<'a>(fields: &Fields<'a>, name: &str) -> Result<ValueRef<'a>> {
    fields.value(name).ok_or_else(|| fields.missing(name))
}

/// A document that must be present and not null.
pub fn required_document<'a>(fields: &Fields<'a>, name: &str) -> Result<DocumentRef<'a>> {
    let value = required_value(fields, name)?;
    value.as_document().ok_or_else(|| fields.mismatch(name, value, "type 'object'"))
}

/// `arrayFilters`, if it is given.
pub fn array_filters<'a>(fields: &Fields<'a>) -> Result<Option<Vec<DocumentRef<'a>>>> {
    let Some(filters) = fields.array("arrayFilters")? else { return Ok(None) };
    let filters = filters.iter().enumerate().map(|(index, filter)| {
        let mismatch = || fields.mismatch(&format!("arrayFilters.{index}"), filter, "type 'object'");
        filter.as_document().ok_or_else(mismatch)
    });
    filters.collect::<Result<_>>().map(Some)
}
