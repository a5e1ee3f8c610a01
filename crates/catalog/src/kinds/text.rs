//! Text indexes: terms of texts with a document's score for each, and other fields by their values: `{a: 1, b: 'text',
//! c: -1}`.
//!
//! A key consists of the values of the fields before the texts, a term, the document's score for the term, and the
//! values of the fields after the texts. Documents without terms have no keys. A whole key may be shortened, but the
//! part that a search reads stays intact: the part up to the term has a short form of its own.
//! Source: MongoDB manual, "Text Indexes".

use crate::geo_index::KeySpan;
use crate::index_kind::{Answers, IndexKind, KeySet, KindEntry, ReadKind};
use crate::key_pattern::{cannot_create, read_fields};
use crate::long_key::shorten_to;
use crate::{IndexField, IndexSpec, KeyForm, Multikey};
use bunko_bson::key_string::{self, Direction, MAX_BYTE};
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, StringOrder, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_text::{Language, TextFields, TextVersion};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const ENTRY: KindEntry = KindEntry { name: NAME, options: &[WEIGHTS, LANGUAGE, OVERRIDE, VERSION], read };

pub(crate) const NAME: &str = "text";
const WEIGHTS: &str = "weights";
const LANGUAGE: &str = "default_language";
const OVERRIDE: &str = "language_override";
const VERSION: &str = "textIndexVersion";
/// Names for the terms, and for the scores, in a key pattern as it is shown.
pub(crate) const TERMS: &str = "_fts";
pub(crate) const SCORES: &str = "_ftsx";
const ALL_FIELDS: &str = "$**";
/// Weights must be below this. Source: MongoDB, text indexes.
const WEIGHT_END: i64 = 100_000;
const SCORE_BYTES: usize = size_of::<f64>();
/// Maximum number of bytes of a key up to and including the term. A longer part is replaced by a short form, so that
/// the score fits after it. Searches do not read beyond the score.
const LEAD_BYTES_MAX: usize = 40_000;

/// A text index: the fields with texts, and the fields before and after the terms in its keys.
#[derive(Debug)]
pub struct TextIndex {
    /// The fields with texts.
    pub fields: Arc<TextFields>,
    /// Fields before the texts; a search must give a value for each.
    pub prefix: Vec<IndexField>,
    suffix: Vec<IndexField>,
}

/// The parts of a key pattern.
#[derive(Default)]
struct Pattern {
    prefix: DocumentBuf,
    suffix: DocumentBuf,
    weights: BTreeMap<String, i64>,
}

fn read(key: DocumentRef<'_>, spec: DocumentRef<'_>) -> Result<ReadKind> {
    let mut pattern = Pattern::of(key)?;
    pattern.add_weights(spec.get(WEIGHTS))?;
    let version = version(spec.get(VERSION))?;
    let language = language(spec.get(LANGUAGE), version)?;
    let language_field = language_field(spec.get(OVERRIDE))?;
    let weights = pattern.weights.iter().fold(DocumentBuf::new(), |all, (path, weight)| all.with(path, *weight as i32));
    let options = DocumentBuf::new()
        .with(WEIGHTS, &weights)
        .with(LANGUAGE, language)
        .with(OVERRIDE, language_field)
        .with(VERSION, version as i32);
    let fields =
        TextFields::of(options.as_ref()).ok_or_else(|| cannot_create("text index without fields".to_owned()))?;
    let others = |pattern: &DocumentBuf| {
        if pattern.as_ref().is_empty() { Ok(Vec::new()) } else { read_fields(pattern.as_ref()) }
    };
    let (prefix, suffix) = (others(&pattern.prefix)?, others(&pattern.suffix)?);
    let mut shown = pattern.prefix;
    shown.append(TERMS, NAME).append(SCORES, 1_i32);
    shown.extend(pattern.suffix.as_ref());
    let own = |path: &str| IndexField { path: path.to_owned(), direction: Direction::Ascending, form: KeyForm::Value };
    let all = prefix.iter().cloned().chain([own(TERMS), own(SCORES)]).chain(suffix.iter().cloned()).collect();
    let kind = Arc::new(TextIndex { fields: Arc::new(fields), prefix, suffix });
    Ok(ReadKind { kind, fields: all, key: Some(shown), options })
}

impl Pattern {
    fn of(key: DocumentRef<'_>) -> Result<Self> {
        let mut pattern = Self::default();
        let (mut has_texts, mut is_shown_form) = (false, false);
        for field in key {
            let is_text = field.value.as_str() == Some(NAME);
            if !is_text && field.value.as_str().is_some() {
                return Err(cannot_create(format!(
                    "text indexes cannot have a field of type {}",
                    ValueText(field.value)
                )));
            }
            match field.name {
                TERMS if is_text && !has_texts => is_shown_form = true,
                SCORES if is_shown_form && number::as_f64(field.value) == Some(1.0) => continue,
                TERMS | SCORES => {
                    return Err(cannot_create("text index with reserved fields _fts/_ftsx not allowed".to_owned()));
                }
                path if is_text => {
                    check_text_path(path)?;
                    pattern.weights.insert(path.to_owned(), 1);
                }
                _ => {}
            }
            let others = if has_texts { &mut pattern.suffix } else { &mut pattern.prefix };
            if !is_text {
                others.append(field.name, field.value);
            } else if !pattern.suffix.as_ref().is_empty() {
                return Err(cannot_create("'text' fields in index must all be adjacent".to_owned()));
            }
            has_texts |= is_text;
        }
        Ok(pattern)
    }

    /// Adds the option `weights`, which may name fields that the key pattern does not.
    fn add_weights(&mut self, weights: Option<ValueRef<'_>>) -> Result<()> {
        match weights {
            None => {}
            Some(ValueRef::String(ALL_FIELDS)) => drop(self.weights.insert(ALL_FIELDS.to_owned(), 1)),
            Some(ValueRef::Document(weights)) => {
                for weight in weights {
                    let Some(value) = number::clamp_to_i64(weight.value) else {
                        return Err(cannot_create("weight for text index needs numeric type".to_owned()));
                    };
                    check_text_path(weight.name)?;
                    self.weights.insert(weight.name.to_owned(), value);
                }
            }
            Some(_) => return Err(cannot_create("text index option 'weights' must be an object".to_owned())),
        }
        if self.weights.is_empty() {
            return Err(cannot_create("text index option 'weights' must specify fields or the wildcard".to_owned()));
        }
        match self.weights.values().find(|weight| !(1..WEIGHT_END).contains(*weight)) {
            None => Ok(()),
            Some(weight) => Err(cannot_create(format!(
                "text index weight must be in the exclusive interval (0,{WEIGHT_END}) but found: {weight}"
            ))),
        }
    }
}

/// Checks that a field with texts is a path, or `$**` for all fields.
fn check_text_path(path: &str) -> Result<()> {
    if path == ALL_FIELDS {
        return Ok(());
    }
    if path.is_empty() {
        return Err(cannot_create("weight cannot be on an empty field".to_owned()));
    }
    for component in path.split('.') {
        if component.is_empty() {
            return Err(cannot_create("weight cannot have empty path component".to_owned()));
        }
        if component.starts_with('$') {
            return Err(cannot_create("weight cannot have path component with $ prefix".to_owned()));
        }
    }
    Ok(())
}

fn version(value: Option<ValueRef<'_>>) -> Result<i64> {
    let Some(value) = value else { return Ok(3) };
    if !value.is_number() {
        return Err(cannot_create("text index option 'textIndexVersion' must be a number".to_owned()));
    }
    let version = number::as_i64_exact(value).filter(|version| TextVersion::numbered(*version).is_some());
    version.ok_or_else(|| cannot_create(format!("bad textIndexVersion: {}", ValueText(value))))
}

fn language(value: Option<ValueRef<'_>>, version: i64) -> Result<&str> {
    match value {
        None => Ok(Language::English.name()),
        Some(ValueRef::String(name)) if Language::of_index(name, version).is_some() => Ok(name),
        Some(ValueRef::String(name)) => {
            Err(cannot_create(format!("unsupported language: \"{name}\" for text index version {version}")))
        }
        Some(_) => Err(cannot_create("default_language needs a string type".to_owned())),
    }
}

fn language_field(value: Option<ValueRef<'_>>) -> Result<&str> {
    match value {
        None => Ok("language"),
        Some(ValueRef::String(field)) if !field.is_empty() && !field.starts_with('$') && !field.contains('.') => {
            Ok(field)
        }
        Some(ValueRef::String(_)) => Err(cannot_create("language_override is not valid".to_owned())),
        Some(_) => Err(cannot_create("language_override must be a string".to_owned())),
    }
}

impl TextIndex {
    /// The keys of documents with this term and these values of the fields before the texts.
    pub fn span(&self, prefix: &[ValueRef<'_>], term: &str) -> KeySpan {
        let mut start = Vec::with_capacity(term.len() + 16);
        for (value, field) in prefix.iter().zip(&self.prefix) {
            key_string::append(&mut start, *value, field.direction);
        }
        key_string::append(&mut start, ValueRef::String(term), Direction::Ascending);
        shorten_to(&mut start, LEAD_BYTES_MAX);
        let mut end = start.clone();
        end.push(MAX_BYTE);
        (start, end)
    }

    /// The fields after the texts.
    pub fn suffix(&self) -> &[IndexField] {
        &self.suffix
    }

    /// The values of the fields after the texts in a key within a span; `None` if the key is too short.
    pub fn after_score<'k>(span: &KeySpan, key: &'k [u8]) -> Option<&'k [u8]> {
        key.get(span.0.len() + SCORE_BYTES..)
    }

    /// The score in a key within a span.
    pub fn score(span: &KeySpan, key: &[u8]) -> f64 {
        let bytes = key.get(span.0.len()..span.0.len() + SCORE_BYTES).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0.0, |bytes| f64::from_bits(u64::from_be_bytes(bytes)))
    }
}

impl IndexKind for TextIndex {
    fn name(&self) -> &'static str {
        NAME
    }

    fn keys(&self, index: &IndexSpec, document: DocumentRef<'_>, keys: &mut KeySet<'_>) -> Result<Multikey> {
        let scores = self.fields.scores(document, &mut |steps| keys.ask(steps))?;
        if scores.is_empty() {
            return Ok(Multikey::default());
        }
        let of = |fields: &[IndexField]| {
            let mut part = Vec::new();
            for field in fields {
                index.strings.append_key(&mut part, only_value(document, &field.path)?, field.direction);
            }
            Ok::<_, Failure>(part)
        };
        let (prefix, suffix) = (of(&self.prefix)?, of(&self.suffix)?);
        for (term, score) in scores {
            let mut key = Vec::with_capacity(prefix.len() + term.len() + SCORE_BYTES + suffix.len() + 8);
            key.extend_from_slice(&prefix);
            key_string::append(&mut key, ValueRef::String(&term), Direction::Ascending);
            shorten_to(&mut key, LEAD_BYTES_MAX);
            key.extend_from_slice(&score.to_bits().to_be_bytes());
            key.extend_from_slice(&suffix);
            keys.add(key)?;
        }
        Ok(Multikey::default())
    }

    fn answers(&self) -> Answers {
        Answers::ByItself
    }

    fn check_strings(&self, strings: &StringOrder) -> Result<()> {
        super::refuse_strings(NAME, strings)
    }

    fn text(&self) -> Option<&TextIndex> {
        Some(self)
    }
}

/// The value at a path, or null if the path leads nowhere. An array on the path is an error.
fn only_value<'d>(document: DocumentRef<'d>, path: &str) -> Result<ValueRef<'d>> {
    let mut value = Some(ValueRef::Document(document));
    for component in path.split('.') {
        value = match value {
            Some(ValueRef::Document(inner)) => inner.get(component),
            _ => None,
        };
        if matches!(value, Some(ValueRef::Array(_))) {
            let text = ValueText(ValueRef::Document(document));
            let message = format!("Field '{path}' of text index contains an array in document: {text}");
            return Err(Failure::new(ErrorCode::CANNOT_BUILD_INDEX_KEYS, message));
        }
    }
    Ok(value.unwrap_or(ValueRef::Null))
}
