//! The values in force and where they come from: flags take precedence over the file, and the file over the defaults.

use super::file;
use super::flags::ServeArguments;
use super::setting::{Setting, Value};
use super::table::SETTINGS;
use bunko_bson::DocumentBuf;
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
    file: Option<PathBuf>,
    given: Vec<Given>,
}

impl Configuration {
    /// Reads the configuration file, if there is one; flags take precedence over it.
    /// # Errors
    /// A sentence that names the file, and what is wrong with it.
    pub fn read(arguments: &ServeArguments) -> Result<Self, String> {
        let from_flag = |(setting, value): &(&'static Setting, Value)| Given {
            setting,
            value: value.clone(),
            origin: Origin::Flag(setting.flag),
        };
        let mut configuration =
            Self { file: arguments.config.clone(), given: arguments.given.iter().map(from_flag).collect() };
        if let Some(path) = &arguments.config {
            for given in file::read(path)? {
                if configuration.given(given.setting).is_none() {
                    configuration.given.push(given);
                }
            }
        }
        Ok(configuration)
    }

    /// The value that was given for a setting.
    pub fn given(&self, setting: &Setting) -> Option<&Given> {
        self.given.iter().find(|given| given.setting.key() == setting.key())
    }

    /// All values that were given.
    pub fn all_given(&self) -> &[Given] {
        &self.given
    }

    fn value(&self, setting: &Setting) -> Option<Value> {
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

    /// The given values, as `getCmdLineOpts` shows them.
    pub fn parsed(&self) -> DocumentBuf {
        let mut given: Vec<_> = self.given.iter().map(|given| (given.setting.key(), &given.value)).collect();
        given.sort_by_key(|(key, _)| *key);
        let mut parsed = DocumentBuf::new();
        if let Some(file) = &self.file {
            parsed.append("config", file.to_string_lossy().as_ref());
        }
        nest(&given, &mut parsed);
        parsed
    }

    /// The values in force, in that form.
    pub fn all_in_force(&self) -> DocumentBuf {
        let in_force = SETTINGS.iter().filter_map(|setting| Some((setting.key(), self.value(setting)?)));
        let mut in_force: Vec<_> = in_force.collect();
        in_force.sort_by_key(|(key, _)| *key);
        let mut all = DocumentBuf::new();
        nest(&in_force.iter().map(|(key, value)| (*key, value)).collect::<Vec<_>>(), &mut all);
        all
    }
}

/// Appends sorted values, each below the sections of its key.
fn nest(values: &[(&str, &Value)], document: &mut DocumentBuf) {
    let section = |key: &'_ str| key.split_once('.').map(|(section, _)| section.to_owned());
    for group in values.chunk_by(|a, b| section(a.0).is_some() && section(a.0) == section(b.0)) {
        let Some((name, _)) = group[0].0.split_once('.') else {
            group[0].1.append_to(document, group[0].0);
            continue;
        };
        let below: Vec<_> = group.iter().filter_map(|(key, value)| Some((key.split_once('.')?.1, *value))).collect();
        let mut inner = DocumentBuf::new();
        nest(&below, &mut inner);
        document.append(name, &inner);
    }
}
