//! The record of a copy: a document in the target that says how far the copy is.
//!
//! Beside it lies one document for each collection that is copied, as long as not all are, and one for each collection
//! that is being copied anew.
//!
//! Each run of a copy takes the next number in the record, and only the newest run may write the record. So of two
//! copies to one target, the older one ends.

use super::pair::End;
use super::scope::OWN_DATABASE;
use super::{CopyOptions, Existing, Mode};
use crate::ToolError;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Timestamp, ValueRef, number};

const COLLECTION: &str = "progress";
/// `_id` of the record.
const ID: &str = "copy";
/// Beginning of the `_id` of the note that a collection is copied; its namespace follows.
const COPIED: &str = "copied ";
/// Beginning of the `_id` of the note that a collection is being copied anew; its namespace follows.
const UNFINISHED: &str = "anew ";

/// The phase that a copy has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not all collections are copied.
    Copying,
    /// All are copied, and changes are applied.
    Following,
    /// The copy has ended.
    Finished,
}

impl Phase {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Copying => "copying",
            Self::Following => "following",
            Self::Finished => "finished",
        }
    }

    fn of(name: &str) -> Option<Self> {
        [Self::Copying, Self::Following, Self::Finished].into_iter().find(|phase| phase.name() == name)
    }
}

/// The record.
#[derive(Clone, Debug)]
pub(super) struct Record {
    source: String,
    selection: String,
    /// Time of the source before the copy began; `None` for a source without one.
    pub(super) noted: Option<Timestamp>,
    pub(super) phase: Phase,
    /// Resume token of the last applied event; `None` before the first.
    pub(super) token: Option<DocumentBuf>,
    /// Whether the copy has stopped the target's expiry of documents.
    pub(super) has_stopped_expiry: bool,
    /// Number of the newest run, which alone may write the record.
    pub(super) run: i64,
}

impl Record {
    pub(super) fn new(source: String, selection: String) -> Self {
        Self { source, selection, noted: None, phase: Phase::Copying, token: None, has_stopped_expiry: false, run: 0 }
    }

    /// The record of an earlier copy to that target.
    /// # Errors
    /// The server's, the connection's, and `Failed` for a document that is not a record.
    pub(super) fn read(target: &mut End) -> Result<Option<Self>, ToolError> {
        let find = DocumentBuf::new()
            .with("find", COLLECTION)
            .with("filter", &DocumentBuf::new().with("_id", ID))
            .with("limit", 1_i32);
        let found = target.list(OWN_DATABASE, &find)?;
        // A run that was killed at its beginning leaves a number without a record.
        let record = found.first().filter(|record| DocumentBuf::as_ref(record).get("phase").is_some());
        record.map(|record| Self::parse(record.as_ref())).transpose()
    }

    fn parse(document: DocumentRef<'_>) -> Result<Self, ToolError> {
        let text = |name| document.get(name).and_then(ValueRef::as_str);
        let (Some(source), Some(selection), Some(phase)) =
            (text("source"), text("selection"), text("phase").and_then(Phase::of))
        else {
            return Err(ToolError::Failed(format!(
                "{OWN_DATABASE}.{COLLECTION} of the target is not a record of a copy: {document:?}"
            )));
        };
        Ok(Self {
            source: source.to_owned(),
            selection: selection.to_owned(),
            noted: match document.get("noted") {
                Some(ValueRef::Timestamp(at)) => Some(at),
                _ => None,
            },
            phase,
            token: document.get("token").and_then(ValueRef::as_document).map(DocumentRef::to_owned),
            has_stopped_expiry: matches!(document.get("hasStoppedExpiry"), Some(ValueRef::Boolean(true))),
            run: document.get("run").and_then(number::as_i64_exact).unwrap_or_default(),
        })
    }

    /// Checks that this command may go on with the copy.
    /// # Errors
    /// `Usage` names what is different.
    pub(super) fn check(&self, source: &str, selection: &str, options: &CopyOptions) -> Result<(), ToolError> {
        let refuse = |what: String| {
            Err(ToolError::Usage(format!("the target has the record of another copy ({what}): --anew begins anew")))
        };
        match self.phase {
            Phase::Finished if options.existing == Existing::Drop => Ok(()),
            Phase::Finished => refuse(format!("from {}, which has ended", self.source)),
            _ if self.source != source => refuse(format!("from {}, not from {source}", self.source)),
            _ if self.selection != selection => refuse("of other databases or collections".to_owned()),
            Phase::Following if options.mode == Mode::Once => {
                refuse("which follows its source: --follow or --finish goes on with it".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Takes the record over from earlier runs: they can no longer write it.
    /// # Errors
    /// The server's, or the connection's.
    pub(super) fn take_over(&mut self, target: &mut End) -> Result<(), ToolError> {
        let command = DocumentBuf::new()
            .with("findAndModify", COLLECTION)
            .with("query", &DocumentBuf::new().with("_id", ID))
            .with("update", &DocumentBuf::new().with("$inc", &DocumentBuf::new().with("run", 1_i64)))
            .with("new", true)
            .with("upsert", true)
            .with("writeConcern", &DocumentBuf::new().with("w", "majority"));
        let reply = target.run(OWN_DATABASE, &command)?;
        let record = reply.as_ref().get("value").and_then(ValueRef::as_document);
        let run = record.and_then(|record| record.get("run")).and_then(number::as_i64_exact);
        self.run = run.ok_or_else(|| ToolError::Failed("the target gave the copy no number".to_owned()))?;
        Ok(())
    }

    /// Writes the record, and deletes the notes of the earlier record that this run has taken over.
    /// # Errors
    /// As [`Self::write`].
    pub(super) fn write_anew(&self, target: &mut End) -> Result<(), ToolError> {
        forget(target, &DocumentBuf::new().with("_id", &DocumentBuf::new().with("$ne", ID)))?;
        self.write(target)
    }

    /// Writes the record with write concern majority: no failover or power cut undoes the record, or a write before it.
    /// # Errors
    /// The server's, or the connection's; `Usage` if another run has taken the record over.
    pub(super) fn write(&self, target: &mut End) -> Result<(), ToolError> {
        let mut document = DocumentBuf::new()
            .with("_id", ID)
            .with("source", &self.source)
            .with("selection", &self.selection)
            .with("phase", self.phase.name())
            .with("hasStoppedExpiry", self.has_stopped_expiry)
            .with("run", self.run);
        if let Some(noted) = self.noted {
            document.append("noted", ValueRef::Timestamp(noted));
        }
        if let Some(token) = &self.token {
            document.append("token", token);
        }
        let own = DocumentBuf::new().with("_id", ID).with("run", self.run);
        let reply = update(target, &DocumentBuf::new().with("q", &own).with("u", &document))?;
        let is_written = reply.as_ref().get("n").and_then(number::as_i64_exact) == Some(1);
        if is_written { Ok(()) } else { Err(taken_over()) }
    }
}

/// Checks that no other run has taken the record over.
/// # Errors
/// The server's, or the connection's; `Usage` if one has.
pub(super) fn check_run(target: &mut End, run: i64) -> Result<(), ToolError> {
    let find = DocumentBuf::new()
        .with("find", COLLECTION)
        .with("filter", &DocumentBuf::new().with("_id", ID).with("run", run))
        .with("limit", 1_i32);
    if target.list(OWN_DATABASE, &find)?.is_empty() { Err(taken_over()) } else { Ok(()) }
}

fn taken_over() -> ToolError {
    ToolError::Usage(format!(
        "another bunko copy has taken over this target, or {OWN_DATABASE}.{COLLECTION} was removed from it: only one copy \
         to a target may run"
    ))
}

/// Notes that a collection is copied.
/// # Errors
/// The server's, or the connection's.
pub(super) fn note_copied(target: &mut End, namespace: &str) -> Result<(), ToolError> {
    put(target, &note(COPIED, namespace))
}

/// Notes that a collection is being copied anew: if that is cut off, it has to begin again.
/// # Errors
/// The server's, or the connection's.
pub(super) fn note_unfinished(target: &mut End, namespace: &str) -> Result<(), ToolError> {
    put(target, &note(UNFINISHED, namespace))
}

/// Deletes the note of [`note_unfinished`].
/// # Errors
/// The server's, or the connection's.
pub(super) fn forget_unfinished(target: &mut End, namespace: &str) -> Result<(), ToolError> {
    forget(target, &note(UNFINISHED, namespace))
}

/// The collections whose copy anew was cut off.
/// # Errors
/// The server's, or the connection's.
pub(super) fn unfinished(target: &mut End) -> Result<Vec<String>, ToolError> {
    noted(target, UNFINISHED)
}

/// The collections that are copied.
/// # Errors
/// The server's, or the connection's.
pub(super) fn copied(target: &mut End) -> Result<Vec<String>, ToolError> {
    noted(target, COPIED)
}

fn note(kind: &str, namespace: &str) -> DocumentBuf {
    DocumentBuf::new().with("_id", &format!("{kind}{namespace}"))
}

/// The namespaces of all notes whose `_id` begins with `kind`.
fn noted(target: &mut End, kind: &str) -> Result<Vec<String>, ToolError> {
    let all = target.list(OWN_DATABASE, &DocumentBuf::new().with("find", COLLECTION))?;
    let names = all
        .iter()
        .filter_map(|note| note.as_ref().get("_id").and_then(ValueRef::as_str)?.strip_prefix(kind).map(str::to_owned));
    Ok(names.collect())
}

fn put(target: &mut End, document: &DocumentBuf) -> Result<(), ToolError> {
    let id = document.as_ref().get("_id").expect("it has one");
    let statement =
        DocumentBuf::new().with("q", &DocumentBuf::new().with("_id", id)).with("u", document).with("upsert", true);
    update(target, &statement).map(drop)
}

fn update(target: &mut End, statement: &DocumentBuf) -> Result<DocumentBuf, ToolError> {
    let statements: ArrayBuf = [statement].into_iter().collect();
    let command = DocumentBuf::new()
        .with("update", COLLECTION)
        .with("updates", &statements)
        .with("writeConcern", &DocumentBuf::new().with("w", "majority"));
    target.run(OWN_DATABASE, &command)
}

fn forget(target: &mut End, filter: &DocumentBuf) -> Result<(), ToolError> {
    let statement = DocumentBuf::new().with("q", filter).with("limit", 0_i32);
    let statements: ArrayBuf = [&statement].into_iter().collect();
    let command = DocumentBuf::new().with("delete", COLLECTION).with("deletes", &statements);
    target.run(OWN_DATABASE, &command).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::{Comparison, SourceWrites};
    use super::*;
    use crate::namespaces::Filter;
    use std::num::NonZeroUsize;

    fn options(mode: Mode, existing: Existing) -> CopyOptions {
        CopyOptions {
            filter: Filter::default(),
            mode,
            existing,
            source_writes: SourceWrites::GoOn,
            comparison: Comparison::Everything,
            threads: NonZeroUsize::MIN,
            app_name: String::new(),
        }
    }

    #[test]
    fn only_the_same_copy_goes_on() {
        let record = |phase| Record { phase, ..Record::new("rs0".into(), "all".into()) };
        let check = |phase, source, selection, mode, existing| {
            record(phase).check(source, selection, &options(mode, existing)).map_err(|error| error.to_string())
        };
        assert_eq!(check(Phase::Copying, "rs0", "all", Mode::Once, Existing::Refuse), Ok(()));
        assert_eq!(check(Phase::Following, "rs0", "all", Mode::Finish, Existing::Drop), Ok(()));
        assert_eq!(check(Phase::Finished, "rs0", "all", Mode::Follow, Existing::Drop), Ok(()));
        for (phase, source, selection, mode, words) in [
            (Phase::Following, "rs1", "all", Mode::Follow, "from rs0, not from rs1"),
            (Phase::Following, "rs0", "some", Mode::Follow, "other databases"),
            (Phase::Following, "rs0", "all", Mode::Once, "--follow or --finish"),
            (Phase::Finished, "rs0", "all", Mode::Follow, "which has ended"),
        ] {
            let refusal = check(phase, source, selection, mode, Existing::Refuse).expect_err("refused");
            assert!(refusal.contains(words) && refusal.contains("--anew"), "{refusal}");
        }
    }
}
