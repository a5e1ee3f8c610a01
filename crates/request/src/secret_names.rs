//! Secrets in documents, judged by the names of fields and by the collections that hold users.

use bunko_bson::text::ValueText;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Element, ValueRef};

/// The text that replaces a secret, as in MongoDB.
pub const HIDDEN: &str = "xxx";

/// The database that holds the collection of users and, while a dump is restored, a temporary one of the dump's users.
pub const DATABASE_OF_USERS: &str = "admin";
/// The collection of users. Dumps of single databases and old servers have one in other databases too.
pub const COLLECTION_OF_USERS: &str = "system.users";

/// Whether a namespace is one of the collections that hold users.
pub fn is_of_users(namespace: &str) -> bool {
    namespace
        .split_once('.')
        .is_some_and(|(database, collection)| database == DATABASE_OF_USERS || collection == COLLECTION_OF_USERS)
}

/// A statement of a write to the collection `namespace`, or the stages that ran for it, without secrets.
pub fn shown_statement(namespace: &str, statement: DocumentBuf) -> DocumentBuf {
    if is_of_users(namespace) { without_named(statement.as_ref()) } else { statement }
}

/// A copy of the document in which fields with the name of a secret are hidden.
pub fn without_named(document: DocumentRef<'_>) -> DocumentBuf {
    let mut shown = DocumentBuf::new();
    document.iter().for_each(|field| append_without_named(&mut shown, &field, false));
    shown
}

/// The text of a value for an error message, in which fields with the name of a secret are hidden.
pub fn shown_text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Document(_) | ValueRef::Array(_) => {
            let shown = without_named(DocumentBuf::new().with("", value).as_ref());
            shown.as_ref().first().map_or_else(String::new, |only| ValueText(only.value).to_string())
        }
        other => ValueText(other).to_string(),
    }
}

/// Appends a field. The field is hidden if it has the name of a secret and is not `is_known`; otherwise the fields
/// inside it are checked by their names.
pub fn append_without_named(shown: &mut DocumentBuf, field: &Element<'_>, is_known: bool) {
    if !is_known && is_secret(field.name, field.value) {
        shown.append(field.name, HIDDEN);
        return;
    }
    match field.value {
        ValueRef::Document(inner) => shown.append(field.name, &without_named(inner)),
        ValueRef::Array(inner) => {
            let mut elements = ArrayBuf::new();
            for element in inner.iter() {
                match element {
                    ValueRef::Document(document) => {
                        elements.push(&without_named(document));
                    }
                    ValueRef::Array(nested) => {
                        // An array is a document whose field names are its indexes.
                        let nested = without_named(nested.as_document());
                        elements.push(&nested.as_ref().iter().map(|field| field.value).collect::<ArrayBuf>());
                    }
                    other => {
                        elements.push(other);
                    }
                }
            }
            shown.append(field.name, &elements)
        }
        other => shown.append(field.name, other),
    };
}

/// Whether a field holds a secret, judged by its name and the type of its value.
fn is_secret(name: &str, value: ValueRef<'_>) -> bool {
    match value {
        // A boolean holds no secret, for example `digestPassword`.
        ValueRef::Boolean(_) => false,
        ValueRef::Document(pattern) if name == "key" && is_key_pattern(pattern) => false,
        _ => names_secret(name),
    }
}

/// Whether a document can be the key pattern of an index.
fn is_key_pattern(document: DocumentRef<'_>) -> bool {
    const KINDS: [&str; 6] = ["2d", "2dsphere", "hashed", "text", "wildcard", "columnstore"];
    document
        .iter()
        .all(|field| field.value.is_number() || field.value.as_str().is_some_and(|kind| KINDS.contains(&kind)))
}

/// Whether a field's name is that of a secret. Only the last name of a path counts, and only its letters and digits.
pub fn names_secret(name: &str) -> bool {
    const PARTS: [&str; 7] =
        ["password", "passwd", "passphrase", "secret", "credential", "speculativeauthenticate", "privatekey"];
    const ENDS: [&str; 9] =
        ["pwd", "token", "apikey", "accesskey", "storedkey", "serverkey", "encryptionkey", "authkey", "hmackey"];
    const WHOLE: [&str; 6] = ["pass", "payload", "nonce", "salt", "auth", "key"];
    let last = name.rsplit('.').next().unwrap_or(name);
    let letters: String = last.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let letters = letters.as_str();
    PARTS.iter().any(|part| letters.contains(part))
        || ENDS.iter().any(|end| letters.ends_with(end))
        || WHOLE.contains(&letters)
}
