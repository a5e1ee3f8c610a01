//! Properties that a server reports.

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, extended_json, number};
use bunko_client::Connection;
use std::path::PathBuf;

/// Properties that a server reports; `None` if it does not report one.
#[derive(Clone, Debug, Default)]
pub struct ServerDescription {
    /// `buildInfo.version`
    pub version: Option<String>,
    /// `serverStatus.storageEngine.name`
    pub storage_engine: Option<String>,
    /// `getCmdLineOpts.parsed.storage.journal.enabled`
    pub journal_enabled: Option<bool>,
    /// `getCmdLineOpts.parsed.storage.journal.commitIntervalMs`, else the parameter `journalCommitInterval`
    pub journal_commit_interval_ms: Option<i64>,
    /// `serverStatus.pid`
    pub pid: Option<u32>,
    /// `getCmdLineOpts.parsed.storage.dbPath`
    pub data_directory: Option<PathBuf>,
    /// Other settings in `getCmdLineOpts.parsed.storage`: path with dots, value.
    pub settings: Vec<(String, String)>,
}

/// Settings in `parsed.storage` that have a field of their own.
const SAID_ELSEWHERE: [&str; 4] = ["dbPath", "engine", "journal.enabled", "journal.commitIntervalMs"];

impl ServerDescription {
    /// Asks the server. Values that it refuses or does not know stay `None`.
    pub fn read(connection: &mut Connection) -> Self {
        let mut ask = |command: &DocumentBuf| connection.run_command("admin", command.as_ref()).unwrap_or_default();
        let mut about = |name: &str| ask(&DocumentBuf::new().with(name, 1_i32));
        let (build, status, command_line) = (about("buildInfo"), about("serverStatus"), about("getCmdLineOpts"));
        let interval = ask(&DocumentBuf::new().with("getParameter", 1_i32).with("journalCommitInterval", 1_i32));
        let interval = interval.as_ref().get("journalCommitInterval");
        let journal = |name| at(command_line.as_ref(), &["parsed", "storage", "journal", name]);
        Self {
            version: text(at(build.as_ref(), &["version"])),
            storage_engine: text(at(status.as_ref(), &["storageEngine", "name"])),
            journal_enabled: match journal("enabled") {
                Some(ValueRef::Boolean(enabled)) => Some(enabled),
                _ => None,
            },
            journal_commit_interval_ms: integer(journal("commitIntervalMs")).or(integer(interval)),
            pid: integer(at(status.as_ref(), &["pid"])).and_then(|pid| u32::try_from(pid).ok()),
            settings: {
                let mut settings = Vec::new();
                let storage = at(command_line.as_ref(), &["parsed", "storage"]).and_then(ValueRef::as_document);
                if let Some(storage) = storage {
                    flatten("", storage, &mut settings);
                }
                settings
            },
            data_directory: text(at(command_line.as_ref(), &["parsed", "storage", "dbPath"])).map(PathBuf::from),
        }
    }
}

/// Appends every value below a document with its path.
fn flatten(path: &str, document: DocumentRef<'_>, out: &mut Vec<(String, String)>) {
    for element in document {
        let path = format!("{path}{}", element.name);
        match element.value {
            ValueRef::Document(inner) => flatten(&format!("{path}."), inner, out),
            _ if SAID_ELSEWHERE.contains(&path.as_str()) => {}
            ValueRef::String(text) => out.push((path, text.to_owned())),
            value => out.push((path, extended_json::to_relaxed(value))),
        }
    }
}

/// The value at the end of a path of documents; `None` if a part of the path is missing or is no document.
pub(crate) fn at<'d>(document: DocumentRef<'d>, path: &[&str]) -> Option<ValueRef<'d>> {
    let (last, parents) = path.split_last()?;
    let parent = parents.iter().try_fold(document, |document, name| document.get(name)?.as_document())?;
    parent.get(last)
}

fn text(value: Option<ValueRef<'_>>) -> Option<String> {
    value.and_then(ValueRef::as_str).map(str::to_owned)
}

/// A whole number of any number type.
pub(crate) fn integer(value: Option<ValueRef<'_>>) -> Option<i64> {
    number::truncate_to_i64(value?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_flat_and_say_nothing_twice() {
        let journal = DocumentBuf::new().with("enabled", true);
        let config = DocumentBuf::new().with("cacheSizeGB", 1.5);
        let wired_tiger = DocumentBuf::new().with("engineConfig", &config);
        let storage = DocumentBuf::new().with("dbPath", "/data").with("engine", "wiredTiger");
        let storage = storage.with("journal", &journal).with("wiredTiger", &wired_tiger).with("directoryPerDB", true);
        let mut settings = Vec::new();
        flatten("", storage.as_ref(), &mut settings);
        let expected = [("wiredTiger.engineConfig.cacheSizeGB", "1.5"), ("directoryPerDB", "true")];
        assert_eq!(settings, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn paths_end_where_a_document_ends() {
        let inner = DocumentBuf::new().with("b", 7_i64);
        let document = DocumentBuf::new().with("a", &inner).with("c", 1.0);
        assert_eq!(integer(at(document.as_ref(), &["a", "b"])), Some(7));
        assert_eq!(integer(at(document.as_ref(), &["c", "b"])), None);
        assert_eq!(integer(at(document.as_ref(), &["c"])), Some(1));
    }
}
