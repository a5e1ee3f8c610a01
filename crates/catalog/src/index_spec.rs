//! Parsing what `createIndexes` is given, and refusing what is not built yet.

use crate::index::{ID_INDEX, IndexField};
use bunko_bson::key_string::Direction;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};

/// Most fields in one key pattern.
const FIELDS_MAX: usize = 32;

/// Options that MongoDB knows; `check_options` says which of them are honoured.
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
    "weights",
    "default_language",
    "language_override",
    "textIndexVersion",
    "2dsphereIndexVersion",
    "bits",
    "min",
    "max",
    "wildcardProjection",
    "clustered",
    "prepareUnique",
];
/// Options that the index on `_id` may carry.
const ID_OPTIONS: &[&str] = &["key", "name", "ns", "v", "collation", "clustered"];

/// A checked index specification.
#[derive(Clone, Debug)]
pub struct IndexSpec {
    /// The index's name.
    pub name: String,
    /// The fields in order.
    pub fields: Vec<IndexField>,
    /// Whether keys are unique.
    pub is_unique: bool,
    /// What `listIndexes` will show.
    pub document: DocumentBuf,
}

impl IndexSpec {
    /// The specification of the index that every collection has.
    pub fn id() -> Self {
        let key = DocumentBuf::new().with("_id", 1_i32);
        Self {
            name: ID_INDEX.to_owned(),
            fields: vec![IndexField { path: "_id".into(), direction: Direction::Ascending }],
            is_unique: true,
            document: DocumentBuf::new().with("v", 2_i32).with("key", &key).with("name", ID_INDEX),
        }
    }

    /// Parses one element of `createIndexes`.
    /// # Errors
    /// `CannotCreateIndex` for a bad key pattern or an option that is not built; `InvalidIndexSpecificationOption`
    /// for one that does not exist.
    pub fn parse(spec: DocumentRef<'_>) -> Result<Self> {
        let key = match spec.get("key") {
            Some(ValueRef::Document(key)) => key,
            Some(other) => {
                return Err(Failure::type_mismatch(format!(
                    "The field 'key' must be an object, but got {}",
                    other.kind().alias()
                )));
            }
            None => return Err(missing("key", spec)),
        };
        let fields = parse_key(key)?;
        let name = match spec.get("name") {
            Some(ValueRef::String(name)) => name.to_owned(),
            Some(other) => {
                return Err(Failure::type_mismatch(format!(
                    "The field 'name' must be a string, but got {}",
                    other.kind().alias()
                )));
            }
            None => return Err(missing("name", spec)),
        };
        if name.is_empty() {
            return Err(cannot_create("index name cannot be empty".into()));
        }
        let is_id = fields.len() == 1 && fields[0].path == "_id" && fields[0].direction == Direction::Ascending;
        if is_id {
            check_id_options(spec)?;
            return Ok(Self::id());
        }
        if name == ID_INDEX || name == "*" {
            return Err(Failure::bad_value(format!("The index name '{name}' is not valid.")));
        }
        let is_unique = check_options(spec)?;
        let mut document = DocumentBuf::new().with("v", 2_i32).with("key", key).with("name", name.as_str());
        if is_unique {
            document.append("unique", true);
        }
        Ok(Self { name, fields, is_unique, document })
    }

    /// The specification without options that do not exist, for `ignoreUnknownIndexOptions`.
    pub fn without_unknown_options(spec: DocumentRef<'_>) -> DocumentBuf {
        let mut known = DocumentBuf::new();
        for element in spec.iter().filter(|element| OPTIONS.contains(&element.name)) {
            known.append(element.name, element.value);
        }
        known
    }
}

fn cannot_create(message: String) -> Failure {
    Failure::new(ErrorCode::CANNOT_CREATE_INDEX, message)
}

fn missing(field: &str, spec: DocumentRef<'_>) -> Failure {
    Failure::failed_to_parse(format!(
        "The '{field}' field is a required property of an index specification. Specification: {}",
        ValueText(ValueRef::Document(spec))
    ))
}

fn parse_key(key: DocumentRef<'_>) -> Result<Vec<IndexField>> {
    let mut fields: Vec<IndexField> = Vec::new();
    for element in key {
        let path = element.name;
        if path.is_empty() || path.split('.').any(str::is_empty) {
            return Err(cannot_create("Index keys cannot contain an empty field.".into()));
        }
        if path.contains("$**") {
            return Err(cannot_create(format!("wildcard indexes are not supported, found key '{path}'")));
        }
        // The parts of a DBRef are the only such names that documents have.
        let is_illegal = |(position, component): (usize, &str)| {
            component.starts_with('$') && (position == 0 || !matches!(component, "$ref" | "$id" | "$db"))
        };
        if path.split('.').enumerate().any(is_illegal) {
            return Err(cannot_create(format!(
                "Index key contains an illegal field name: field name starts with '$': '{path}'."
            )));
        }
        if fields.iter().any(|field| field.path == path) {
            return Err(Failure::bad_value(format!("The field '{path}' appears more than once in the key pattern")));
        }
        fields.push(IndexField { path: path.to_owned(), direction: direction(path, element.value)? });
    }
    if fields.is_empty() {
        return Err(cannot_create("Index keys cannot be an empty object.".into()));
    }
    if fields.len() > FIELDS_MAX {
        return Err(cannot_create(format!(
            "Index key pattern too large: {} fields, more than {FIELDS_MAX}",
            fields.len()
        )));
    }
    Ok(fields)
}

fn direction(path: &str, value: ValueRef<'_>) -> Result<Direction> {
    if let ValueRef::String(plugin) = value {
        let known = ["text", "hashed", "2d", "2dsphere"].contains(&plugin);
        return Err(cannot_create(if known {
            format!("indexes of type '{plugin}' are not supported, asked for on field '{path}'")
        } else {
            format!("Unknown index plugin '{plugin}'")
        }));
    }
    match number::as_f64(value) {
        Some(number) if number > 0.0 => Ok(Direction::Ascending),
        Some(number) if number < 0.0 => Ok(Direction::Descending),
        Some(_) => Err(cannot_create("Values in the index key pattern cannot be 0 or NaN.".to_owned())),
        None => Err(cannot_create(format!(
            "Values in v:2 index key pattern cannot be of type {}. Only numbers > 0, numbers < 0, and strings are \
             allowed.",
            value.kind().alias()
        ))),
    }
}

/// Goes over all other options; whether `unique` is among them.
fn check_options(spec: DocumentRef<'_>) -> Result<bool> {
    let mut is_unique = false;
    for element in spec {
        let name = element.name;
        match name {
            "key" | "name" | "ns" => {}
            // Accepted without effect by MongoDB itself since 4.2.
            "background" => {}
            "v" => match number::as_i64_exact(element.value) {
                Some(2) => {}
                _ => {
                    return Err(cannot_create(format!(
                        "Invalid index specification {}; only version v: 2 is supported",
                        ValueText(ValueRef::Document(spec))
                    )));
                }
            },
            "unique" => is_unique = truth(name, element.value)?,
            "sparse" | "hidden" => {
                if truth(name, element.value)? {
                    return Err(unsupported(name));
                }
            }
            "collation" => {
                let locale = element.value.as_document().and_then(|collation| collation.get("locale"));
                if locale.and_then(ValueRef::as_str) != Some("simple") {
                    return Err(unsupported(name));
                }
            }
            _ if OPTIONS.contains(&name) => return Err(unsupported(name)),
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
    }
    Ok(is_unique)
}

fn check_id_options(spec: DocumentRef<'_>) -> Result<()> {
    match spec.iter().find(|element| !ID_OPTIONS.contains(&element.name)) {
        Some(element) => Err(Failure::new(
            ErrorCode::INVALID_INDEX_SPECIFICATION_OPTION,
            format!(
                "The field '{}' is not valid for an _id index specification. Specification: {}",
                element.name,
                ValueText(ValueRef::Document(spec))
            ),
        )),
        None => check_options(spec).map(drop),
    }
}

fn unsupported(option: &str) -> Failure {
    cannot_create(format!("the index option '{option}' is not supported"))
}

fn truth(name: &str, value: ValueRef<'_>) -> Result<bool> {
    if let ValueRef::Boolean(value) = value {
        return Ok(value);
    }
    number::as_f64(value).map(|number| number != 0.0).ok_or_else(|| {
        Failure::type_mismatch(format!(
            "The field '{name}' has value {}, which is not convertible to bool",
            ValueText(value)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(key: &DocumentBuf, options: &[(&str, ValueRef<'_>)]) -> Result<IndexSpec> {
        let mut spec = DocumentBuf::new().with("key", key).with("name", "n");
        for (name, value) in options {
            spec.append(name, *value);
        }
        IndexSpec::parse(spec.as_ref())
    }

    #[test]
    fn directions_and_uniqueness_are_read() {
        let key = DocumentBuf::new().with("a", 1_i32).with("b.c", -1.0);
        let spec = parse(&key, &[("unique", ValueRef::Boolean(true))]).expect("valid");
        assert!(spec.is_unique);
        assert_eq!(spec.fields[1], IndexField { path: "b.c".into(), direction: Direction::Descending });
    }

    #[test]
    fn what_is_not_built_is_refused() {
        let key = DocumentBuf::new().with("a", 1_i32);
        for option in ["sparse", "hidden"] {
            assert!(parse(&key, &[(option, ValueRef::Boolean(true))]).is_err());
            assert!(parse(&key, &[(option, ValueRef::Boolean(false))]).is_ok());
        }
        let failure = parse(&key, &[("expireAfterSeconds", ValueRef::Int32(5))]).expect_err("refused");
        assert_eq!(failure.code(), ErrorCode::CANNOT_CREATE_INDEX);
        let failure = parse(&key, &[("nonsense", ValueRef::Int32(5))]).expect_err("refused");
        assert_eq!(failure.code(), ErrorCode::INVALID_INDEX_SPECIFICATION_OPTION);
        assert!(parse(&DocumentBuf::new().with("a", "text"), &[]).is_err());
        assert!(parse(&DocumentBuf::new().with("a", 0_i32), &[]).is_err());
        assert!(parse(&DocumentBuf::new(), &[]).is_err());
    }
}
