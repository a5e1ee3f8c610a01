//! `$text`: text search.
//!
//! The collection's text index defines the texts and their words: the planner finds the index and
//! [asks](TextSearch::ask) it. Before that, no document matches.

use super::TopLevelOperator;
use crate::expression::Expression;
use crate::parse::{FilterUse, Level, Parser};
use bunko_bson::{DocumentBuf, DocumentRef, StringUse, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use bunko_text::{CaseRule, DiacriticRule, Rules, Search, TextFields, TextVersion};
use std::sync::{Arc, PoisonError, RwLock};

pub(crate) const TEXT: TopLevelOperator = TopLevelOperator { name: "$text", strings: StringUse::AsBytes, parse };

/// The operand of `$text`.
#[derive(Debug)]
pub struct TextSearch {
    search: String,
    language: Option<String>,
    case: CaseRule,
    diacritics: DiacriticRule,
    asked: RwLock<Option<Arc<AskedText>>>,
}

/// A text search bound to an index.
#[derive(Debug)]
pub struct AskedText {
    /// The texts of the index.
    pub fields: Arc<TextFields>,
    /// The parsed search.
    pub search: Search,
}

impl TextSearch {
    /// Binds the search to an index; afterwards documents are matched by its texts.
    /// # Errors
    /// `BadValue` for an unknown language.
    pub fn ask(&self, fields: &Arc<TextFields>) -> Result<Arc<AskedText>> {
        let language = match &self.language {
            None => fields.language,
            Some(name) => fields.language_named(name).ok_or_else(|| {
                let version = fields.number();
                Failure::bad_value(format!("unsupported language: \"{name}\" for text index version {version}"))
            })?,
        };
        let diacritics = match fields.version {
            TextVersion::Ascii => DiacriticRule::Kept,
            TextVersion::Unicode => self.diacritics,
        };
        let rules = Rules { version: fields.version, case: self.case, diacritics };
        let search = Search::parse(&self.search, language, rules);
        let asked = Arc::new(AskedText { fields: Arc::clone(fields), search });
        *self.asked.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&asked));
        Ok(asked)
    }

    /// Whether `document` matches.
    /// # Errors
    /// Errors of the operation.
    pub(crate) fn matches(&self, document: DocumentRef<'_>, operation: Option<&OperationContext>) -> Result<bool> {
        let asked = self.asked.read().unwrap_or_else(PoisonError::into_inner).clone();
        asked.map_or(Ok(false), |asked| asked.search.matches(&asked.fields, document, operation))
    }

    pub(crate) fn to_document(&self) -> DocumentBuf {
        DocumentBuf::new()
            .with("$search", self.search.as_str())
            .with("$language", self.language.as_deref().unwrap_or_default())
            .with("$caseSensitive", self.case == CaseRule::Kept)
            .with("$diacriticSensitive", self.diacritics == DiacriticRule::Kept)
    }
}

fn parse(parser: &Parser<'_>, value: ValueRef<'_>) -> Result<Expression> {
    if parser.level == Level::Element {
        return Err(Failure::bad_value("$text can only be applied to the top-level document"));
    }
    if parser.place == FilterUse::Elsewhere || parser.level == Level::Validator {
        return Err(Failure::bad_value("$text is not allowed in this context"));
    }
    let ValueRef::Document(operand) = value else { return Err(Failure::bad_value("$text expects an object")) };
    let (mut search, mut language) = (None, None);
    let (mut case, mut diacritics) = (CaseRule::Folded, DiacriticRule::Stripped);
    for field in operand {
        match field.name {
            "$search" => search = Some(string(field.name, field.value)?),
            // An empty language means the index's default.
            "$language" => language = Some(string(field.name, field.value)?).filter(|name| !name.is_empty()),
            "$caseSensitive" if truth(field.name, field.value)? => case = CaseRule::Kept,
            "$diacriticSensitive" if truth(field.name, field.value)? => diacritics = DiacriticRule::Kept,
            "$caseSensitive" | "$diacriticSensitive" => {}
            _ => return Err(Failure::bad_value("extra fields in $text")),
        }
    }
    let Some(search) = search else {
        return Err(Failure::new(ErrorCode::NO_SUCH_KEY, "Missing expected field \"$search\""));
    };
    let asked = RwLock::default();
    Ok(Expression::Text(Arc::new(TextSearch { search, language, case, diacritics, asked })))
}

fn string(name: &str, value: ValueRef<'_>) -> Result<String> {
    value.as_str().map(str::to_owned).ok_or_else(|| wrong_type(name, "string", value))
}

fn truth(name: &str, value: ValueRef<'_>) -> Result<bool> {
    match value {
        ValueRef::Boolean(truth) => Ok(truth),
        value => number::as_f64(value)
            .map(|number| number != 0.0)
            .ok_or_else(|| wrong_type(name, "boolean or number", value)),
    }
}

fn wrong_type(name: &str, expected: &str, value: ValueRef<'_>) -> Failure {
    let found = value.kind().alias();
    Failure::type_mismatch(format!("\"{name}\" had the wrong type. Expected {expected}, found {found}"))
}

/// The text search of a filter, at any depth.
pub(crate) fn search(root: &Expression) -> Option<&Arc<TextSearch>> {
    match root {
        Expression::Text(search) => Some(search),
        Expression::And(children) | Expression::Or(children) | Expression::Nor(children) => {
            children.iter().find_map(search)
        }
        _ => None,
    }
}

/// Refuses searches that a plan cannot run.
/// # Errors
/// `BadValue` for more than one search, for a negated search, and for a search together with `$near`.
pub(crate) fn check(root: &Expression) -> Result<()> {
    match count(root) {
        0 => return Ok(()),
        1 => {}
        _ => return Err(Failure::bad_value("Too many text expressions")),
    }
    if is_negated(root) {
        return Err(Failure::bad_value("text expression not allowed in nor"));
    }
    let beside = if let Expression::And(children) = root { children.as_slice() } else { &[] };
    if beside.iter().any(|child| matches!(child, Expression::Near { .. })) {
        return Err(Failure::bad_value("text and geoNear not allowed in same query"));
    }
    Ok(())
}

fn count(root: &Expression) -> usize {
    match root {
        Expression::Text(_) => 1,
        Expression::And(children) | Expression::Or(children) | Expression::Nor(children) => {
            children.iter().map(count).sum()
        }
        _ => 0,
    }
}

fn is_negated(root: &Expression) -> bool {
    match root {
        Expression::Nor(children) => children.iter().any(|child| count(child) > 0),
        Expression::And(children) | Expression::Or(children) => children.iter().any(is_negated),
        _ => false,
    }
}
