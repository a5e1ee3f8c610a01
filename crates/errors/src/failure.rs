//! The failure of an operation, as the user sees it.

use crate::ErrorCode;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use std::borrow::Cow;
use std::fmt::{self, Display};

/// The code of [`Failure::too_long`]: MongoDB has no codes below 0.
const TOO_LONG: ErrorCode = ErrorCode(-1);

/// A code, a message, and further fields of a reply. One pointer wide, so that results stay small.
#[derive(Clone)]
pub struct Failure(Box<Facts>);

#[derive(Clone)]
struct Facts {
    code: ErrorCode,
    message: String,
    labels: Vec<Cow<'static, str>>,
    /// Whether no layer may add labels any more.
    are_labels_final: bool,
    details: DocumentBuf,
}

impl Failure {
    /// A failure with this code and message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Box::new(Facts {
            code,
            message: message.into(),
            labels: Vec::new(),
            are_labels_final: false,
            details: DocumentBuf::new(),
        }))
    }

    /// `BadValue`, the most common code.
    pub fn bad_value(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::BAD_VALUE, message)
    }

    /// `CommandNotSupported`, for a feature that MongoDB has and Bunko does not.
    pub fn not_supported_yet(name: &str) -> Self {
        Self::new(ErrorCode::COMMAND_NOT_SUPPORTED, format!("{name} is not supported yet"))
    }

    /// `FailedToParse`.
    pub fn failed_to_parse(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::FAILED_TO_PARSE, message)
    }

    /// `TypeMismatch`. The message should name the field.
    pub fn type_mismatch(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::TYPE_MISMATCH, message)
    }

    /// `IDLUnknownField`. The place is the field's dotted path, below its command or stage.
    pub fn unknown_field(place: impl Display) -> Self {
        Self::new(ErrorCode::IDL_UNKNOWN_FIELD, format!("BSON field '{place}' is an unknown field."))
    }

    /// `IDLFailedToParse`. The place is as for [`Self::unknown_field`].
    pub fn missing_field(place: impl Display) -> Self {
        Self::new(ErrorCode::IDL_FAILED_TO_PARSE, format!("BSON field '{place}' is missing but a required field"))
    }

    /// `TypeMismatch` for the value of a field. The place is as for [`Self::unknown_field`]; `expected` is as in
    /// `type 'object'`.
    pub fn wrong_type(place: impl Display, found: ValueRef<'_>, expected: impl Display) -> Self {
        let kind = found.kind().alias();
        Self::type_mismatch(format!("BSON field '{place}' is the wrong type '{kind}', expected {expected}"))
    }

    /// Not an error of the user: the operation would hold up others on its thread, and must begin again on a thread of
    /// its own. No client ever sees this failure.
    pub fn too_long() -> Self {
        Self::new(TOO_LONG, "the operation is to run on a thread of its own")
    }

    /// Whether the failure is [`Self::too_long`].
    pub fn is_too_long(&self) -> bool {
        self.0.code == TOO_LONG
    }

    /// Adds an error label, such as `TransientTransactionError`.
    #[must_use]
    pub fn with_label(mut self, label: &'static str) -> Self {
        self.0.labels.push(Cow::Borrowed(label));
        self
    }

    /// Replaces the failure's labels with these; later layers do not add the labels that belong to the code.
    #[must_use]
    pub fn with_labels_instead(mut self, labels: Vec<String>) -> Self {
        self.0.labels = labels.into_iter().map(Cow::Owned).collect();
        self.0.are_labels_final = true;
        self
    }

    /// Whether [`Self::with_labels_instead`] has set the labels, so that none may be added.
    pub fn has_labels_instead(&self) -> bool {
        self.0.are_labels_final
    }

    /// Adds fields that are beside `code` in the reply, such as `keyPattern` and `keyValue`.
    #[must_use]
    pub fn with_details(mut self, details: DocumentRef<'_>) -> Self {
        self.0.details.extend(details);
        self
    }

    /// Puts words in front of the message, as the parser of an outer document does.
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

    /// Fields that are beside `code` in the reply.
    pub fn details(&self) -> DocumentRef<'_> {
        self.0.details.as_ref()
    }
}

impl Display for Failure {
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
