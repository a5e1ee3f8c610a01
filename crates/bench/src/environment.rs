//! What the server and the client's machine say of themselves.

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_client::Connection;
use serde::Serialize;

/// A server in its own words; `None` where it did not say.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ServerDescription {
    /// `buildInfo.version`
    pub version: Option<String>,
    /// `serverStatus.storageEngine.name`
    pub storage_engine: Option<String>,
    /// `getCmdLineOpts.parsed.storage.journal.enabled`
    pub journal_enabled: Option<bool>,
    /// `getCmdLineOpts.parsed.storage.journal.commitIntervalMs`
    pub journal_commit_interval_ms: Option<i64>,
    /// `serverStatus.pid`
    pub pid: Option<u32>,
}

impl ServerDescription {
    /// Asks; what the server refuses or does not know stays `None`.
    pub fn read(connection: &mut Connection) -> Self {
        let mut ask = |name: &str| {
            let command = DocumentBuf::new().with(name, 1_i32);
            connection.run_command("admin", command.as_ref()).unwrap_or_default()
        };
        let (build, status, command_line) = (ask("buildInfo"), ask("serverStatus"), ask("getCmdLineOpts"));
        let journal = |name| at(command_line.as_ref(), &["parsed", "storage", "journal", name]);
        Self {
            version: text(at(build.as_ref(), &["version"])),
            storage_engine: text(at(status.as_ref(), &["storageEngine", "name"])),
            journal_enabled: match journal("enabled") {
                Some(ValueRef::Boolean(enabled)) => Some(enabled),
                _ => None,
            },
            journal_commit_interval_ms: integer(journal("commitIntervalMs")),
            pid: integer(at(status.as_ref(), &["pid"])).and_then(|pid| u32::try_from(pid).ok()),
        }
    }

    /// What an acknowledgement promised in this run.
    pub fn durability(&self, write_concern: &bunko_client::WriteConcern) -> String {
        let engine = self.storage_engine.as_deref().unwrap_or("not stated");
        let journal = match (self.journal_enabled, self.journal_commit_interval_ms) {
            (Some(false), _) => "off".to_owned(),
            (_, Some(interval)) => format!("synced every {interval} ms"),
            (Some(true), None) => "on, interval not stated".to_owned(),
            (None, None) => "not stated (the server's default)".to_owned(),
        };
        let j = if write_concern.journal.is_none() { ", j not asked for" } else { "" };
        format!("{write_concern}{j}; storage engine {engine}; journal {journal}")
    }
}

fn at<'d>(document: DocumentRef<'d>, path: &[&str]) -> Option<ValueRef<'d>> {
    let (last, parents) = path.split_last()?;
    let parent = parents.iter().try_fold(document, |document, name| document.get(name)?.as_document())?;
    parent.get(last)
}

fn text(value: Option<ValueRef<'_>>) -> Option<String> {
    value.and_then(ValueRef::as_str).map(str::to_owned)
}

/// A whole number of any number type.
pub(crate) fn integer(value: Option<ValueRef<'_>>) -> Option<i64> {
    match value? {
        ValueRef::Int32(number) => Some(number.into()),
        ValueRef::Int64(number) => Some(number),
        ValueRef::Double(number) => Some(number as i64),
        _ => None,
    }
}

/// The machine that the generator runs on.
#[derive(Clone, Debug, Serialize)]
pub struct ClientMachine {
    /// The processor's name.
    pub processor: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
}

impl ClientMachine {
    /// Reads `/proc`.
    pub fn read() -> Self {
        let file = |path| std::fs::read_to_string(path).unwrap_or_default();
        let processor = file("/proc/cpuinfo")
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name.to_owned()));
        Self {
            processor: processor.unwrap_or_else(|| "unknown".into()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: file("/proc/sys/kernel/osrelease").trim_end().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_client::WriteConcern;

    #[test]
    fn durability_is_stated_in_one_line() {
        let concern = WriteConcern::default();
        let unknown = ServerDescription::default().durability(&concern);
        let default = "not stated (the server's default)";
        assert_eq!(unknown, format!("w: 1, j not asked for; storage engine not stated; journal {default}"));
        let known = ServerDescription {
            storage_engine: Some("lsm".into()),
            journal_commit_interval_ms: Some(100),
            ..ServerDescription::default()
        };
        let journaled = "j".parse().expect("valid");
        assert_eq!(known.durability(&journaled), "w: 1, j: true; storage engine lsm; journal synced every 100 ms");
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
