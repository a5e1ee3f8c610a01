//! The failure of scripts and of the engine that runs them.

use bunko_errors::{ErrorCode, Failure};

pub(crate) fn interpreter_failure(message: &str) -> Failure {
    Failure::new(ErrorCode::JS_INTERPRETER_FAILURE, message)
}
