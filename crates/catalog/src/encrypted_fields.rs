//! Fields that clients encrypt before they send them. Other values are refused in these fields.
//!
//! The server has no key. It sees a ciphertext's kind, the id of its key, and the type of the plain value.
//! Source: MongoDB Client-Side Encryption specification, "Subtype 6"; "Queryable Encryption".

use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// The binary subtype of encrypted values.
const ENCRYPTED: u8 = 6;
/// First byte of an encrypted value that cannot be searched for.
const UNINDEXED: u8 = 16;
/// Kind, id of the key, type of the plain value.
const HEADER_BYTES: usize = 1 + 16 + 1;
/// The field in which MongoDB keeps the tags of searchable values; clients must not write it.
const TAGS: &str = "__safeContent__";

/// The encrypted fields of a collection.
#[derive(Clone, Debug)]
pub struct EncryptedFields(Vec<EncryptedField>);

#[derive(Clone, Debug)]
struct EncryptedField {
    path: String,
    /// BSON's number of the plain value's type; `None` for any type.
    kind: Option<u8>,
    /// Whether it should be searchable. Such values are not supported: see `encrypted_fields` of `command`.
    is_searched: bool,
}

impl EncryptedFields {
    /// The encrypted fields in a collection's options; `None` if the options name none.
    pub fn of(options: DocumentRef<'_>) -> Option<Self> {
        let fields = options.get("encryptedFields")?.as_document()?.get("fields")?.as_array()?;
        let fields = fields.iter().filter_map(ValueRef::as_document).filter_map(|field| {
            let kind = field.get("bsonType").and_then(ValueRef::as_str).and_then(number_of);
            let is_searched = field.get("queries").is_some();
            Some(EncryptedField { path: field.get("path")?.as_str()?.to_owned(), kind, is_searched })
        });
        Some(Self(fields.collect()))
    }

    /// The paths of the fields.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|field| field.path.as_str())
    }

    /// Checks a document that is about to be written.
    /// # Errors
    /// `DocumentValidationFailure` for a value that is not encrypted, even if validation is bypassed, because every
    /// reader could see it; also for any value of a searchable field. 6666200 for the field of tags.
    pub fn check(&self, document: DocumentRef<'_>) -> Result<()> {
        if document.get(TAGS).is_some() {
            return Err(Failure::new(ErrorCode(6_666_200), format!("Cannot insert a document with field name {TAGS}")));
        }
        match self.0.iter().find(|field| !field.is_encrypted(document)) {
            None => Ok(()),
            Some(field) => {
                let fault = if field.is_searched { "has 'queries': not supported yet" } else { "is not encrypted" };
                let message = format!("Document failed validation: the field '{}' {fault}", field.path);
                Err(Failure::new(ErrorCode::DOCUMENT_VALIDATION_FAILURE, message))
            }
        }
    }
}

impl EncryptedField {
    /// Whether all values at the field's path are encrypted.
    fn is_encrypted(&self, document: DocumentRef<'_>) -> bool {
        all_at(ValueRef::Document(document), &self.path, &|value| match value {
            ValueRef::Binary { subtype: ENCRYPTED, bytes } if bytes.len() > HEADER_BYTES && !self.is_searched => {
                bytes[0] == UNINDEXED && self.kind.is_none_or(|kind| bytes[HEADER_BYTES - 1] == kind)
            }
            _ => false,
        })
    }
}

/// Whether all values at a path satisfy `is_wanted`. Paths lead through arrays, too.
fn all_at(value: ValueRef<'_>, path: &str, is_wanted: &dyn Fn(ValueRef<'_>) -> bool) -> bool {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    match value {
        ValueRef::Document(document) => {
            let mut fields = document.iter().filter(|field| field.name == name);
            fields.all(|field| match rest {
                Some(rest) => all_at(field.value, rest, is_wanted),
                None => is_wanted(field.value),
            })
        }
        ValueRef::Array(array) => array.iter().all(|element| all_at(element, path, is_wanted)),
        _ => true,
    }
}

/// BSON's number of a type.
/// Source: bsonspec.org.
fn number_of(alias: &str) -> Option<u8> {
    Some(match alias {
        "double" => 1,
        "string" => 2,
        "object" => 3,
        "array" => 4,
        "binData" => 5,
        "objectId" => 7,
        "bool" => 8,
        "date" => 9,
        "regex" => 11,
        "dbPointer" => 12,
        "javascript" => 13,
        "symbol" => 14,
        "javascriptWithScope" => 15,
        "int" => 16,
        "timestamp" => 17,
        "long" => 18,
        "decimal" => 19,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::{ArrayBuf, DocumentBuf};

    fn value(first: u8, kind: u8) -> Vec<u8> {
        [&[first][..], &[7; 16], &[kind], &[9; 48]].concat()
    }

    fn encrypted(bytes: &[u8]) -> ValueRef<'_> {
        ValueRef::Binary { subtype: ENCRYPTED, bytes }
    }

    fn fields() -> EncryptedFields {
        let field = |path: &str, kind: &str| DocumentBuf::new().with("path", path).with("bsonType", kind);
        let fields: ArrayBuf = [field("ssn", "string"), field("a.b", "int")].iter().collect();
        let option = DocumentBuf::new().with("fields", &fields);
        EncryptedFields::of(DocumentBuf::new().with("encryptedFields", &option).as_ref()).expect("fields")
    }

    #[test]
    fn only_encrypted_values_are_written() {
        let (string, int, searchable) = (value(16, 2), value(16, 16), value(14, 2));
        let sound = DocumentBuf::new()
            .with("_id", 1)
            .with("ssn", encrypted(&string))
            .with("a", &DocumentBuf::new().with("b", encrypted(&int)));
        fields().check(sound.as_ref()).expect("it is encrypted");
        fields().check(DocumentBuf::new().with("_id", 1).with("a", 5).as_ref()).expect("there is none");
        let inside = DocumentBuf::new().with("b", 5);
        let array: ArrayBuf = [&inside].into_iter().collect();
        for wrong in [
            DocumentBuf::new().with("ssn", "123-45"),
            DocumentBuf::new().with("ssn", ValueRef::Null),
            DocumentBuf::new().with("ssn", encrypted(&int)),
            DocumentBuf::new().with("ssn", encrypted(&searchable)),
            DocumentBuf::new().with("ssn", encrypted(&string[..HEADER_BYTES])),
            DocumentBuf::new().with("ssn", ValueRef::Binary { subtype: 0, bytes: &string }),
            DocumentBuf::new().with("a", &inside),
            DocumentBuf::new().with("a", &array),
            DocumentBuf::new().with("ssn", encrypted(&string)).with("ssn", "twice"),
        ] {
            let failure = fields().check(wrong.as_ref()).expect_err("it is not encrypted");
            assert_eq!(failure.code(), ErrorCode::DOCUMENT_VALIDATION_FAILURE, "{wrong:?}");
        }
        let tags = DocumentBuf::new().with(TAGS, &ArrayBuf::new());
        assert_eq!(fields().check(tags.as_ref()).expect_err("tags").code(), ErrorCode(6_666_200));
    }
}
