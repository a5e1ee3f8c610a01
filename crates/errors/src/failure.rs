//! One failed operation, as the user will see it.

use crate::ErrorCode;
use bunko_bson::{DocumentBuf, DocumentRef};
use std::borrow::Cow;
use std::fmt;

/// No code of MongoDB's is below 0.
const TOO_LONG: ErrorCode = ErrorCode(-1);

/// A code, a message, and what else a reply carries. One pointer wide, so results stay small.
#[derive(Clone)]
pub struct Failure(Box<Facts>);

#[derive(Clone)]
struct Facts {
    code: ErrorCode,
    message: String,
    labels: Vec<Cow<'static, str>>,
    /// Nobody adds any more.
    are_labels_final: bool,
    details: DocumentBuf,
}

impl Failure {
    /// A failure with that code and message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Box::new(Facts {
            code,
            message: message.into(),
            labels: Vec::new(),
            are_labels_final: false,
            details: DocumentBuf::new(),
        }))
    }

    /// `BadValue`, the commonest.
    pub fn bad_value(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::BAD_VALUE, message)
    }

    /// `CommandNotSupported`, for what MongoDB has by that name and we have not.
    pub fn not_supported_yet(name: &str) -> Self {
        Self::new(ErrorCode::COMMAND_NOT_SUPPORTED, format!("{name} is not supported yet"))
    }

    /// `FailedToParse`.
    pub fn failed_to_parse(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::FAILED_TO_PARSE, message)
    }

    /// `TypeMismatch`, which names the field.
    pub fn type_mismatch(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::TYPE_MISMATCH, message)
    }

    /// Not a user's error: the operation would hold up others where it runs, and is to begin anew on a thread of its own.
    /// No client ever sees it.
    pub fn too_long() -> Self {
        Self::new(TOO_LONG, "the operation is to run on a thread of its own")
    }

    /// Whether it is [`Self::too_long`].
    pub fn is_too_long(&self) -> bool {
        self.0.code == TOO_LONG
    }

    /// Adds an error label, such as `TransientTransactionError`.
    #[must_use]
    pub fn with_label(mut self, label: &'static str) -> Self {
        self.0.labels.push(Cow::Borrowed(label));
        self
    }

    /// Has those labels and no others, whatever the code says.
    #[must_use]
    pub fn with_labels_instead(mut self, labels: Vec<String>) -> Self {
        self.0.labels = labels.into_iter().map(Cow::Owned).collect();
        self.0.are_labels_final = true;
        self
    }

    /// Whether no labels are to be added to those that it has.
    pub fn has_labels_instead(&self) -> bool {
        self.0.are_labels_final
    }

    /// Adds fields that stand beside `code` in the reply, such as `keyPattern` and `keyValue`.
    #[must_use]
    pub fn with_details(mut self, details: DocumentRef<'_>) -> Self {
        self.0.details.extend(details);
        self
    }

    /// Puts words in front of the message, as outer parsers do.
    #[must_use]
    pub fn with_prefix(mut self, prefix: &str) -> Self {
        self.0.message.insert_str(0, prefix);
        self
    }

    /// The code.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The message, for `errmsg`.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Error labels, for `errorLabels`.
    pub fn labels(&self) -> &[Cow<'static, str>] {
        &self.0.labels
    }

    /// Fields that stand beside `code`.
    pub fn details(&self) -> DocumentRef<'_> {
        self.0.details.as_ref()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.name(), self.0.message)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.code, self.0.message)
    }
}

impl std::error::Error for Failure {}
