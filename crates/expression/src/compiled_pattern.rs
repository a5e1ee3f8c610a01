//! A regular expression that is compiled once.

use bunko_errors::{ErrorCode, Failure, Result};

/// A compiled expression.
pub(crate) struct Pattern(pub(crate) bunko_pattern::Pattern);

/// Longest pattern in bytes. Source: MongoDB manual, "$regex".
const PATTERN_BYTES_MAX: usize = 16 * 1024;

impl Pattern {
    /// Compiles a pattern with the options `i m s x u` (`u` is always on).
    /// # Errors
    /// 51109 and 51110 for a zero byte, 51108 for another option, 51111 for a pattern that does not compile.
    pub(crate) fn compile(operator: &str, pattern: &str, options: &str) -> Result<Self> {
        for (text, code, what) in [(pattern, 51109, ""), (options, 51110, " options")] {
            if text.contains('\0') {
                let message = format!("{operator}: regular expression{what} cannot contain an embedded null byte");
                return Err(Failure::new(ErrorCode(code), message));
            }
        }
        if let Some(other) = options.chars().find(|option| !"imsxu".contains(*option)) {
            let message = format!("{operator} invalid flag in regex options: {other}");
            return Err(Failure::new(ErrorCode(51108), message));
        }
        let invalid = |why: String| Failure::new(ErrorCode(51111), format!("Invalid Regex in {operator}: {why}"));
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(invalid("regular expression is too large".to_owned()));
        }
        bunko_pattern::Pattern::compile(pattern, options).map(Self).map_err(invalid)
    }
}
