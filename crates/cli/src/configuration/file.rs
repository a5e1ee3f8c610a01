//! Configuration files in mongod's format. An unknown key stops the start and is reported with its line.

use super::in_force::{Given, Origin};
use super::missing::refusal_of_key;
use super::setting::{Kind, Setting, Value};
use super::table::{SETTINGS, find};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use std::fmt;
use std::path::Path;

/// Reads a file.
/// # Errors
/// A sentence that names the file and the line.
pub fn read(path: &Path) -> Result<Vec<Given>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    walk(&text, &mut found, None).map_err(|error| format!("{}: {}", path.display(), with_line(&error)))?;
    let given = |(setting, value): (&'static Setting, Value)| {
        let line = line_of(&text, setting);
        Given { setting, value, origin: Origin::File { path: path.to_owned(), line } }
    };
    Ok(found.into_iter().map(given).collect())
}

/// Why a file with this text would be refused; without the place.
pub(super) fn refusal_of(text: &str) -> Option<String> {
    let error = walk(text, &mut Vec::new(), None).err()?.to_string();
    Some(error.split(" at line ").next().unwrap_or_default().to_owned())
}

type GivenSettings = Vec<(&'static Setting, Value)>;

/// Reads the settings of a file; ends with an error at the key of `until`.
fn walk(text: &str, found: &mut GivenSettings, until: Option<&Setting>) -> Result<(), serde_yaml_ng::Error> {
    let section = Section { name: String::new(), found, until };
    section.deserialize(serde_yaml_ng::Deserializer::from_str(text))
}

/// The parser's message with line and column, which it omits at the very beginning of a file.
fn with_line(error: &serde_yaml_ng::Error) -> String {
    let text = error.to_string();
    match error.location() {
        Some(place) if !text.contains(" at line ") => {
            format!("{text} at line {} column {}", place.line(), place.column())
        }
        _ => text,
    }
}

/// The line of a key. The parser reports positions only in errors, so this provokes an error at the key.
fn line_of(text: &str, setting: &Setting) -> usize {
    let outcome = walk(text, &mut Vec::new(), Some(setting));
    outcome.err().and_then(|error| error.location()).map_or(0, |location| location.line())
}

struct Section<'a> {
    /// Path of the section; empty at the top.
    name: String,
    found: &'a mut GivenSettings,
    until: Option<&'a Setting>,
}

impl<'de> DeserializeSeed<'de> for Section<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Section<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a section with keys")
    }

    /// A section whose content is commented out sets nothing.
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let Self { name, found, until } = self;
        while let Some(key) = map.next_key_seed(KeyIn { section: &name, found, until })? {
            match key {
                Key::Section(name) => map.next_value_seed(Section { name, found, until })?,
                Key::Setting(setting) => {
                    let value = map.next_value_seed(ValueOf(setting))?;
                    found.push((setting, value));
                }
            }
        }
        Ok(())
    }
}

struct KeyIn<'a> {
    section: &'a str,
    found: &'a GivenSettings,
    until: Option<&'a Setting>,
}

enum Key {
    Section(String),
    Setting(&'static Setting),
}

impl<'de> DeserializeSeed<'de> for KeyIn<'_> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyIn<'_> {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Key, E> {
        let path = if self.section.is_empty() { name.to_owned() } else { format!("{}.{name}", self.section) };
        let Some(setting) = find(&path) else {
            let below = format!("{path}.");
            let is_section = SETTINGS.iter().flat_map(|setting| setting.keys).any(|key| key.starts_with(&below));
            return if is_section {
                Ok(Key::Section(path))
            } else {
                Err(E::custom(refusal_of_key(&path).unwrap_or_else(|| format!("unknown key {path}"))))
            };
        };
        if self.until.is_some_and(|until| until.key() == setting.key()) {
            return Err(E::custom("here it is"));
        }
        if self.found.iter().any(|(earlier, _)| earlier.key() == setting.key()) {
            return Err(E::custom(format!("{} is given twice", setting.keys.join(", also called "))));
        }
        Ok(Key::Setting(setting))
    }
}

struct ValueOf(&'static Setting);

impl<'de> DeserializeSeed<'de> for ValueOf {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl ValueOf {
    fn check<E: Error>(&self, value: Value) -> Result<Value, E> {
        self.0.kind.check(value).map_err(E::custom)
    }
}

impl<'de> Visitor<'de> for ValueOf {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.check(Value::Switch(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.check(Value::Whole(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.check(i64::try_from(value).map_or_else(|_| Value::Text(value.to_string()), Value::Whole))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.check(Value::Number(value))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut values: S) -> Result<Value, S::Error> {
        if !matches!(self.0.kind, Kind::List(_)) {
            return Err(S::Error::invalid_type(Unexpected::Seq, &self));
        }
        let mut texts = Vec::new();
        while let Some(text) = values.next_element::<String>()? {
            texts.push(text);
        }
        self.check(Value::Text(texts.join(",")))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.check(Value::Text(value.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<String>, String> {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("mongod.conf");
        std::fs::write(&path, text).expect("written");
        let given = read(&path).map_err(|error| error.replace(&format!("{}: ", path.display()), ""))?;
        let line = |given: &Given| {
            let Origin::File { line, .. } = given.origin else { panic!("not from a file") };
            format!("{line} {} {}", given.setting.key(), given.value)
        };
        Ok(given.iter().map(line).collect())
    }

    #[test]
    fn a_mongod_file_is_read() {
        let text = "\
            # mongod.conf\n\
            storage:\n  dbPath: /var/lib/mongodb\n  engine: wiredTiger\n#  wiredTiger:\n\
            net:\n  port: 27018\n  bindIp: 127.0.0.1,::1 # two of them\n\
            #security:\n";
        let expected = [
            "3 storage.dbPath /var/lib/mongodb",
            "4 storage.engine wiredTiger",
            "7 net.port 27018",
            "8 net.bindIp 127.0.0.1,::1",
        ];
        assert_eq!(read_text(text).expect("valid"), expected);
        // JSON is YAML.
        assert_eq!(read_text(r#"{"net": {"port": 1}}"#).expect("valid"), ["1 net.port 1"]);
        assert_eq!(read_text("storage:\nnet:\n  port: 5\n").expect("valid"), ["3 net.port 5"]);
        assert!(read_text("# nothing\n\n").expect("valid").is_empty());
        let text = "net:\n  unixDomainSocket:\n    filePermissions: 0770\n";
        assert_eq!(read_text(text).expect("valid"), ["3 net.unixDomainSocket.filePermissions 0770"]);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, expected) in [
            ("net:\n  port: 1\n  prot: 2\n", "net: unknown key net.prot at line 3 column 3"),
            ("net:\n  port: 1\n  port: 2\n", "net: net.port is given twice at line 3 column 3"),
            ("net:\n  port: 70000\n", "net.port: 70000 is not a whole number within 0 to 65535 at line 2 column 9"),
            ("net:\n  port:\n", "net.port: invalid type: unit value, expected a value at line 2 column 8"),
            ("net:\n  port: [1]\n", "net.port: invalid type: sequence, expected a value at line 2 column 9"),
            ("net: 5\n", "net: invalid type: integer `5`, expected a section with keys at line 1 column 6"),
            (
                "sharding:\n  clusterRole: shardsvr\n",
                "sharding is not supported yet: there are no shards at line 1 column 1",
            ),
            (
                "net:\n  tls:\n    clusterFile: x\n",
                "net.tls: net.tls.clusterFile is not supported yet: members of a set talk to each other with the server's \
                 own certificate and authorities at line 3 column 5",
            ),
            (
                "processManagement:\n  fork: true\n",
                "processManagement.fork: true is not supported, only false: let systemd or a container's runtime start \
                 it in the background, or the shell: nohup bunko serve ... & at line 2 column 9",
            ),
            (
                "storage:\n  lsm:\n    cacheSizeGB: 0\n",
                "storage.lsm.cacheSizeGB: 0 is not a number within 0.25 to 10000 at line 3 column 18",
            ),
        ] {
            assert_eq!(read_text(text).expect_err("refused"), expected);
        }
        let ranges = "net:\n  maxIncomingConnectionsOverride: [\"10.0.0.0/8\", \"::1\"]\n";
        assert_eq!(read_text(ranges).expect("valid"), ["2 net.maxIncomingConnectionsOverride 10.0.0.0/8,::1"]);
        let error = read_text("net:\n  maxIncomingConnectionsOverride: [\"10.0.0.0/99\"]\n").expect_err("refused");
        assert!(error.contains("'10.0.0.0/99' is neither an address nor a range"), "{error}");
        let twice = "storage:\n  lsm:\n    cacheSizeGB: 1\n  wiredTiger:\n    engineConfig:\n      cacheSizeGB: 1\n";
        let error = read_text(twice).expect_err("refused");
        assert!(error.contains("storage.lsm.cacheSizeGB is given twice at line 6"), "{error}");
        assert!(read_text("net:\n\tport: 1\n").expect_err("refused").contains("line 2"));
    }
}
