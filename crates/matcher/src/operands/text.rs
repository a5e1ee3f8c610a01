//! Text searches.
//!
//! The collection's text index defines the texts and their words: the planner finds the index and
//! [asks](TextSearch::ask) it. Before that, no document matches.

use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::{Failure, Result};
use bunko_operation::OperationContext;
use bunko_text::{CaseRule, DiacriticRule, Rules, Search, TextFields, TextVersion};
use std::sync::{Arc, PoisonError, RwLock};

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
    /// Makes a search that is not bound to an index yet.
    pub(crate) fn new(search: String, language: Option<String>, case: CaseRule, diacritics: DiacriticRule) -> Self {
        Self { search, language, case, diacritics, asked: RwLock::default() }
    }

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
