//! The values in force and where they come from: flags take precedence over the file, and the file over the defaults.

use super::setting::{Setting, Value};
use bunko_certificates::Password;
use std::fmt;
use std::path::PathBuf;

/// Source of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    Flag(&'static str),
    /// The line number counts from 1.
    File {
        path: PathBuf,
        line: usize,
    },
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "flag --{flag}"),
            Self::File { path, line } => write!(f, "{}, line {line}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value that was given as a flag or in the file.
pub struct Given {
    pub setting: &'static Setting,
    pub value: Value,
    pub origin: Origin,
}

/// The values of all settings.
#[derive(Default)]
pub struct Configuration {
    pub(super) file: Option<PathBuf>,
    pub(super) given: Vec<Given>,
}

impl Configuration {
    /// The value that was given for a setting.
    pub fn given(&self, setting: &Setting) -> Option<&Given> {
        self.given.iter().find(|given| given.setting.key() == setting.key())
    }

    /// All values that were given.
    pub fn all_given(&self) -> &[Given] {
        &self.given
    }

    /// The value in force.
    pub fn value(&self, setting: &Setting) -> Option<Value> {
        self.given(setting).map_or_else(|| (setting.default)(self), |given| Some(given.value.clone()))
    }

    /// The value in force and its source.
    pub fn in_force(&self, setting: &Setting) -> Option<(Value, Origin)> {
        let origin = self.given(setting).map_or(Origin::Default, |given| given.origin.clone());
        self.value(setting).map(|value| (value, origin))
    }

    /// A setting's name for a message, with the place where its value was given.
    pub fn name_of(&self, setting: &Setting) -> String {
        let origin = self.given(setting).map(|given| format!(" ({})", given.origin)).unwrap_or_default();
        format!("{}{origin}", setting.key())
    }

    /// The value in force as text; `None` for a setting without a value.
    pub fn text(&self, setting: &Setting) -> Option<String> {
        self.value(setting).map(|value| value.to_string())
    }

    /// The value of a secret, which is never displayed.
    pub fn secret(&self, setting: &Setting) -> Option<Password> {
        if let Some(Value::Secret(password)) = self.value(setting) { Some(password) } else { None }
    }

    /// Whether a switch is on.
    pub fn is_on(&self, setting: &Setting) -> bool {
        match self.value(setting) {
            Some(Value::Switch(is_on)) => is_on,
            Some(Value::Text(text)) => text == "enabled",
            _ => false,
        }
    }

    /// A whole number; 0 for a setting without a value.
    pub fn whole(&self, setting: &Setting) -> i64 {
        if let Some(Value::Whole(number)) = self.value(setting) { number } else { 0 }
    }

    /// A number; 0 for a setting without a value.
    pub fn number(&self, setting: &Setting) -> f64 {
        if let Some(Value::Number(number)) = self.value(setting) { number } else { 0.0 }
    }
}
