//! The state of a restore, recorded in case it is interrupted.
//!
//! One JSON text per line: first the dump, then the work done, in its order. A torn last line does not count.
//!
//! A position is recorded only once a write that was sent after its acknowledgement was journaled. A server that was
//! killed may have lost writes that it acknowledged without journaling, and a resumed restore must not skip those.

use super::earlier::Earlier;
use super::options::{Resume, ResumeFile};
use super::target::RestoredNamespace;
use crate::ToolError;
use bunko_host::Clock;
use foldhash::HashMap;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A position is recorded after this time, or after [`RECORD_BYTES`], whichever comes first.
const RECORD_INTERVAL: Duration = Duration::from_secs(1);
const RECORD_BYTES: u64 = 64 * 1024 * 1024;

/// A line of the state.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The first line: the dump and its destination, and whether a run whose state is lost may have sent documents
    /// before.
    Restore {
        dump: String,
        #[serde(default, skip_serializing_if = "Before::is_nothing")]
        before: Before,
    },
    /// The collection is created, with its options.
    Prepared { namespace: String },
    /// This many bytes of the namespace's documents are written, counted from the first in the dump.
    Done { namespace: String, bytes: u64 },
    /// The namespace's indexes are built.
    Indexed { namespace: String },
}

impl Line {
    fn first(dump: &str, before: Before) -> Self {
        Self::Restore { dump: dump.to_owned(), before }
    }

    fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and numbers have a JSON form")
    }
}

/// Whether there were earlier runs without a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Before {
    /// There were none.
    #[default]
    Nothing,
    /// There may have been one, and the server may have any of the documents.
    Unknown,
}

impl Before {
    // serde passes a reference.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_nothing(&self) -> bool {
        *self == Self::Nothing
    }
}

/// How a run began with respect to its state file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// The user did not ask to resume.
    Fresh,
    /// The run resumes an earlier one.
    Continued,
    /// The user asked to resume, but there was no state.
    Anew,
}

/// The state file of this run.
pub(super) struct ResumeLog {
    path: PathBuf,
    begun: Begun,
    known: Known,
    state: Mutex<ProgressFile>,
}

/// State of earlier runs.
#[derive(Default)]
struct Known {
    before: Before,
    /// Progress of earlier runs, by namespace.
    earlier: HashMap<String, Earlier>,
}

struct ProgressFile {
    file: File,
    clock: Clock,
    recorded: Instant,
    bytes: u64,
    /// The last recorded positions, by namespace.
    positions: HashMap<String, u64>,
}

/// Positions to record once the next batch is journaled.
pub(super) struct Checkpoint(Vec<(String, u64)>);

impl ProgressFile {
    /// Positions beyond the last recorded ones.
    fn checkpoint(&self, targets: &[Arc<RestoredNamespace>]) -> Checkpoint {
        let further = targets.iter().filter_map(|target| {
            let position = target.ledger().contiguous();
            let known = self.positions.get(&target.source).copied().unwrap_or(target.earlier.done_bytes);
            (position > known).then(|| (target.source.clone(), position))
        });
        Checkpoint(further.collect())
    }
}

impl ResumeLog {
    /// Reads the state of an earlier run, if it is to be resumed, and opens the file for more lines.
    /// # Errors
    /// `Failed` if the state belongs to another dump or target; `File` if it cannot be read or written.
    pub(super) fn open(options: &ResumeFile, dump: &str, clock: &Clock) -> Result<Self, ToolError> {
        let failed = |cause| ToolError::File { path: options.path.clone(), cause };
        let earlier = match options.mode {
            Resume::Fresh => None,
            Resume::Continue => read(&options.path, dump)?,
        };
        let mut open = OpenOptions::new();
        match &earlier {
            Some(_) => open.append(true),
            None => open.write(true).create(true).truncate(true),
        };
        let file = open.open(&options.path).map_err(failed)?;
        let (begun, known) = match (options.mode, earlier) {
            (_, Some(known)) => (Begun::Continued, known),
            (Resume::Fresh, None) => (Begun::Fresh, Known::default()),
            (Resume::Continue, None) => (Begun::Anew, Known { before: Before::Unknown, ..Known::default() }),
        };
        let before = known.before;
        let state =
            ProgressFile { file, clock: clock.clone(), recorded: clock.now(), bytes: 0, positions: HashMap::default() };
        let log = Self { path: options.path.clone(), begun, known, state: Mutex::new(state) };
        if begun == Begun::Continued {
            // Ends a torn last line.
            log.state.lock().file.write_all(b"\n").map_err(failed)?;
        } else {
            log.append(&[Line::first(dump, before)])?;
        }
        Ok(log)
    }

    /// How this run began: whether it resumes an earlier one.
    pub(super) fn begun(&self) -> Begun {
        self.begun
    }

    /// Whether there were runs without a state.
    pub(super) fn before(&self) -> Before {
        self.known.before
    }

    /// The state file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Progress of earlier runs with `namespace`, by its name in the dump.
    pub(super) fn earlier(&self, namespace: &str) -> Earlier {
        self.known.earlier.get(namespace).copied().unwrap_or_default()
    }

    pub(super) fn prepared(&self, namespace: &str) -> Result<(), ToolError> {
        self.append(&[Line::Prepared { namespace: namespace.to_owned() }])
    }

    pub(super) fn indexed(&self, namespace: &str) -> Result<(), ToolError> {
        self.append(&[Line::Indexed { namespace: namespace.to_owned() }])
    }

    /// Counts bytes that are about to be sent. If it is time to record, returns the positions to record once those
    /// bytes are acknowledged and journaled.
    pub(super) fn checkpoint(&self, bytes: usize, targets: &[Arc<RestoredNamespace>]) -> Option<Checkpoint> {
        let mut state = self.state.lock();
        state.bytes += bytes as u64;
        if state.bytes < RECORD_BYTES && state.clock.since(state.recorded) < RECORD_INTERVAL {
            return None;
        }
        state.bytes = 0;
        state.recorded = state.clock.now();
        let checkpoint = state.checkpoint(targets);
        (!checkpoint.0.is_empty()).then_some(checkpoint)
    }

    /// The positions to record once all writes until now are journaled.
    pub(super) fn checkpoint_now(&self, targets: &[Arc<RestoredNamespace>]) -> Checkpoint {
        self.state.lock().checkpoint(targets)
    }

    pub(super) fn record(&self, checkpoint: Checkpoint) -> Result<(), ToolError> {
        let positions = checkpoint.0;
        let mut state = self.state.lock();
        for (namespace, bytes) in &positions {
            let known = state.positions.entry(namespace.clone()).or_default();
            *known = (*known).max(*bytes);
        }
        drop(state);
        let lines: Vec<_> = positions.into_iter().map(|(namespace, bytes)| Line::Done { namespace, bytes }).collect();
        self.append(&lines)
    }

    /// Removes the file, because the restore is done.
    pub(super) fn remove(self) -> Result<(), ToolError> {
        std::fs::remove_file(&self.path).map_err(|cause| ToolError::File { path: self.path, cause })
    }

    fn append(&self, lines: &[Line]) -> Result<(), ToolError> {
        let mut text = Vec::new();
        for line in lines {
            text.extend(line.to_json());
            text.push(b'\n');
        }
        let written = self.state.lock().file.write_all(&text);
        written.map_err(|cause| ToolError::File { path: self.path.clone(), cause })
    }
}

/// Reads the state; `None` if there is none, or it lacks its whole first line.
fn read(path: &Path, dump: &str) -> Result<Option<Known>, ToolError> {
    let mut text = String::new();
    match File::open(path).and_then(|mut file| file.read_to_string(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(ToolError::File { path: path.to_owned(), cause }),
    }
    if is_torn_first_line(&text, dump) {
        return Ok(None);
    }
    let mut lines = text.lines().filter(|line| !line.is_empty()).map(serde_json::from_str::<Line>);
    let before = match lines.next() {
        Some(Ok(Line::Restore { dump: known, before })) if known == dump => before,
        None => return Ok(None),
        Some(Ok(Line::Restore { .. })) => {
            let path = path.display();
            return Err(ToolError::Failed(format!(
                "{path} is the state of a restore of another dump, to another server, or with other namespaces: \
                 remove it to start over"
            )));
        }
        Some(_) => {
            return Err(ToolError::Failed(format!("{} is not the state of a restore", path.display())));
        }
    };
    let mut earlier = HashMap::<String, Earlier>::default();
    // Torn lines do not count.
    for line in lines.flatten() {
        match line {
            Line::Restore { .. } => {}
            Line::Prepared { namespace } => earlier.entry(namespace).or_default().is_prepared = true,
            Line::Indexed { namespace } => earlier.entry(namespace).or_default().is_indexed = true,
            Line::Done { namespace, bytes } => {
                let earlier = earlier.entry(namespace).or_default();
                earlier.done_bytes = earlier.done_bytes.max(bytes);
            }
        }
    }
    Ok(Some(Known { before, earlier }))
}

/// Whether the text is only a beginning of the first line for this dump: nothing has been sent then. Other files do not
/// count as such, because the next run overwrites the file.
fn is_torn_first_line(text: &str, dump: &str) -> bool {
    let first_lines = [Before::Nothing, Before::Unknown].map(|before| Line::first(dump, before).to_json());
    first_lines.iter().any(|line| line.len() > text.len() && line.starts_with(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn options(directory: &tempfile::TempDir, mode: Resume) -> ResumeFile {
        ResumeFile { path: directory.path().join("state"), mode }
    }

    #[test]
    fn recorded_progress_is_found_again_with_any_torn_end() {
        let directory = tempfile::tempdir().expect("directory");
        let log = ResumeLog::open(&options(&directory, Resume::Continue), "dump 1", &Clock::standing(0)).expect("new");
        log.prepared("a.b").expect("written");
        log.record(Checkpoint(vec![("a.b".to_owned(), 70), ("a.c".to_owned(), 5)])).expect("written");
        log.indexed("a.b").expect("written");
        drop(log);
        let whole = fs::read(directory.path().join("state")).expect("there");
        let done = Earlier { is_prepared: true, done_bytes: 70, is_indexed: true };
        for length in 0..=whole.len() {
            fs::write(directory.path().join("state"), &whole[..length]).expect("written");
            let log = ResumeLog::open(&options(&directory, Resume::Continue), "dump 1", &Clock::standing(0))
                .expect("a state, or none");
            let is_torn = length < whole.iter().position(|&byte| byte == b'\n').expect("lines");
            assert_eq!(log.begun() == Begun::Anew, is_torn, "{length}");
            let earlier = log.earlier("a.b");
            assert!(earlier == done || length < whole.len() - 1, "{length}: {earlier:?}");
            log.record(Checkpoint(vec![("a.d".to_owned(), 9)])).expect("written");
            drop(log);
            let log =
                ResumeLog::open(&options(&directory, Resume::Continue), "dump 1", &Clock::standing(0)).expect("there");
            assert_eq!(log.earlier("a.d").done_bytes, 9);
        }
    }

    #[test]
    fn facts_lost_with_a_state_stay_unknown() {
        let directory = tempfile::tempdir().expect("directory");
        let open = |mode| ResumeLog::open(&options(&directory, mode), "dump 1", &Clock::standing(0)).expect("a state");
        let told = |log: &ResumeLog| (log.begun(), log.before());
        assert_eq!(told(&open(Resume::Fresh)), (Begun::Fresh, Before::Nothing));
        assert_eq!(told(&open(Resume::Continue)), (Begun::Continued, Before::Nothing));
        open(Resume::Continue).remove().expect("removed");
        assert_eq!(told(&open(Resume::Continue)), (Begun::Anew, Before::Unknown));
        assert_eq!(told(&open(Resume::Continue)), (Begun::Continued, Before::Unknown));
    }

    #[test]
    fn another_dump_is_refused_and_a_fresh_start_forgets() {
        let directory = tempfile::tempdir().expect("directory");
        let log = ResumeLog::open(&options(&directory, Resume::Fresh), "dump 1", &Clock::standing(0)).expect("new");
        log.prepared("a.b").expect("written");
        let refused = ResumeLog::open(&options(&directory, Resume::Continue), "dump 2", &Clock::standing(0));
        assert!(refused.is_err_and(|error| error.to_string().contains("another dump")));
        for foreign in ["a note", "{", r#"{"restore":{"dump":"dump 7"#] {
            let another = tempfile::tempdir().expect("directory");
            fs::write(another.path().join("state"), foreign).expect("written");
            let refused = ResumeLog::open(&options(&another, Resume::Continue), "dump 1", &Clock::standing(0)).is_err();
            assert_eq!(refused, foreign != "{", "{foreign}");
        }
        let log =
            ResumeLog::open(&options(&directory, Resume::Fresh), "dump 2", &Clock::standing(0)).expect("overwritten");
        assert_eq!(log.earlier("a.b"), Earlier::default());
        log.remove().expect("removed");
        assert!(!directory.path().join("state").exists());
    }
}
