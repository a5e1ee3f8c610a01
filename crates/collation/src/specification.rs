//! The contents of a collation document.

use crate::VERSION;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, Element, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};

/// Whether upper or lower case comes first in strings that differ only in case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaseFirst {
    Upper,
    Lower,
    Off,
}

/// The options of a collation document; `None` leaves an option to the locale.
#[derive(Clone, Debug, Default)]
pub(crate) struct Specification<'a> {
    pub locale: &'a str,
    pub case_level: Option<bool>,
    pub case_first: Option<CaseFirst>,
    /// From 1 to 5.
    pub strength: Option<u8>,
    pub numeric_ordering: Option<bool>,
    pub is_shifted: Option<bool>,
    /// Whether `shifted` ignores punctuation, and not only spaces.
    pub with_punctuation: Option<bool>,
    pub normalization: Option<bool>,
    pub backwards: Option<bool>,
}

impl<'a> Specification<'a> {
    /// Reads and checks a document; `None` for the simple collation, whose other fields have no effect.
    pub fn parse(document: DocumentRef<'a>) -> Result<Option<Self>> {
        let parsed = Self::read(document)
            .map_err(|failure| failure.with_prefix("unable to parse collation :: caused by :: "))?;
        if parsed.locale == "simple" {
            return Ok(None);
        }
        parsed.check(document)?;
        Ok(Some(parsed))
    }

    fn read(document: DocumentRef<'a>) -> Result<Self> {
        let mut read = Self::default();
        let mut locale = None;
        for element in document {
            // A null counts as a missing field, except for `backwards`.
            let is_given = !element.value.is_nullish() || element.name == "backwards";
            match element.name {
                "locale" => locale = if is_given { Some(string(element)?) } else { None },
                "caseLevel" | "caseFirst" | "strength" | "numericOrdering" | "alternate" | "maxVariable"
                | "normalization" | "backwards" | "version" => {
                    if is_given {
                        read.set(element)?;
                    }
                }
                name => return Err(Failure::unknown_field(format_args!("collation.{name}"))),
            }
        }
        let Some(locale) = locale else {
            return Err(Failure::missing_field("collation.locale"));
        };
        Ok(Self { locale, ..read })
    }

    fn set(&mut self, element: Element<'a>) -> Result<()> {
        match element.name {
            "caseLevel" => self.case_level = Some(boolean(element)?),
            "numericOrdering" => self.numeric_ordering = Some(boolean(element)?),
            "normalization" => self.normalization = Some(boolean(element)?),
            "backwards" => self.backwards = Some(boolean(element)?),
            "caseFirst" => {
                let choices = [("upper", CaseFirst::Upper), ("lower", CaseFirst::Lower), ("off", CaseFirst::Off)];
                self.case_first = Some(choice(element, &choices)?);
            }
            "alternate" => {
                self.is_shifted = Some(choice(element, &[("non-ignorable", false), ("shifted", true)])?);
            }
            "maxVariable" => {
                self.with_punctuation = Some(choice(element, &[("punct", true), ("space", false)])?);
            }
            "strength" => self.strength = Some(strength(element)?),
            _ => {
                let version = string(element)?;
                if version != VERSION {
                    let message = format!(
                        "Requested collation version {version} but the only available collator version was {VERSION}"
                    );
                    return Err(Failure::new(ErrorCode::INCOMPATIBLE_COLLATION_VERSION, message));
                }
            }
        }
        Ok(())
    }

    /// Checks the text of the locale, and rules between several fields.
    fn check(&self, document: DocumentRef<'_>) -> Result<()> {
        let shown = ValueText(ValueRef::Document(document));
        if self.locale.is_empty() {
            return Err(Failure::bad_value(format!("Field 'locale' cannot be the empty string in: {shown}")));
        }
        if self.locale.contains('\0') {
            return Err(Failure::bad_value(format!("Field 'locale' cannot contain null byte in: {shown}")));
        }
        let strength = self.strength.unwrap_or(3);
        if self.backwards == Some(true) && strength == 1 {
            return Err(Failure::bad_value(format!("'backwards' is invalid with 'strength' of 1 in: {shown}")));
        }
        let is_case_ordered = !matches!(self.case_first, None | Some(CaseFirst::Off));
        if is_case_ordered && self.case_level != Some(true) && strength < 3 {
            return Err(Failure::bad_value(format!(
                "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2 in: {shown}"
            )));
        }
        Ok(())
    }
}

fn wrong_type(element: Element<'_>, expected: &str) -> Failure {
    Failure::wrong_type(format_args!("collation.{}", element.name), element.value, expected)
}

fn string(element: Element<'_>) -> Result<&str> {
    element.value.as_str().ok_or_else(|| wrong_type(element, "type 'string'"))
}

fn boolean(element: Element<'_>) -> Result<bool> {
    match element.value {
        ValueRef::Boolean(boolean) => Ok(boolean),
        _ => Err(wrong_type(element, "type 'bool'")),
    }
}

fn choice<T: Copy>(element: Element<'_>, choices: &[(&str, T)]) -> Result<T> {
    let chosen = string(element)?;
    let found = choices.iter().find(|(name, _)| *name == chosen);
    found.map(|(_, choice)| *choice).ok_or_else(|| not_a_choice(element.name, chosen))
}

fn not_a_choice(name: &str, value: &str) -> Failure {
    Failure::bad_value(format!("Enumeration value '{value}' for field 'collation.{name}' is not a valid value."))
}

fn strength(element: Element<'_>) -> Result<u8> {
    if !element.value.is_number() {
        return Err(wrong_type(element, "types '[long, int, decimal, double]'"));
    }
    let strength = number::truncate_to_i64(element.value).unwrap_or_default();
    match strength {
        1..=5 => Ok(strength as u8),
        _ => Err(not_a_choice(element.name, &strength.to_string())),
    }
}
