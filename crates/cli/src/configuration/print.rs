//! `--print-config`: the configuration in force, as a file that `--config` accepts.

use super::in_force::{Configuration, Origin};
use super::setting::{Effect, Value};
use super::table::SETTINGS;
use bunko_store::Survival;
use std::fmt::Write;

/// The file, each value with its origin. Defaults that have no effect on an engine in memory are omitted.
pub fn print(configuration: &Configuration, survival: Survival) -> String {
    let is_idle = |effect| effect == Effect::OnDisk && survival == Survival::Volatile;
    let in_force = SETTINGS.iter().filter_map(|setting| {
        let (value, origin) = configuration.in_force(setting)?;
        (origin != Origin::Default || !is_idle(setting.effect)).then_some((setting.key(), value, origin))
    });
    let mut lines: Vec<_> = in_force.collect();
    lines.sort_by_key(|(key, _, _)| *key);
    let mut text = String::new();
    let mut open = "";
    for (key, value, origin) in &lines {
        let (sections, name) = key.rsplit_once('.').unwrap_or(("", key));
        open_sections(&mut text, open, sections);
        open = sections;
        let depth = sections.split('.').count();
        let _ = writeln!(text, "{:indent$}{name}: {}  # {origin}", "", yaml(value), indent = 2 * depth);
    }
    text
}

/// Writes the names of sections that are not open yet.
fn open_sections(text: &mut String, open: &str, sections: &str) {
    let mut open = open.split('.');
    let mut is_open = true;
    for (depth, section) in sections.split('.').enumerate() {
        is_open = is_open && open.next() == Some(section);
        if !is_open {
            let _ = writeln!(text, "{:indent$}{section}:", "", indent = 2 * depth);
        }
    }
}

fn yaml(value: &Value) -> String {
    let Value::Text(text) = value else { return value.to_string() };
    match serde_yaml_ng::to_string(text) {
        Ok(plain) if plain.trim_end().lines().count() == 1 => plain.trim_end().to_owned(),
        // A text of several lines is written as a JSON string on one line, which is valid YAML.
        _ => serde_json::Value::from(text.as_str()).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::ServeArguments;
    use crate::configuration::table::{DB_PATH, FILE_PERMISSIONS, LOG_FORMAT, PORT};
    use std::path::{Path, PathBuf};

    const FILE: &str = "\
        storage:\n  lsm:\n    cacheSizeGB: 2\n    blockCompressor: zstd\n  dbPath: \"/a: #b\\n'\"\n\
        net:\n  unixDomainSocket:\n    filePermissions: 0750\n  port: 5\n\
        systemLog:\n  format: json\n";

    fn configuration(file: &Path, text: &str) -> Configuration {
        std::fs::write(file, text).expect("written");
        let arguments = ServeArguments { config: Some(PathBuf::from(file)), ..ServeArguments::default() };
        Configuration::read(&arguments).expect("valid")
    }

    /// Without the comments, which differ.
    fn values(text: &str) -> Vec<&str> {
        text.lines().map(|line| line.split("  # ").next().unwrap_or_default()).collect()
    }

    #[test]
    fn printed_settings_read_the_same() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let file = directory.path().join("mongod.conf");
        let first = configuration(&file, FILE);
        let printed = print(&first, Survival::Durable);
        let second = configuration(&file, &printed);
        assert_eq!(values(&print(&second, Survival::Durable)), values(&printed));
        for setting in [&DB_PATH, &FILE_PERMISSIONS, &LOG_FORMAT, &PORT] {
            assert_eq!(first.text(setting), second.text(setting));
        }
        assert_eq!(second.text(&DB_PATH).as_deref(), Some("/a: #b\n'"));
        let origin = |key: &str| printed.lines().find(|line| line.contains(key)).unwrap_or_default().to_owned();
        let line = format!("      cacheSizeGB: 2  # {}, line 3", file.display());
        assert_eq!(origin("cacheSizeGB"), line);
        assert_eq!(origin("zstdCompressionLevel"), "      zstdCompressionLevel: 6  # default");
    }

    #[test]
    fn an_engine_in_memory_has_no_settings_for_disks() {
        let printed = print(&Configuration::default(), Survival::Volatile);
        assert!(printed.contains("inMemorySizeGB") && !printed.contains("wiredTiger"), "{printed}");
    }
}
