//! The options of `$changeStream`.
//! Source: MongoDB manual 8.2, `$changeStream`.

use crate::token::{GivenToken, Token};
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, Timestamp, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::wrong_type;

/// All fields of a specification. Nulls count as missing.
const FIELDS: &[&str] = &[
    "allChangesForCluster",
    "allowToRunOnConfigDB",
    "allowToRunOnSystemNS",
    "fullDocument",
    "fullDocumentBeforeChange",
    "matchCollectionUUIDForUpdateLookup",
    "resumeAfter",
    "showExpandedEvents",
    "showMigrationEvents",
    "showRawUpdateDescription",
    "showSystemEvents",
    "startAfter",
    "startAtOperationTime",
];

/// Whether events carry a document, and how a missing one is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Image {
    None,
    /// The document as it is when the stream reads the event.
    Lookup,
    WhenAvailable,
    Required,
}

/// The position at which a stream begins.
#[derive(Clone, Debug)]
pub(crate) enum Beginning {
    Now,
    At(Timestamp),
    After(Token),
}

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub full_document: Image,
    pub before: Image,
    pub beginning: Beginning,
    pub is_expanded: bool,
    /// Whether copies of another collection's documents are returned as inserts.
    pub shows_copies: bool,
    /// Whether a document is looked up only if the collection still has the UUID in the event.
    pub matches_uuid: bool,
}

/// A specification whose fields have the right types.
#[derive(Debug)]
pub(crate) struct Specification<'c> {
    full_document: Image,
    before: Image,
    pub all_changes: bool,
    is_expanded: bool,
    shows_copies: bool,
    matches_uuid: bool,
    resume_after: Option<GivenToken<'c>>,
    start_after: Option<GivenToken<'c>>,
    start_at: Option<Timestamp>,
}

impl<'c> Specification<'c> {
    /// Parses a specification.
    /// # Errors
    /// `IDLUnknownField`, `TypeMismatch`, `BadValue`; 40647 and 40648 for tokens without digits, 6188500 if the
    /// specification is not an object.
    pub fn parse(specification: ValueRef<'c>) -> Result<Self> {
        let mut parsed = Self {
            full_document: Image::None,
            before: Image::None,
            all_changes: false,
            is_expanded: false,
            shows_copies: false,
            matches_uuid: false,
            resume_after: None,
            start_after: None,
            start_at: None,
        };
        for element in checked_object(specification)? {
            let (name, value) = (element.name, element.value);
            let place = || format!("$changeStream.{name}");
            let token = || {
                let token = value.as_document().ok_or_else(|| wrong_type(&place(), value, "object"))?;
                GivenToken::parse(token)
            };
            match name {
                _ if FIELDS.contains(&name) && value.is_nullish() => {}
                "fullDocument" => parsed.full_document = image(&place(), value, "default", "updateLookup")?,
                "fullDocumentBeforeChange" => parsed.before = image(&place(), value, "off", "")?,
                "allChangesForCluster" => parsed.all_changes = switch(&place(), value)?,
                "showExpandedEvents" => parsed.is_expanded = switch(&place(), value)?,
                "resumeAfter" => parsed.resume_after = Some(token()?),
                "startAfter" => parsed.start_after = Some(token()?),
                "startAtOperationTime" => {
                    let ValueRef::Timestamp(time) = value else {
                        return Err(wrong_type(&place(), value, "timestamp"));
                    };
                    parsed.start_at = Some(time);
                }
                "matchCollectionUUIDForUpdateLookup" => parsed.matches_uuid = switch(&place(), value)?,
                "showMigrationEvents" => parsed.shows_copies = switch(&place(), value)?,
                "showSystemEvents" | "showRawUpdateDescription" | "allowToRunOnConfigDB" | "allowToRunOnSystemNS" => {
                    if switch(&place(), value)? {
                        return Err(Failure::not_supported_yet(&format!("the option '{name}' of $changeStream")));
                    }
                }
                _ => return Err(Failure::unknown_field(place())),
            }
        }
        Ok(parsed)
    }

    /// Checks the fields together, and reads the tokens.
    /// # Errors
    /// 40674 for both a token and a time, 50865 for two tokens; errors of a token's digits, and `InvalidResumeToken`
    /// for resuming after an invalidation.
    pub fn into_options(self) -> Result<Options> {
        if self.resume_after.is_some() && self.start_after.is_some() {
            let message = "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage";
            return Err(Failure::new(ErrorCode(50865), message));
        }
        let token = self.resume_after.or(self.start_after);
        if token.is_some() && self.start_at.is_some() {
            let message = "Only one type of resume option is allowed, but multiple were found.";
            return Err(Failure::new(ErrorCode(40674), message));
        }
        let token = token.map(GivenToken::read).transpose()?;
        if self.resume_after.is_some() && token.as_ref().is_some_and(|token| token.is_invalidate) {
            let message = "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate \
                           notification.";
            return Err(Failure::new(ErrorCode::INVALID_RESUME_TOKEN, message));
        }
        let beginning = match (token, self.start_at) {
            (Some(token), _) => Beginning::After(token),
            (None, Some(time)) => Beginning::At(time),
            (None, None) => Beginning::Now,
        };
        let Self { full_document, before, is_expanded, shows_copies, matches_uuid, .. } = self;
        Ok(Options { full_document, before, beginning, is_expanded, shows_copies, matches_uuid })
    }
}

/// Returns the specification as an object.
/// # Errors
/// 6188500 if the specification is not an object.
pub(crate) fn checked_object(specification: ValueRef<'_>) -> Result<DocumentRef<'_>> {
    specification.as_document().ok_or_else(|| {
        let message = format!("$changeStream must take a nested object but found: {}", ValueText(specification));
        Failure::new(ErrorCode(6_188_500), message)
    })
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
