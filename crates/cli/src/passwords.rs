//! The passwords of tools and of the shell. A password comes from a flag, from a connection string, from the file of
//! `--config`, or from the terminal; this is the one place that looks for those that the command line does not have.
//! Source: MongoDB Database Tools' manual, "mongodump --config" and "--password".
//!
//! **Invariant:** no message has a password; of the file of `--config`, none has more than the refused part of a
//! connection string.

use bunko_shell::Login;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The largest file of `--config`, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// The keys of the file of a tool that works with one server.
pub const KEYS_OF_SERVER: &[&str] = &[URI, PASSWORD, KEY_PASSWORD, KEY_PASSWORD_TLS];
/// A connection string.
pub const URI: &str = "uri";
const PASSWORD: &str = "password";
const KEY_PASSWORD: &str = "sslPEMKeyPassword";
const KEY_PASSWORD_TLS: &str = "tlsCertificateKeyFilePassword";

/// Asks a question, and returns the answer, which is not shown.
pub type Ask = fn(&str) -> io::Result<String>;

/// The file of `--config`; without that flag, an empty one.
#[derive(Default)]
pub struct SecretFile {
    path: PathBuf,
    values: BTreeMap<String, String>,
}

impl SecretFile {
    /// Reads a file in YAML with some of the keys.
    /// # Errors
    /// A sentence that names the file.
    pub fn read(path: &Path, keys: &[&str]) -> Result<Self, String> {
        let wrong = |why: &str| format!("--config {}: {why}", path.display());
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text));
        read.map_err(|error| wrong(&error.to_string()))?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(wrong(&format!("it has more than {FILE_BYTES_MAX} bytes")));
        }
        let form = || wrong(&format!("it has to have lines 'KEY: TEXT', where KEY is one of {}", keys.join(", ")));
        // The parser's own message may show a password.
        let given: Option<Lines> = serde_yaml_ng::from_str(&text).map_err(|_| form())?;
        let given = given.map(|Lines(lines)| lines).unwrap_or_default();
        if !given.keys().all(|key| keys.contains(&key.as_str())) {
            return Err(form());
        }
        // As in MongoDB's tools, an empty value is no value.
        let values = given.into_iter().filter_map(|(key, value)| Some((key, value.filter(|value| !value.is_empty())?)));
        Ok(Self { path: path.to_owned(), values: values.collect() })
    }

    /// The value of a key; `None` if the file lacks the key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// A message about a key of the file.
    pub fn refusal(&self, key: &str, why: &str) -> String {
        format!("--config {}: {key}: {why}", self.path.display())
    }
}

/// The keys of the file and their values. A key that is given twice is refused: one of its values would not count.
struct Lines(BTreeMap<String, Option<String>>);

impl<'de> Deserialize<'de> for Lines {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LinesVisitor)
    }
}

struct LinesVisitor;

impl<'de> Visitor<'de> for LinesVisitor {
    type Value = Lines;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keys with texts")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Lines, M::Error> {
        let mut lines = BTreeMap::new();
        while let Some((key, value)) = map.next_entry()? {
            if lines.insert(key, value).is_some() {
                return Err(Error::custom("a key is given twice"));
            }
        }
        Ok(Lines(lines))
    }
}

/// Where the password of a command line's user is looked for first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// A flag has the password: that of the file does not count.
    Given,
    /// No flag has it.
    Absent,
}

/// The connection string with the passwords that it lacks, from the file, or from the user.
/// # Errors
/// A sentence, if the file contradicts the connection string, or there is no terminal to ask at.
pub fn complete(text: &str, flag: Flag, file: &SecretFile, ask: Ask) -> Result<String, String> {
    let text = with_password(text, flag, file, ask)?;
    let login = Login::of(&text);
    let of_file = [KEY_PASSWORD, KEY_PASSWORD_TLS].into_iter().find_map(|key| Some((key, file.get(key)?)));
    if login.has_key_password() {
        return Ok(text);
    }
    match (of_file, login.key_file()) {
        (Some((key, _)), None) => {
            Err(file.refusal(key, "no certificate with a key is named (--tlsCertificateKeyFile)"))
        }
        (Some((_, password)), Some(_)) => Ok(login.with_key_password(password)),
        (None, Some(path)) if is_encrypted(&path) => {
            let password = answer(ask, &format!("Password of the key in {path}: "), &format!("the key in {path}"))?;
            Ok(login.with_key_password(&password))
        }
        (None, _) => Ok(text),
    }
}

fn with_password(text: &str, flag: Flag, file: &SecretFile, ask: Ask) -> Result<String, String> {
    let login = Login::of(text);
    let of_file = file.get(PASSWORD).filter(|_| flag == Flag::Absent);
    match (login.user_without_password(), of_file) {
        (Some(_), Some(password)) => Ok(login.with_password(password)),
        (Some(user), None) => {
            let password = answer(ask, &format!("Password of {user}: "), &format!("the user '{user}'"))?;
            Ok(login.with_password(&password))
        }
        (None, Some(password)) => match login.has_password(password) {
            Some(true) => Ok(text.to_owned()),
            Some(false) => Err(file.refusal(PASSWORD, "the connection string has another password")),
            None => Err(file.refusal(PASSWORD, "no user is named whose password it could be")),
        },
        (None, None) => Ok(text.to_owned()),
    }
}

fn answer(ask: Ask, question: &str, owner: &str) -> Result<String, String> {
    ask(question).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            format!("{owner} needs a password, and there is no terminal to ask at: put it into a file for --config")
        }
        _ => format!("the password of {owner}: {error}"),
    })
}

/// Whether the key in a PEM file is encrypted. A file that cannot be read is refused later, by name.
fn is_encrypted(path: &str) -> bool {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut text));
    read.is_ok() && String::from_utf8_lossy(&text).contains("BEGIN ENCRYPTED PRIVATE KEY")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Result<SecretFile, String> {
        let file = tempfile::NamedTempFile::new().expect("writable");
        std::fs::write(file.path(), text).expect("written");
        SecretFile::read(file.path(), KEYS_OF_SERVER)
    }

    fn completed(text: &str, of_file: &str) -> Result<String, String> {
        let file = file(of_file)?;
        complete(text, Flag::Absent, &file, |question| Ok(question.to_owned()))
    }

    #[test]
    fn the_file_is_read_as_yaml_and_every_scalar_is_a_text() {
        for (text, password) in [
            ("password: 0123", Some("0123")),
            ("password: 'a: b'\n", Some("a: b")),
            ("# nothing\n", None),
            ("", None),
            ("password:\n", None),
            ("password: true", Some("true")),
        ] {
            assert_eq!(file(text).expect(text).get(PASSWORD), password, "{text}");
        }
    }

    #[test]
    fn a_file_of_another_form_is_refused_and_not_shown() {
        for text in [
            "hunter2",
            "password:hunter2",
            "hunter2: 1",
            "- hunter2",
            "password: {a: hunter2}",
            "password: hunter2\npassword: hunter2",
        ] {
            let error = file(text).err().expect(text);
            assert!(
                error.contains("--config ") && error.contains("uri, password, sslPEMKeyPassword"),
                "{text}: {error}"
            );
            assert!(!error.contains("hunter2"), "{text}: {error}");
        }
        assert!(file(&"#".repeat(70_000)).err().expect("too long").contains("65536 bytes"));
    }

    #[test]
    fn the_file_or_the_user_gives_what_a_connection_string_lacks() {
        assert_eq!(completed("mongodb://a@h/", "password: p@"), Ok("mongodb://a:p%40@h/".to_owned()));
        assert_eq!(completed("mongodb://a@h/", ""), Ok("mongodb://a:Password%20of%20a%3A%20@h/".to_owned()));
        assert_eq!(completed("mongodb://a:p@h/", "password: p"), Ok("mongodb://a:p@h/".to_owned()));
        assert_eq!(completed("mongodb://h/", ""), Ok("mongodb://h/".to_owned()));
        let key = "mongodb://h/?tls=true&tlsCertificateKeyFile=me.pem";
        assert_eq!(completed(key, "sslPEMKeyPassword: p"), Ok(format!("{key}&tlsCertificateKeyFilePassword=p")));
        assert_eq!(completed(key, ""), Ok(key.to_owned()));
    }

    #[test]
    fn contradictions_are_refused_without_the_password() {
        for (text, of_file, words) in [
            ("mongodb://a:other@h/", "password: hunter2", "password: the connection string has another password"),
            ("mongodb://h/", "password: hunter2", "password: no user is named"),
            ("mongodb://h/?tls=true", "sslPEMKeyPassword: hunter2", "sslPEMKeyPassword: no certificate"),
        ] {
            let error = completed(text, of_file).expect_err(text);
            assert!(error.contains(words) && !error.contains("hunter2"), "{error}");
        }
        let file = file("password: hunter2").expect("read");
        let with_flag = complete("mongodb://a:other@h/", Flag::Given, &file, |_| unreachable!("not asked"));
        assert_eq!(with_flag.as_deref(), Ok("mongodb://a:other@h/"));
        let nowhere =
            complete("mongodb://a@h/", Flag::Absent, &SecretFile::default(), |_| Err(ErrorKind::NotFound.into()));
        assert!(nowhere.expect_err("refused").contains("the user 'a' needs a password, and there is no terminal"));
    }

    #[test]
    fn the_password_of_an_encrypted_key_is_asked_for() {
        let key = tempfile::NamedTempFile::new().expect("writable");
        std::fs::write(key.path(), "-----BEGIN ENCRYPTED PRIVATE KEY-----\n").expect("written");
        let text = format!("mongodb://h/?tls=true&tlsCertificateKeyFile={}", key.path().display());
        let completed = complete(&text, Flag::Absent, &SecretFile::default(), |_| Ok("p".to_owned()));
        assert_eq!(completed, Ok(format!("{text}&tlsCertificateKeyFilePassword=p")));
    }
}
