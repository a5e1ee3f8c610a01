//! An entry in the table of parameters, and the refusals that entries share.

use crate::owners::Owners;
use bunko_bson::{Value, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::secret_names::shown_text;

/// Returns the value of a parameter.
type Read = fn(&dyn Owners) -> Result<Value>;
/// Sets a parameter.
type Write = fn(&dyn Owners, ValueRef<'_>) -> Result<()>;

/// One parameter.
pub struct Parameter {
    /// The parameter's name.
    pub name: &'static str,
    /// Returns the parameter's value.
    pub read: Read,
    /// Sets the parameter; `None` if it cannot be set while the server runs.
    pub write: Option<Write>,
    /// Whether `MongoDB` sets the parameter when it starts.
    pub at_startup: bool,
    /// Sets the parameter when the server starts; `None` if it can be set at any time or never.
    pub begin: Option<Write>,
}

impl Parameter {
    /// Makes a parameter whose value does not change.
    pub(crate) const fn fixed(name: &'static str, read: Read) -> Self {
        Self { name, read, write: None, at_startup: false, begin: None }
    }

    /// Makes a parameter that is decided when the server starts.
    pub(crate) const fn startup(name: &'static str, read: Read) -> Self {
        Self { name, read, write: None, at_startup: true, begin: None }
    }

    /// Makes a parameter that can be set only when the server starts.
    pub(crate) const fn set_at_startup(name: &'static str, read: Read, begin: Write) -> Self {
        Self { name, read, write: None, at_startup: true, begin: Some(begin) }
    }

    /// Makes a parameter that can be set at any time.
    pub(crate) const fn settable(name: &'static str, read: Read, write: Write) -> Self {
        Self { name, read, write: Some(write), at_startup: true, begin: None }
    }
}

/// The refusal of a value.
pub fn invalid(name: &str, value: ValueRef<'_>, why: &str) -> Failure {
    Failure::bad_value(format!("Invalid value for parameter {name}: {} {why}", shown_text(value)))
}

pub fn whole_number(name: &str, value: ValueRef<'_>) -> Result<i64> {
    number::as_i64_exact(value).ok_or_else(|| invalid(name, value, "is not a whole number"))
}

/// The refusal to change a parameter that cannot be set now.
pub fn not_settable(name: &str) -> Failure {
    Failure::new(ErrorCode::ILLEGAL_OPERATION, format!("not allowed to change [{name}] at runtime"))
}
