//! The findings of checks: failures stop the build, warnings are only shown.

/// Findings of one check or of several, in the order in which they were made.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Findings {
    pub failures: Vec<String>,
    pub warnings: Vec<String>,
}

impl Findings {
    pub fn fail(&mut self, message: impl Into<String>) {
        self.failures.push(message.into());
    }

    pub fn warn(&mut self, message: impl Into<String>) {
        self.warnings.push(message.into());
    }
}
