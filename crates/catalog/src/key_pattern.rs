//! The key pattern of an index: `{a: 1, 'b.c': -1, d: 'hashed'}`.

use bunko_bson::key_string::Direction;
use bunko_bson::{DocumentRef, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};

/// Maximum number of fields in one key pattern.
const FIELDS_MAX: usize = 32;

/// A field of an index and its direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexField {
    /// The dotted path.
    pub path: String,
    /// Whether the field's values ascend or descend in the index.
    pub direction: Direction,
    /// The form of its values in the keys.
    pub form: KeyForm,
}

/// The form of a field's value in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// The value itself.
    Value,
    /// The hash of the value, a 64-bit number.
    Hash,
}

pub(crate) fn cannot_create(message: String) -> Failure {
    Failure::new(ErrorCode::CANNOT_CREATE_INDEX, message)
}

/// Whether a value counts as true.
pub(crate) fn is_true(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Boolean(value) => value,
        value => number::as_f64(value).is_some_and(|number| number != 0.0),
    }
}

/// Refuses a pattern that no kind of index accepts.
/// # Errors
/// `CannotCreateIndex`; `BadValue` for a field that appears twice.
pub(crate) fn check(key: DocumentRef<'_>) -> Result<()> {
    let mut names: Vec<&str> = Vec::new();
    for element in key {
        check_path(element.name)?;
        if names.contains(&element.name) {
            return Err(Failure::bad_value(format!(
                "The field '{}' appears more than once in the key pattern",
                element.name
            )));
        }
        names.push(element.name);
        check_value(element.value)?;
    }
    if names.is_empty() {
        return Err(cannot_create("Index keys cannot be an empty object.".into()));
    }
    if names.len() > FIELDS_MAX {
        return Err(cannot_create(format!(
            "Index key pattern too large: {} fields, more than {FIELDS_MAX}",
            names.len()
        )));
    }
    Ok(())
}

fn check_path(path: &str) -> Result<()> {
    if path.is_empty() || path.split('.').any(str::is_empty) {
        return Err(cannot_create("Index keys cannot contain an empty field.".into()));
    }
    // Documents can have such names only as parts of a DBRef.
    let is_illegal = |(position, component): (usize, &str)| {
        component.starts_with('$')
            && component != "$**"
            && (position == 0 || !matches!(component, "$ref" | "$id" | "$db"))
    };
    if path.split('.').enumerate().any(is_illegal) {
        return Err(cannot_create(format!(
            "Index key contains an illegal field name: field name starts with '$': '{path}'."
        )));
    }
    Ok(())
}

fn check_value(value: ValueRef<'_>) -> Result<()> {
    if value.as_str().is_some() {
        return Ok(());
    }
    match number::as_f64(value) {
        Some(number) if !number.is_nan() && number != 0.0 => Ok(()),
        Some(_) => Err(cannot_create("Values in the index key pattern cannot be 0 or NaN.".to_owned())),
        None => Err(cannot_create(format!(
            "Values in v:2 index key pattern cannot be of type {}. Only numbers > 0, numbers < 0, and strings are \
             allowed.",
            value.kind().alias()
        ))),
    }
}

/// The fields of a checked pattern with their directions. A field that names a kind of index is ascending.
/// # Errors
/// As [`check`]; none if the pattern has passed that before.
pub(crate) fn read_fields(key: DocumentRef<'_>) -> Result<Vec<IndexField>> {
    check(key)?;
    let field = |element: bunko_bson::Element<'_>| {
        let is_descending = number::as_f64(element.value).is_some_and(|number| number < 0.0);
        IndexField {
            path: element.name.to_owned(),
            direction: if is_descending { Direction::Descending } else { Direction::Ascending },
            form: if element.value.as_str() == Some("hashed") { KeyForm::Hash } else { KeyForm::Value },
        }
    };
    Ok(key.iter().map(field).collect())
}
