//! The options of `create` and `collMod` for validating documents.

use crate::collection_options::choice;
use crate::invocation::Invocation;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{Namespace, check_validator};
use bunko_errors::{ErrorCode, Failure, Result};

/// Size of a parsed validator, as a multiple of its document's size: the filter, and each clause in its original form.
const VALIDATOR_PARTS: usize = 40;

/// `validator`, `validationLevel` and `validationAction`, if they are given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValidationOptions<'a> {
    validator: Option<DocumentRef<'a>>,
    level: Option<&'a str>,
    action: Option<&'a str>,
}

impl<'a> ValidationOptions<'a> {
    /// Parses the options.
    /// # Errors
    /// `TypeMismatch`; `BadValue` for an unknown level or action.
    pub fn parse(invocation: &Invocation<'a>) -> Result<Self> {
        Ok(Self {
            validator: invocation.document("validator")?,
            level: choice(invocation, "validationLevel", &["off", "strict", "moderate"])?,
            action: choice(invocation, "validationAction", &["error", "warn", "errorAndLog"])?,
        })
    }

    /// Whether any of the options is given.
    pub fn are_given(&self) -> bool {
        self.validator.is_some() || self.level.is_some() || self.action.is_some()
    }

    /// Whether every write that makes a document invalid is refused.
    pub fn refuse_all_invalid(&self) -> bool {
        self.level.is_none_or(|level| level == "strict") && self.action.is_none_or(|action| action != "warn")
    }

    /// Checks that the validator is valid, and that the collection may have one.
    /// # Errors
    /// `InvalidOptions` for the server's own collections; errors of filters.
    pub fn check(&self, invocation: &Invocation<'_>, namespace: &Namespace) -> Result<()> {
        let Some(validator) = self.validator.filter(|validator| !validator.is_empty()) else { return Ok(()) };
        if namespace.collection().starts_with("system.") {
            return Err(Failure::new(
                ErrorCode::INVALID_OPTIONS,
                format!("Document validators not allowed on system collection {namespace}"),
            ));
        }
        if matches!(namespace.database(), "admin" | "config" | "local") {
            return Err(Failure::new(
                ErrorCode::INVALID_OPTIONS,
                format!(
                    "Document validators are not allowed on collection {namespace} in the {} database",
                    namespace.database()
                ),
            ));
        }
        invocation.operation().will_take(VALIDATOR_PARTS * validator.len_bytes())?;
        check_validator(validator, invocation.service.catalog.store())
    }

    /// A collection's options with these options in place of the old.
    pub fn put_into(&self, options: DocumentRef<'_>) -> DocumentBuf {
        const NAMES: [&str; 3] = ["validator", "validationLevel", "validationAction"];
        let mut changed = DocumentBuf::new();
        for element in options.iter().filter(|element| !NAMES.contains(&element.name)) {
            changed.append(element.name, element.value);
        }
        let before = |name: &str| options.get(name);
        let validator = match self.validator {
            Some(validator) => Some(validator).filter(|validator| !validator.is_empty()),
            None => before("validator").and_then(ValueRef::as_document),
        };
        if let Some(validator) = validator {
            changed.append("validator", validator);
        }
        // A validator sets both defaults, and they stay when it is removed.
        for (name, given, default) in
            [("validationLevel", self.level, "strict"), ("validationAction", self.action, "error")]
        {
            let kept = before(name).and_then(ValueRef::as_str);
            if let Some(text) = given.or(kept).or(validator.map(|_| default)) {
                changed.append(name, text);
            }
        }
        changed
    }
}
