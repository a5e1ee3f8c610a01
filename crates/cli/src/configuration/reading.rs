//! Reads the configuration from flags and the file, and shows it as documents.

use super::file;
use super::flags::ServeArguments;
use super::in_force::{Configuration, Given, Origin};
use super::setting::{Setting, Value};
use super::table::SETTINGS;
use bunko_bson::DocumentBuf;

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
