//! What a `$changeStream` is given.
//! Source: MongoDB manual 8.2, `$changeStream`.

use super::token::Token;
use crate::fields::wrong_type;
use bunko_bson::{DocumentRef, Timestamp, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// Whether events have a document, and what becomes of one that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Image {
    None,
    /// The document as it is when the event is read.
    Lookup,
    WhenAvailable,
    Required,
}

/// Where a stream begins.
#[derive(Clone, Debug)]
pub(super) enum Beginning {
    Now,
    At(Timestamp),
    After(Token),
}

#[derive(Clone, Debug)]
pub(super) struct Options {
    pub full_document: Image,
    pub before: Image,
    pub beginning: Beginning,
    pub all_changes: bool,
    pub is_expanded: bool,
}

impl Options {
    /// # Errors
    /// `IDLUnknownField`, `TypeMismatch`, `BadValue`; 40674 for two places to begin at, 50865 where both are tokens; what is wrong with a token.
    pub fn parse(specification: ValueRef<'_>) -> Result<Self> {
        let fields = specification.as_document().ok_or_else(|| {
            Failure::new(
                ErrorCode(50808),
                format!(
                    "the $changeStream stage specification must be an object, not {}",
                    specification.kind().alias()
                ),
            )
        })?;
        let mut options = Self {
            full_document: Image::None,
            before: Image::None,
            beginning: Beginning::Now,
            all_changes: false,
            is_expanded: false,
        };
        let mut places = 0;
        for element in fields {
            let (name, value) = (element.name, element.value);
            let place = || format!("$changeStream.{name}");
            match name {
                "fullDocument"
                | "fullDocumentBeforeChange"
                | "allChangesForCluster"
                | "showExpandedEvents"
                | "resumeAfter"
                | "startAfter"
                | "startAtOperationTime"
                    if value.is_nullish() => {}
                "fullDocument" => options.full_document = image(&place(), value, "default", "updateLookup")?,
                "fullDocumentBeforeChange" => options.before = image(&place(), value, "off", "")?,
                "allChangesForCluster" => options.all_changes = switch(&place(), value)?,
                "showExpandedEvents" => options.is_expanded = switch(&place(), value)?,
                "resumeAfter" | "startAfter" => {
                    places += 1;
                    let token = value.as_document().ok_or_else(|| wrong_type(&place(), value, "object"))?;
                    options.beginning = Beginning::After(read_token(name, token)?);
                }
                "startAtOperationTime" => {
                    places += 1;
                    let ValueRef::Timestamp(time) = value else {
                        return Err(wrong_type(&place(), value, "timestamp"));
                    };
                    options.beginning = Beginning::At(time);
                }
                "showSystemEvents" | "showRawUpdateDescription" | "matchCollectionUUIDForUpdateLookup" => {
                    return Err(Failure::not_supported_yet(&format!("the option '{name}' of $changeStream")));
                }
                _ => {
                    let message = format!("BSON field '{}' is an unknown field.", place());
                    return Err(Failure::new(ErrorCode::IDL_UNKNOWN_FIELD, message));
                }
            }
        }
        let is_given = |name| fields.get(name).is_some_and(|value| !value.is_nullish());
        if is_given("resumeAfter") && is_given("startAfter") {
            let message = "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage";
            return Err(Failure::new(ErrorCode(50865), message));
        }
        if places > 1 {
            let message = "Only one type of resume option is allowed, but multiple were found.";
            return Err(Failure::new(ErrorCode(40674), message));
        }
        Ok(options)
    }
}

fn read_token(name: &str, token: DocumentRef<'_>) -> Result<Token> {
    let token = Token::parse(token)?;
    if name == "resumeAfter" && token.is_invalidate {
        let message =
            "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification.";
        return Err(Failure::new(ErrorCode::INVALID_RESUME_TOKEN, message));
    }
    Ok(token)
}

fn image(place: &str, value: ValueRef<'_>, none: &str, lookup: &str) -> Result<Image> {
    match value {
        ValueRef::String(mode) if mode == none => Ok(Image::None),
        ValueRef::String(mode) if mode == lookup && !lookup.is_empty() => Ok(Image::Lookup),
        ValueRef::String("whenAvailable") => Ok(Image::WhenAvailable),
        ValueRef::String("required") => Ok(Image::Required),
        ValueRef::String(other) => {
            Err(Failure::bad_value(format!("Enumeration value '{other}' for field '{place}' is not a valid value.")))
        }
        other => Err(wrong_type(place, other, "string")),
    }
}

fn switch(place: &str, value: ValueRef<'_>) -> Result<bool> {
    match value {
        ValueRef::Boolean(value) => Ok(value),
        other => Err(wrong_type(place, other, "bool")),
    }
}
