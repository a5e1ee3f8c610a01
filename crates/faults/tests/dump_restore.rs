//! The k-th call on a dump's files fails, for every k and in every way: the dump or restore names the failed file and
//! the cause, and a resumed run completes it.
//!
//! The server keeps its data in memory. `BUNKO_FAULTS_KIND=Torn` runs one kind of fault alone.

use bunko_archive::compression::Compression;
use bunko_archive::split_document;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef};
use bunko_client::ClientError;
use bunko_faults::check;
use bunko_faults::model::Model;
use bunko_faults::server::{Outcome, Server};
use bunko_faults::workload::Step;
use bunko_faults::writes::Journal;
use bunko_faulty_files::{Fault, Kind, Watch};
use bunko_store::Clock;
use bunko_tools::dump::{self, ArchiveTarget, DumpOptions, Output};
use bunko_tools::progress::Progress;
use bunko_tools::restore::{self, ArchiveSource, Existing, RestoreOptions, ResumeFile, Source};
use bunko_tools::{Command, Interrupted, Link};
use std::collections::{BTreeSet, VecDeque};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// A server in this process, behind the interface through which the tools connect.
struct Here {
    server: Arc<Server>,
    /// The memory engine stores no documents here, but the server needs a directory.
    _directory: TempDir,
}

struct Way {
    server: Arc<Server>,
    replies: VecDeque<DocumentBuf>,
    current: DocumentBuf,
}

impl Here {
    fn new() -> Self {
        let directory = scratch();
        let memory = bunko_engines::ENGINES.iter().find(|engine| engine.name == "memory").expect("an engine");
        let server = Server::open(directory.path(), memory).unwrap_or_else(|message| panic!("{message}"));
        Self { server: Arc::new(server), _directory: directory }
    }

    /// A server with documents that fill several buffers, an index, and an empty collection.
    fn filled() -> (Self, Model) {
        let (here, mut model) = (Self::new(), Model::default());
        let steps = [
            Step::Create { collection: "trees", engine: "memory" },
            Step::Insert { collection: "trees", ids: 0..30, pad_bytes: 20_000, journal: Journal::Written },
            Step::CreateIndex { collection: "trees", field: "v" },
            Step::Create { collection: "mapped", engine: "memory" },
        ];
        for step in steps {
            let outcome = step.send(&here.server).expect("a command");
            assert!(matches!(outcome, Outcome::Acknowledged(_)), "{outcome:?}");
            step.apply(&mut model);
        }
        (here, model)
    }
}

impl bunko_tools::Server for Here {
    fn connect(&self) -> Result<Box<dyn Link>, ClientError> {
        let (server, current) = (Arc::clone(&self.server), DocumentBuf::new());
        Ok(Box::new(Way { server, replies: VecDeque::new(), current }))
    }

    fn name(&self) -> &'static str {
        "here"
    }
}

impl Link for Way {
    fn send(&mut self, command: Command<'_>) -> Result<(), ClientError> {
        let mut body = command.body.to_owned();
        if let Some((name, mut bytes)) = command.documents {
            let mut documents = ArrayBuf::new();
            while let Some((document, rest)) = split_document(bytes).expect("documents") {
                documents.push(DocumentRef::parse(document).expect("sound"));
                bytes = rest;
            }
            body.append(name, &documents);
        }
        self.replies.push_back(self.server.reply(command.database, body.as_ref()).expect("no log to fail"));
        Ok(())
    }

    fn receive(&mut self) -> Result<DocumentRef<'_>, ClientError> {
        self.current = self.replies.pop_front().expect("a reply is due");
        Ok(self.current.as_ref())
    }

    fn in_flight(&self) -> usize {
        self.replies.len()
    }
}

/// Format of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Directory,
    Archive,
}

const FORMS: [Form; 2] = [Form::Directory, Form::Archive];

impl Form {
    fn path(self, below: &Path) -> PathBuf {
        match self {
            Self::Directory => below.join("dump"),
            Self::Archive => below.join("dump.archive"),
        }
    }

    fn dump(self, here: &Here, below: &Path, resume: dump::Resume) -> Result<(), String> {
        let path = self.path(below);
        let (output, compression) = match self {
            Self::Directory => (Output::Directory(path), Compression::None),
            Self::Archive => (Output::Archive(ArchiveTarget::File(path)), Compression::Zstd { level: 1 }),
        };
        let options = DumpOptions { compression, resume, threads: two(), ..DumpOptions::new(output) };
        let outcome = dump::run(here, &options, &Arc::new(Progress::new(Clock::machine())), &Interrupted::default());
        outcome.map(drop).map_err(|error| error.to_string())
    }

    fn restore(self, here: &Here, below: &Path, mode: restore::Resume) -> Result<(), String> {
        let path = self.path(below);
        let source = match self {
            Self::Directory => Source::Directory { path, database: None },
            Self::Archive => Source::Archive(ArchiveSource::File(path)),
        };
        let resume = Some(ResumeFile { path: below.join("restore.resume"), mode });
        let existing = Existing::Keep;
        let options = RestoreOptions { resume, existing, threads: two(), ..RestoreOptions::new(source) };
        let outcome = restore::run(here, &options, &Arc::new(Progress::new(Clock::machine())), &Interrupted::default());
        match outcome {
            Ok(summary) if summary.is_clean() => Ok(()),
            Ok(summary) => Err(summary.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn scratch() -> TempDir {
    tempfile::Builder::new().prefix("faults-").tempdir().expect("temporary directory")
}

fn two() -> NonZeroUsize {
    NonZeroUsize::new(2).expect("not zero")
}

/// The call that the fault hit; `None` if the run made fewer calls.
type Hit = Option<String>;

/// Checks that a message names a file of the dump and the cause.
fn explained(hit: &str, message: &str) -> Result<(), String> {
    let is_named = message.contains("faults-") || message.contains("dump") || message.contains("restore.resume");
    let causes = ["os error 5", "os error 28", "Input/output error", "o space left"];
    if is_named && causes.iter().any(|cause| message.contains(cause)) {
        return Ok(());
    }
    Err(format!("{hit} failed, and it is said without file or cause: {message}"))
}

fn names(directory: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(directory).expect("readable").flatten() {
        found.insert(entry.path().strip_prefix(directory).expect("below").to_owned());
        if entry.path().is_dir() {
            let below = names(&entry.path());
            found.extend(below.into_iter().map(|name| Path::new(&entry.file_name()).join(name)));
        }
    }
    found
}

fn compare(form: Form, below: &Path, model: &Model) -> Result<(), String> {
    let here = Here::new();
    form.restore(&here, below, restore::Resume::Fresh).map_err(|said| format!("what was dumped: {said}"))?;
    check::all(&here.server, model).map_err(|found| format!("a promise is broken: what was dumped: {found:?}"))
}

/// Runs a dump with one fault, and resumes it if it failed. The dump must then be complete.
fn dump_case(form: Form, fault: Fault, source: &(Here, Model), usual: &BTreeSet<PathBuf>) -> Result<Hit, String> {
    let scratch = scratch();
    let watch = Watch::new(scratch.path());
    watch.plan(Some(fault));
    let outcome = form.dump(&source.0, watch.path(), dump::Resume::Fresh);
    let Some(hit) = watch.hit() else { return outcome.map(|()| None) };
    watch.plan(None);
    let outcome = match outcome {
        Err(message) => explained(&hit, &message).and_then(|()| {
            let again = form.dump(&source.0, watch.path(), dump::Resume::Continue);
            again.map_err(|said| format!("a promise is broken: gone on with after {message}: {said}"))
        }),
        Ok(()) => Ok(()),
    };
    outcome.and_then(|()| compare(form, watch.path(), &source.1)).map_err(|found| format!("{hit}: {found}"))?;
    let left: Vec<_> = names(watch.path()).difference(usual).cloned().collect();
    if left.is_empty() { Ok(Some(hit)) } else { Err(format!("{hit}: left behind: {left:?}")) }
}

/// Runs a restore with one fault in the files that it reads or in its resume file, and resumes it if it failed.
fn restore_case(form: Form, fault: Fault, watch: &Watch, model: &Model) -> Result<Hit, String> {
    let here = Here::new();
    watch.plan(Some(fault));
    let outcome = form.restore(&here, watch.path(), restore::Resume::Fresh);
    let hit = watch.hit();
    watch.plan(None);
    let Some(hit) = hit else { return outcome.map(|()| None) };
    let again = match outcome {
        Err(message) => explained(&hit, &message).and_then(|()| {
            let again = form.restore(&here, watch.path(), restore::Resume::Continue);
            again.map_err(|said| format!("a promise is broken: gone on with after {message}: {said}"))
        }),
        Ok(()) => Ok(()),
    };
    again
        .and_then(|()| {
            check::all(&here.server, model).map_err(|found| format!("a promise is broken: restored: {found:?}"))
        })
        .map_err(|found| format!("{hit}: {found}"))?;
    Ok(Some(hit))
}

/// Runs one case for each kind of fault and each call. Returns the number of cases, and the failures.
fn sweep(what: &str, case: &dyn Fn(Fault) -> Result<Hit, String>) -> (u64, Vec<String>) {
    let only = std::env::var("BUNKO_FAULTS_KIND").ok();
    let (mut cases, mut failures) = (0, Vec::new());
    for kind in Kind::ALL.into_iter().filter(|kind| only.as_ref().is_none_or(|only| *only == format!("{kind:?}"))) {
        for at in 1.. {
            match case(Fault { kind, at }) {
                Ok(None) => break,
                Ok(Some(_)) => {}
                Err(found) => failures.push(format!("{what} {kind:?} {at}: {found}")),
            }
            cases += 1;
            assert!(at < 10_000, "{what} {kind:?} does not end: {failures:#?}");
        }
    }
    println!("{what}: {cases} cases, {} failures", failures.len());
    (cases, failures)
}

#[test]
fn a_dump_goes_on_whichever_call_failed() {
    let source = Here::filled();
    for form in FORMS {
        let usual = {
            let scratch = scratch();
            form.dump(&source.0, scratch.path(), dump::Resume::Fresh).expect("no fault");
            names(scratch.path())
        };
        let (cases, failures) = sweep(&format!("dump, {form:?}"), &|fault| dump_case(form, fault, &source, &usual));
        assert!(failures.is_empty() && cases > 0, "{} of {cases}:\n{}", failures.len(), failures.join("\n"));
    }
}

#[test]
fn a_restore_goes_on_whichever_call_failed() {
    let (source, model) = Here::filled();
    for form in FORMS {
        let scratch = scratch();
        form.dump(&source, scratch.path(), dump::Resume::Fresh).expect("no fault");
        let watch = Watch::new(scratch.path());
        let (cases, failures) =
            sweep(&format!("restore, {form:?}"), &|fault| restore_case(form, fault, &watch, &model));
        assert!(failures.is_empty() && cases > 0, "{} of {cases}:\n{}", failures.len(), failures.join("\n"));
    }
}
