//! A collation on ICU4X's tables.

use crate::VERSION;
use crate::locales::{self, LocaleLookup, Tables};
use crate::specification::{CaseFirst, Specification};
use bunko_bson::text::ValueText;
use bunko_bson::{Collator, DocumentBuf, DocumentRef, StringOrder, ValueRef};
use bunko_errors::{Failure, Result};
use icu_collator::options::{
    AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, ResolvedCollatorOptions, Strength,
};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use icu_locale_core::Locale;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The locale that compares accents from the end.
const BACKWARDS: &str = "fr-CA";

/// A collator and its collation document.
struct IcuCollator {
    collator: CollatorBorrowed<'static>,
    specification: DocumentBuf,
}

impl Collator for IcuCollator {
    fn compare(&self, a: &str, b: &str) -> Ordering {
        self.collator.compare(a, b)
    }

    fn write_sort_key(&self, text: &str, key: &mut Vec<u8>) {
        match self.collator.write_sort_key_to(text, key) {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    fn specification(&self) -> DocumentRef<'_> {
        self.specification.as_ref()
    }
}

impl fmt::Debug for IcuCollator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IcuCollator({})", ValueText(ValueRef::Document(self.specification.as_ref())))
    }
}

/// Makes the order that a checked collation document asks for.
pub(crate) fn order(asked: &Specification<'_>, document: DocumentRef<'_>) -> Result<StringOrder> {
    let shown = ValueText(ValueRef::Document(document));
    let (tag, tables) = match locales::find(asked.locale) {
        LocaleLookup::Tag(tag, tables) => (tag, tables),
        LocaleLookup::Missing => {
            return Err(Failure::not_supported_yet(&format!("the locale '{}' in: {shown}", asked.locale)));
        }
        LocaleLookup::Language(language) => {
            return Err(Failure::bad_value(format!(
                "Field 'locale' is invalid in: {shown}. Did you mean '{language}'?"
            )));
        }
        LocaleLookup::Unknown => return Err(Failure::bad_value(format!("Field 'locale' is invalid in: {shown}"))),
    };
    let tag = with_direction(&tag, tables, asked)
        .ok_or_else(|| Failure::not_supported_yet(&format!("'backwards: true' in: {shown}")))?;
    let locale: Locale =
        tag.parse().map_err(|_| Failure::bad_value(format!("Field 'locale' is invalid in: {shown}")))?;
    let mut preferences = CollatorPreferences::from(&locale);
    preferences.case_first = asked.case_first.map(|first| match first {
        CaseFirst::Upper => CollationCaseFirst::Upper,
        CaseFirst::Lower => CollationCaseFirst::Lower,
        CaseFirst::Off => CollationCaseFirst::False,
    });
    preferences.numeric_ordering = asked
        .numeric_ordering
        .map(|numeric| if numeric { CollationNumericOrdering::True } else { CollationNumericOrdering::False });
    let collator = CollatorBorrowed::try_new(preferences, options(asked))
        .map_err(|error| Failure::bad_value(format!("no collation for {shown}: {error}")))?;
    let specification = filled(asked, &tag, collator.resolved_options());
    Ok(StringOrder::collated(Arc::new(IcuCollator { collator, specification })))
}

/// ICU4X compares accents from the end only in Canadian French, whose order is otherwise the root's. So Canadian French
/// stands in for every locale that follows the root. `None` if the locale has rules of its own.
fn with_direction(tag: &str, tables: Tables, asked: &Specification<'_>) -> Option<String> {
    match (tag, asked.backwards) {
        (BACKWARDS, Some(false)) => Some("fr".to_owned()),
        (BACKWARDS, _) | (_, None | Some(false)) => Some(tag.to_owned()),
        (_, Some(true)) => (tables == Tables::Root).then(|| BACKWARDS.to_owned()),
    }
}

fn options(asked: &Specification<'_>) -> CollatorOptions {
    let mut options = CollatorOptions::default();
    options.strength = asked.strength.map(|strength| match strength {
        1 => Strength::Primary,
        2 => Strength::Secondary,
        3 => Strength::Tertiary,
        4 => Strength::Quaternary,
        _ => Strength::Identical,
    });
    options.case_level = asked.case_level.map(|on| if on { CaseLevel::On } else { CaseLevel::Off });
    options.alternate_handling = asked
        .is_shifted
        .map(|shifted| if shifted { AlternateHandling::Shifted } else { AlternateHandling::NonIgnorable });
    options.max_variable = asked
        .with_punctuation
        .map(|with_punctuation| if with_punctuation { MaxVariable::Punctuation } else { MaxVariable::Space });
    options
}

/// Makes the collation document with all fields: fields that were not given get the locale's defaults.
fn filled(asked: &Specification<'_>, tag: &str, resolved: ResolvedCollatorOptions) -> DocumentBuf {
    let case_first = match resolved.case_first {
        CollationCaseFirst::Upper => "upper",
        CollationCaseFirst::Lower => "lower",
        _ => "off",
    };
    let strength = match resolved.strength {
        Strength::Primary => 1,
        Strength::Secondary => 2,
        Strength::Quaternary => 4,
        Strength::Identical => 5,
        _ => 3,
    };
    let is_shifted = resolved.alternate_handling == AlternateHandling::Shifted;
    let max_variable = if resolved.max_variable == MaxVariable::Space { "space" } else { "punct" };
    DocumentBuf::new()
        .with("locale", asked.locale)
        .with("caseLevel", resolved.case_level == CaseLevel::On)
        .with("caseFirst", case_first)
        .with("strength", strength)
        .with("numericOrdering", resolved.numeric == CollationNumericOrdering::True)
        .with("alternate", if is_shifted { "shifted" } else { "non-ignorable" })
        .with("maxVariable", max_variable)
        .with("normalization", asked.normalization.unwrap_or_else(|| locales::is_normalized(asked.locale)))
        .with("backwards", tag == BACKWARDS)
        .with("version", VERSION)
}
