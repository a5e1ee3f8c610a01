//! Reads index specifications, with the table of kinds.

use super::options::{Options, check_id_options, is_option, wrong_type};
use super::{ID_INDEX, IndexSpec};
use crate::key_pattern::{self, cannot_create};
use crate::kinds::{self, KINDS};
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, StringOrder, ValueRef, number};
use bunko_errors::{Failure, Result};

impl IndexSpec {
    /// The specification of the `_id` index of a collection that is not clustered.
    pub fn id() -> Self {
        let spec = DocumentBuf::new().with("v", 2_i32).with("key", &DocumentBuf::new().with("_id", 1_i32));
        let spec = spec.with("name", ID_INDEX);
        let ordered = (KINDS[0].read)(DocumentBuf::new().with("_id", 1_i32).as_ref(), spec.as_ref());
        let ordered = ordered.expect("a key pattern that is right");
        Self {
            name: ID_INDEX.to_owned(),
            kind: ordered.kind,
            fields: ordered.fields.into(),
            is_unique: true,
            prepares_unique: false,
            was_converted: false,
            is_clustered: false,
            is_sparse: false,
            is_hidden: false,
            partial_filter: None,
            expire_after_seconds: None,
            strings: StringOrder::default(),
            has_own_strings: false,
            document: spec,
            is_plain: true,
            tells_types: true,
        }
    }

    /// The specification of the `_id` index of a clustered collection.
    pub fn clustered(name: &str) -> Self {
        let key = DocumentBuf::new().with("_id", 1_i32);
        let document = DocumentBuf::new().with("v", 2_i32).with("key", &key).with("name", name);
        let document = document.with("unique", true).with("clustered", true);
        Self { name: name.to_owned(), is_clustered: true, document, tells_types: false, ..Self::id() }
    }

    /// Parses one element of `createIndexes`.
    /// # Errors
    /// `CannotCreateIndex` for a bad key pattern, for options that exclude each other and for an unsupported index;
    /// `TypeMismatch` for an option of the wrong type; `InvalidIndexSpecificationOption` for an unknown option. A kind
    /// of index may have codes of its own.
    pub fn parse(spec: DocumentRef<'_>) -> Result<Self> {
        let key = match spec.get("key") {
            Some(ValueRef::Document(key)) => key,
            Some(other) => return Err(wrong_type("key", "an object", other)),
            None => return Err(missing("key", spec)),
        };
        key_pattern::check(key)?;
        let kind = kinds::of_pattern(key)?;
        let name = match spec.get("name") {
            Some(ValueRef::String(name)) => name,
            Some(other) => return Err(wrong_type("name", "a string", other)),
            None => return Err(missing("name", spec)),
        };
        if name.is_empty() {
            return Err(cannot_create("index name cannot be empty".into()));
        }
        if is_id_pattern(key) {
            let options = check_id_options(spec)?;
            let id = options.version.into_iter().fold(Self::id(), Self::with_version);
            return Ok(options.strings.into_iter().fold(id, |id, strings| id.with_strings(&strings)));
        }
        if name == ID_INDEX || name == "*" {
            return Err(Failure::bad_value(format!("The index name '{name}' is not valid.")));
        }
        let mut options = Options::default();
        for element in spec {
            options.read(spec, element.name, element.value, kind.options)?;
        }
        options.check_together(spec, key)?;
        let read = (kind.read)(key, spec)?;
        if let Some(strings) = &options.strings {
            read.kind.check_strings(strings)?;
        }
        let mut document = DocumentBuf::new().with("v", options.version.unwrap_or(2));
        match &read.key {
            Some(key) => document.append("key", key),
            None => document.append("key", key),
        };
        document.append("name", name);
        for element in options.shown.as_ref() {
            if read.options.as_ref().get(element.name).is_none() {
                document.append(element.name, element.value);
            }
        }
        document.extend(read.options.as_ref());
        let takes_all = !options.is_sparse && options.partial_filter.is_none();
        let this = Self {
            name: name.to_owned(),
            is_plain: takes_all && read.kind.name().is_empty(),
            tells_types: read.kind.name().is_empty(),
            kind: read.kind,
            fields: read.fields.into(),
            is_unique: options.is_unique,
            prepares_unique: options.prepares_unique,
            was_converted: false,
            is_clustered: false,
            is_sparse: options.is_sparse,
            is_hidden: options.is_hidden,
            partial_filter: options.partial_filter,
            expire_after_seconds: options.expire_after_seconds,
            strings: StringOrder::default(),
            has_own_strings: false,
            document,
        };
        Ok(options.strings.into_iter().fold(this, |this, strings| this.with_strings(&strings)))
    }

    /// The specification without unknown options, for `ignoreUnknownIndexOptions`.
    pub fn without_unknown_options(spec: DocumentRef<'_>) -> DocumentBuf {
        let mut known = DocumentBuf::new();
        for element in spec.iter().filter(|element| is_option(element.name)) {
            known.append(element.name, element.value);
        }
        known
    }
}

/// Whether the pattern is `{_id: 1}`, also with a fraction as in `1.5`. `{_id: 2}` is another index, as in MongoDB.
fn is_id_pattern(key: DocumentRef<'_>) -> bool {
    is_on_id(key, 1.0)
}

/// Whether a key has `_id` alone, with this direction after the fraction is cut off.
pub(super) fn is_on_id(key: DocumentRef<'_>, direction: f64) -> bool {
    let is_so = |value| number::as_f64(value).is_some_and(|number| number.trunc() == direction);
    key.count() == 1 && key.first().is_some_and(|field| field.name == "_id" && is_so(field.value))
}

fn missing(field: &str, spec: DocumentRef<'_>) -> Failure {
    Failure::failed_to_parse(format!(
        "The '{field}' field is a required property of an index specification. Specification: {}",
        ValueText(ValueRef::Document(spec))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IndexField, KeyForm};
    use bunko_bson::key_string::Direction;
    use bunko_errors::ErrorCode;
    use bunko_testkit::shell;

    fn parse(spec: &str) -> Result<IndexSpec> {
        let spec = shell::parse_document(spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
        IndexSpec::parse(spec.as_ref())
    }

    fn shown(spec: &str) -> String {
        shell::print(ValueRef::Document(parse(spec).expect("valid").document.as_ref()))
    }

    #[test]
    fn directions_and_uniqueness_are_read() {
        let spec = parse("{key: {a: 1, 'b.c': -1.0}, name: 'n', unique: true}").expect("valid");
        assert!(spec.is_unique && spec.is_plain);
        let expected = IndexField { path: "b.c".into(), direction: Direction::Descending, form: KeyForm::Value };
        assert_eq!(spec.fields[1], expected);
    }

    #[test]
    fn shown_specifications_parse_and_are_shown_again() {
        for spec in [
            "{name: 'n', unique: 1, key: {a: 1}, sparse: true, background: true, ns: 'd.c'}",
            "{key: {a: 'hashed', b: -1}, name: 'n', partialFilterExpression: {b: {$gt: 1}}, hidden: true}",
            "{key: {a: 1}, name: 'n', expireAfterSeconds: 5.0, v: 2, storageEngine: {wiredTiger: {}}}",
            "{key: {a: 1, b: 'text', c: 'text', d: -1}, name: 'n', weights: {c: 5, e: 2}, default_language: 'none'}",
            "{key: {a: 1, '$**': 1}, name: 'n', wildcardProjection: {a: 0}}",
            "{key: {a: 'text'}, name: 'n', expireAfterSeconds: 1}",
            "{key: {a: 1}, name: 'n', v: 1.0}",
        ] {
            assert_eq!(shown(&shown(spec)), shown(spec));
        }
    }

    #[test]
    fn text_indexes_are_shown_as_terms_and_scores() {
        let expected = "{v: 2, key: {a: 1, _fts: 'text', _ftsx: 1, d: -1}, name: 'n', weights: {'$**': 1, b: 7}, \
                        default_language: 'es', language_override: 'l', textIndexVersion: 3}";
        let given = "{key: {a: 1, '$**': 'text', d: -1}, name: 'n', weights: {b: 7.0}, default_language: 'es', \
                     language_override: 'l'}";
        assert_eq!(shown(given), shown(expected));
        let code = |spec: &str| parse(spec).expect_err(spec).code();
        for wrong in [
            "{key: {a: 'text', b: 1, c: 'text'}, name: 'n'}",
            "{key: {a: 'text'}, name: 'n', weights: {a: 0}}",
            "{key: {a: 'text'}, name: 'n', weights: {a: 'x'}}",
            "{key: {a: 'text'}, name: 'n', default_language: 'klingon'}",
            "{key: {a: 'text'}, name: 'n', language_override: 'a.b'}",
            "{key: {a: 'text'}, name: 'n', textIndexVersion: 4}",
            "{key: {a: 'text', b: 'text'}, name: 'n', expireAfterSeconds: 1}",
            "{key: {_fts: 1}, name: 'n', weights: {a: 1}, textIndexVersion: 'x', default_language: 1, d: 1}",
            "{key: {_ftsx: 1, a: 'text'}, name: 'n'}",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(code("{key: {a: 'text'}, name: 'n', textIndexVersion: 0}"), ErrorCode::CANNOT_CREATE_INDEX);
    }

    #[test]
    fn options_are_refused_by_type_range_and_company() {
        let code = |spec: &str| parse(spec).expect_err(spec).code();
        assert_eq!(code("{key: {a: 1}, name: 'n', hidden: 1}"), ErrorCode::TYPE_MISMATCH);
        assert_eq!(code("{key: {a: 1}, name: 'n', sparse: 'x'}"), ErrorCode::TYPE_MISMATCH);
        assert_eq!(code("{key: {a: 1}, name: 'n', expireAfterSeconds: -1}"), ErrorCode::CANNOT_CREATE_INDEX);
        assert_eq!(code("{key: {a: 1}, name: 'n', expireAfterSeconds: NaN}"), ErrorCode::CANNOT_CREATE_INDEX);
        assert_eq!(code("{key: {a: 1, b: 1}, name: 'n', expireAfterSeconds: 1}"), ErrorCode::CANNOT_CREATE_INDEX);
        let mixed = "{key: {a: 1}, name: 'n', sparse: true, partialFilterExpression: {a: 1}}";
        assert_eq!(code(mixed), ErrorCode::CANNOT_CREATE_INDEX);
        let not_allowed = "{key: {a: 1}, name: 'n', partialFilterExpression: {a: {$ne: 1}}}";
        assert_eq!(code(not_allowed), ErrorCode::CANNOT_CREATE_INDEX);
        assert_eq!(code("{key: {a: 1}, name: 'n', nonsense: 1}"), ErrorCode::INVALID_INDEX_SPECIFICATION_OPTION);
        assert_eq!(code("{key: {a: 'text'}, name: 'n', collation: {locale: 'en'}}"), ErrorCode::CANNOT_CREATE_INDEX);
        assert_eq!(code("{key: {a: 'text', b: '2dsphere'}, name: 'n'}"), ErrorCode::CANNOT_CREATE_INDEX);
        assert_eq!(code("{key: {a: 0}, name: 'n'}"), ErrorCode::CANNOT_CREATE_INDEX);
        assert_eq!(code("{key: {a: 1}, name: 'n', v: 0}"), ErrorCode::CANNOT_CREATE_INDEX);
        assert_eq!(code("{key: {a: 1}, name: 'n', v: 1, collation: {locale: 'en'}}"), ErrorCode::CANNOT_CREATE_INDEX);
        assert_eq!(code("{key: {a: 1}, name: 'n', v: '2'}"), ErrorCode::TYPE_MISMATCH);
        assert_eq!(code("{key: {a: 1}, name: 'n', v: 1.5}"), ErrorCode::BAD_VALUE);
        assert_eq!(code("{key: {}, name: 'n'}"), ErrorCode::CANNOT_CREATE_INDEX);
        assert_eq!(code("{key: {a: 'hashed', b: 'hashed'}, name: 'n'}"), ErrorCode(31303));
    }
}
