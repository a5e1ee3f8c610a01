//! The file beside an unfinished dump that records which data is safely written.
//!
//! One JSON object per line: first the plan, then the changes since the previous line. A line is appended after its
//! data was synced, so a dump that is killed at any moment is resumed after its last whole line.

use super::extended_json_text as text;
use super::plan::Plan;
use crate::ToolError;
use bunko_archive::index::Unit;
use bunko_bson::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// How far one range has been read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RangeState {
    /// The `_id` of the last document; only if the range is read by `_id`.
    #[serde(with = "text::optional_value")]
    pub last: Option<Value>,
    pub is_finished: bool,
}

/// How much of one namespace has been written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Account {
    /// The namespace's position in the plan.
    pub collection: usize,
    /// Checksum over its documents in the order written; 0 in directories, which have no checksums.
    pub crc: u64,
    pub documents: u64,
    pub bytes: u64,
    pub ranges: Vec<RangeState>,
    /// Whether the namespace is complete, including its end mark in an archive.
    pub is_finished: bool,
}

impl Account {
    /// Makes the account of a namespace of which nothing is written yet.
    pub fn new(plan: &Plan, collection: usize) -> Self {
        let ranges = vec![RangeState::default(); plan.collections[collection].ranges.len()];
        Self { collection, ranges, ..Self::default() }
    }
}

/// When a line of the state file must be on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// Before the call returns.
    Immediate,
    /// With the next immediate line, or when the system writes it back.
    Eventual,
}

/// Changes in one file since the previous line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Checkpoint {
    /// The file: 0 for an archive, in a directory the collection's position in the plan.
    pub stream: usize,
    /// The namespaces that have changed, as they are now.
    pub accounts: Vec<Account>,
    /// Compressed length in the file, length before compression, and tag of each new unit.
    pub units: Vec<(u32, u32, u32)>,
}

/// All lines about one file, combined.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamState {
    pub accounts: BTreeMap<usize, Account>,
    pub units: Vec<Unit>,
}

impl StreamState {
    /// Length of the file's valid part, in bytes.
    pub fn out_bytes(&self) -> u64 {
        self.units.last().map_or(0, |unit| unit.out_offset + u64::from(unit.out_bytes))
    }

    fn take(&mut self, checkpoint: Checkpoint) {
        for (out_bytes, raw_bytes, tag) in checkpoint.units {
            self.units.push(Unit { out_offset: self.out_bytes(), out_bytes, raw_bytes, tag });
        }
        self.accounts.extend(checkpoint.accounts.into_iter().map(|account| (account.collection, account)));
    }
}

/// A dump that begins or is resumed.
pub(super) struct Begun {
    pub plan: Plan,
    /// `None` if the output cannot be resumed.
    pub state: Option<StateFile>,
    /// Written data, by file.
    pub streams: BTreeMap<usize, StreamState>,
}

/// The state file, open for more lines.
pub(super) struct StateFile {
    path: PathBuf,
    file: File,
    /// Length of the whole lines, in bytes.
    valid_bytes: u64,
}

/// Result of looking for an earlier run's state.
pub(super) enum EarlierRun {
    /// There is no state, or it lacks its first whole line.
    Nothing,
    /// A dump that can be resumed.
    Dump(Box<Begun>),
}

impl StateFile {
    /// Creates a state file whose first line is the plan.
    /// # Errors
    /// `File`; no file is left behind then.
    pub fn create(path: PathBuf, plan: &Plan) -> Result<Self, ToolError> {
        let file = File::create(&path).map_err(|cause| ToolError::File { path: path.clone(), cause })?;
        let mut state = Self { path, file, valid_bytes: 0 };
        match state.begin(plan) {
            Ok(()) => Ok(state),
            Err(error) => {
                // The first failure is the one to report.
                let _ = state.remove();
                Err(error)
            }
        }
    }

    fn begin(&mut self, plan: &Plan) -> Result<(), ToolError> {
        self.append(plan, Durability::Immediate)?;
        // A crash can lose a new file's name unless its directory is synced too.
        let directory = self.path.parent().filter(|directory| !directory.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))
            .and_then(|directory| directory.sync_all())
            .map_err(|cause| self.failed(cause))
    }

    /// Reads the state of an earlier run, and cuts off a last line that is not whole.
    /// # Errors
    /// `File`; `Failed` if the state belongs to a dump with another `fingerprint`, or does not begin with a plan.
    pub fn resume(path: PathBuf, fingerprint: &str) -> Result<EarlierRun, ToolError> {
        let failed = |cause| ToolError::File { path: path.clone(), cause };
        let text = match std::fs::read(&path) {
            // A kill or a full disk came before the plan was written.
            Ok(text) if !text.contains(&b'\n') => return Ok(EarlierRun::Nothing),
            Ok(text) => text,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(EarlierRun::Nothing),
            Err(cause) => return Err(failed(cause)),
        };
        let (plan, streams, valid_bytes) = parse(&text).ok_or_else(|| {
            ToolError::Failed(format!("--resume: {} does not begin with the plan of a dump", path.display()))
        })?;
        if plan.fingerprint != fingerprint {
            let message = "--resume: the unfinished dump was begun with other flags: start over, or give the same ones";
            return Err(ToolError::Failed(message.into()));
        }
        let file = OpenOptions::new().append(true).open(&path).map_err(failed)?;
        file.set_len(valid_bytes).map_err(failed)?;
        Ok(EarlierRun::Dump(Box::new(Begun { plan, state: Some(Self { path, file, valid_bytes }), streams })))
    }

    /// Appends a line.
    /// # Errors
    /// `File`; the line is removed again then.
    pub fn append(&mut self, line: &impl Serialize, durability: Durability) -> Result<(), ToolError> {
        let mut text = serde_json::to_string(line).map_err(|error| self.failed(error.into()))?;
        text.push('\n');
        let written = self.file.write_all(text.as_bytes()).and_then(|()| match durability {
            Durability::Immediate => self.file.sync_data(),
            Durability::Eventual => Ok(()),
        });
        match written {
            Ok(()) => self.valid_bytes += text.len() as u64,
            Err(_) => self.cut(),
        }
        written.map_err(|cause| self.failed(cause))
    }

    /// Removes everything after the last whole line. A torn line would swallow the next one, and a line that was
    /// written but not synced would be recorded twice. Truncating needs no space.
    fn cut(&mut self) {
        // The result is ignored: a file that cannot be truncated cannot be written to either.
        let _ = self.file.set_len(self.valid_bytes).and_then(|()| self.file.seek(SeekFrom::End(0)));
    }

    /// Removes the file, because the dump is finished.
    /// # Errors
    /// `File`.
    pub fn remove(self) -> Result<(), ToolError> {
        std::fs::remove_file(&self.path).map_err(|cause| self.failed(cause))
    }

    fn failed(&self, cause: io::Error) -> ToolError {
        ToolError::File { path: self.path.clone(), cause }
    }
}

/// Returns the plan, the written data of each file, and the length of the whole lines in bytes.
fn parse(text: &[u8]) -> Option<(Plan, BTreeMap<usize, StreamState>, u64)> {
    let mut lines = text.split_inclusive(|&byte| byte == b'\n');
    let first = lines.next().filter(|line| line.ends_with(b"\n"))?;
    let plan = serde_json::from_slice(first).ok()?;
    let mut valid_bytes = first.len() as u64;
    let mut streams: BTreeMap<usize, StreamState> = BTreeMap::new();
    for line in lines {
        let Some(checkpoint) = Some(line).filter(|line| line.ends_with(b"\n")).and_then(read_checkpoint) else { break };
        streams.entry(checkpoint.stream).or_default().take(checkpoint);
        valid_bytes += line.len() as u64;
    }
    Some((plan, streams, valid_bytes))
}

fn read_checkpoint(line: &[u8]) -> Option<Checkpoint> {
    serde_json::from_slice(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            fingerprint: "f".into(),
            server_version: "8.0".into(),
            oplog_start: Some((7, 1)),
            collections: vec![super::super::oplog::planned()],
        }
    }

    fn checkpoint(last: i32) -> Checkpoint {
        let range = RangeState { last: Some(Value::Int32(last)), is_finished: false };
        let account =
            Account { collection: 2, crc: u64::MAX, documents: 5, bytes: 50, ranges: vec![range], is_finished: false };
        Checkpoint { stream: 0, accounts: vec![account], units: vec![(10, 20, 1), (30, 40, 1)] }
    }

    #[test]
    fn whole_lines_are_believed_and_a_torn_one_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x.resume");
        let mut state = StateFile::create(path.clone(), &plan()).expect("created");
        for last in [1, 2, 3] {
            state.append(&checkpoint(last), Durability::Immediate).expect("appended");
        }
        let whole = std::fs::read(&path).expect("read");
        let first_line = whole.iter().position(|&byte| byte == b'\n').expect("a line") + 1;
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).expect("written");
            let resumed = StateFile::resume(path.clone(), "f").expect("a state");
            assert_eq!(matches!(resumed, EarlierRun::Dump(_)), length >= first_line, "{length}");
            if let EarlierRun::Dump(begun) = resumed {
                let Begun { plan, streams, .. } = *begun;
                let lines = whole[first_line..length].split(|&byte| byte == b'\n').count() - 1;
                assert_eq!(plan.oplog_start(), Some(bunko_bson::Timestamp { seconds: 7, increment: 1 }));
                let out_bytes = streams.get(&0).map_or(0, StreamState::out_bytes);
                assert_eq!(out_bytes, 40 * lines as u64);
                let last = streams.get(&0).and_then(|stream| stream.accounts[&2].ranges[0].last.clone());
                assert_eq!(
                    format!("{last:?}"),
                    if lines == 0 { "None".into() } else { format!("Some(Int32({lines}))") }
                );
                let kept = std::fs::metadata(&path).expect("there").len();
                assert!(kept <= length as u64 && whole[kept as usize - 1] == b'\n');
            }
        }
    }

    #[test]
    fn a_line_that_could_not_be_written_leaves_nothing_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x.resume");
        let mut state = StateFile::create(path.clone(), &plan()).expect("created");
        // First the rest that a full disk leaves of a line, then a line that was written before its sync failed.
        for (torn, last) in
            [(&b"{\"stream\":0,\"acc"[..], 1), (b"{\"stream\":0,\"accounts\":[],\"units\":[[10,20,1]]}\n", 2)]
        {
            state.file.write_all(torn).expect("written");
            state.cut();
            state.append(&checkpoint(last), Durability::Immediate).expect("appended");
        }
        let Ok(EarlierRun::Dump(begun)) = StateFile::resume(path, "f") else { panic!("no state") };
        assert_eq!((begun.streams[&0].units.len(), begun.streams[&0].out_bytes()), (4, 80));
    }

    #[test]
    fn another_dump_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x.resume");
        let message = |result: Result<_, ToolError>| result.map(|_: EarlierRun| ()).expect_err("refused").to_string();
        assert!(matches!(StateFile::resume(path.clone(), "f"), Ok(EarlierRun::Nothing)));
        StateFile::create(path.clone(), &plan()).expect("created");
        assert!(message(StateFile::resume(path.clone(), "g")).contains("other flags"));
        std::fs::write(&path, "{}\n").expect("written");
        assert!(message(StateFile::resume(path, "f")).contains("plan of a dump"));
    }
}
