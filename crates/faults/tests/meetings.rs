//! Two threads meet in the bad order, and nothing is lost. One thread is held between two steps, at a
//! `bunko_store::failpoint::Failpoint`, while other threads do everything that is possible meanwhile. The failpoints'
//! own comments say what stays true.
//!
//! Release builds have no failpoints, and none of these tests.
//!
//! "After a kill" means: the data directory as it is now, copied and opened by another server.
#![cfg(debug_assertions)]

use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_engines::Entry;
use bunko_faults::check;
use bunko_faults::model::{Content, Model};
use bunko_faults::server::{Outcome, Server};
use bunko_faults::workload::Step;
use bunko_faults::writes::Journal;
use bunko_store::failpoint::{Failpoint, hold};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;
use tempfile::TempDir;

/// The collection that the tests use. `compact` names another one.
const NAME: &str = "met";
/// How long a test watches a thread that must not go on.
const WATCHED: Duration = Duration::from_millis(50);
/// `_id` of documents that fill a segment.
const LARGE: Range<i32> = 100..105;

/// Makes the tests run one at a time: a failpoint holds threads of the whole process.
fn take_turns() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    bunko_store::fix_stripes();
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn durable() -> impl Iterator<Item = &'static Entry> {
    bunko_engines::ENGINES.iter().filter(|engine| engine.name != "memory")
}

fn lsm() -> &'static Entry {
    bunko_engines::ENGINES.iter().find(|engine| engine.name == "lsm").expect("the default engine")
}

fn insert(ids: Range<i32>, pad_bytes: usize) -> Step {
    Step::Insert { collection: NAME, ids, pad_bytes, journal: Journal::Synced }
}

fn update(id: i32, value: i32) -> Step {
    let content = Content { value, pad_bytes: 30 };
    Step::Update { collection: NAME, id, content, journal: Journal::Synced }
}

fn delete(id: i32) -> Step {
    Step::Delete { collection: NAME, id, journal: Journal::Synced }
}

/// A server and the model of its data.
struct Meeting {
    scratch: TempDir,
    engine: &'static Entry,
    server: Arc<Server>,
    model: Model,
    /// Threads whose steps began while another thread was held.
    beside: Vec<JoinHandle<()>>,
}

impl Meeting {
    /// A server with a collection of six documents that are flushed, and an index.
    fn begin(engine: &'static Entry) -> Self {
        let scratch = directory();
        let server = Arc::new(Server::open(scratch.path(), engine).expect("a new directory"));
        let mut meeting = Self { scratch, engine, server, model: Model::default(), beside: Vec::new() };
        meeting.take(&Step::Create { collection: "fleeting", engine: "memory" });
        meeting.take(&Step::Create { collection: NAME, engine: engine.name });
        meeting.take(&Step::CreateIndex { collection: NAME, field: "v" });
        meeting.take(&insert(0..6, 100));
        meeting.take(&Step::Checkpoint);
        meeting
    }

    fn take(&mut self, step: &Step) {
        run(&self.server, step);
        step.apply(&mut self.model);
    }

    /// Takes a step on a thread of its own; the model does not know of it yet.
    fn begin_step(&self, step: &Step) -> JoinHandle<()> {
        let (server, step) = (Arc::clone(&self.server), step.clone());
        std::thread::spawn(move || run(&server, &step))
    }

    /// Begins a step that must not complete while another thread is held.
    fn is_held_up(&mut self, step: &Step) {
        let thread = self.begin_step(step);
        sleep(WATCHED);
        assert!(!thread.is_finished(), "{step:?} went past who is held");
        self.beside.push(thread);
    }

    /// Runs a step and holds its thread at a failpoint until `meanwhile` has returned. Then all writes must be there,
    /// now and after a kill.
    fn meet(&mut self, point: Failpoint, step: &Step, meanwhile: impl FnOnce(&mut Self)) {
        let held = hold(point);
        let thread = self.begin_step(step);
        held.wait();
        meanwhile(self);
        drop(held);
        thread.join().expect("the step that was held");
        self.beside.drain(..).for_each(|thread| thread.join().expect("a step beside it"));
        step.apply(&mut self.model);
        self.look();
        self.survives_a_kill();
    }

    fn write(&mut self) {
        self.take(&update(1, 111));
        self.take(&delete(2));
        self.take(&insert(10..13, 50));
    }

    /// Fills a segment after the existing data with documents, and deletes them.
    fn fill_segment(&mut self) {
        self.take(&insert(LARGE, 15 << 20));
        LARGE.for_each(|id| self.take(&delete(id)));
    }

    /// Writes, reads and checks recovery, which must all work while another thread is held.
    fn write_everything(&mut self) {
        self.write();
        self.look();
        self.survives_a_kill();
    }

    fn look(&self) {
        check::all(&self.server, &self.model).expect("what was acknowledged is there");
    }

    fn survives_a_kill(&self) {
        let (_left, server) = self.killed();
        check::all(&server, &self.model.clone().restarted()).expect("what was acknowledged is there after a kill");
        server.close().expect("closes");
    }

    /// A server on a copy of the data directory as a kill would leave it now.
    fn killed(&self) -> (TempDir, Server) {
        let left = directory();
        copy(self.scratch.path(), left.path());
        let server = Server::open(left.path(), self.engine).expect("a start after a kill");
        (left, server)
    }
}

fn directory() -> TempDir {
    tempfile::Builder::new().prefix("meetings-").tempdir().expect("temporary directory")
}

/// Copies a data directory while no thread changes it: threads that would are held.
fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("readable") {
        let path = entry.expect("readable").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            std::fs::create_dir(&target).expect("writable");
            copy(&path, &target);
        } else if path.extension().is_none_or(|extension| extension != "tmp") {
            std::fs::copy(&path, &target).expect("writable");
        }
    }
}

fn run(server: &Server, step: &Step) {
    match step.send(server).expect("a command") {
        Outcome::Acknowledged(_) => {}
        other => panic!("{step:?}: {other:?}"),
    }
}

fn find_by_id(id: i32) -> DocumentBuf {
    DocumentBuf::new().with("find", NAME).with("filter", &DocumentBuf::new().with("_id", id))
}

/// The field `v` of the document that a find by `_id` answers with.
fn value_of(outcome: Outcome) -> Option<i32> {
    let Outcome::Acknowledged(reply) = outcome else { panic!("{outcome:?}") };
    let batch = reply.as_ref().get("cursor")?.as_document()?.get("firstBatch")?.as_array()?;
    match batch.iter().next()?.as_document()?.get("v")? {
        ValueRef::Int32(value) => Some(value),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_record_that_is_not_applied_is_seen_by_no_reader_and_passed_by_no_checkpoint() {
    let _turn = take_turns();
    for engine in durable() {
        let mut meeting = Meeting::begin(engine);
        meeting.meet(Failpoint::Appended, &insert(20..22, 50), |meeting| {
            meeting.look();
            meeting.survives_a_kill();
            meeting.is_held_up(&Step::Checkpoint);
        });
    }
}

#[test]
fn a_later_record_is_not_acknowledged_before_an_earlier_one_is_applied() {
    let _turn = take_turns();
    for engine in durable() {
        let mut meeting = Meeting::begin(engine);
        let later = insert(30..32, 50);
        meeting.meet(Failpoint::Appended, &insert(20..22, 50), |meeting| {
            // If it were acknowledged, a snapshot would not see a write that its client knows to have succeeded.
            meeting.is_held_up(&later);
            later.apply(&mut meeting.model);
        });
    }
}

/// While engines apply a long batch (here a document of 9 MB), its reserved place is after the writes of other threads.
#[test]
fn a_long_batch_lets_others_pass_and_is_not_seen_before_its_end() {
    let _turn = take_turns();
    for engine in durable() {
        let mut meeting = Meeting::begin(engine);
        meeting.meet(Failpoint::AppliedAhead, &insert(20..21, 9 << 20), |meeting| {
            // Each of these writes would wait for the batch if the batch were placed before them.
            meeting.write_everything();
            meeting.is_held_up(&Step::Checkpoint);
            // A batch that reaches past the reserved place waits.
            let beyond = insert(30..31, 200_000);
            meeting.is_held_up(&beyond);
            beyond.apply(&mut meeting.model);
        });
        meeting.take(&delete(20));
        meeting.look();
    }
}

#[test]
fn writes_between_the_steps_of_a_checkpoint_are_kept() {
    let _turn = take_turns();
    for engine in durable() {
        for point in [Failpoint::Marked, Failpoint::Flushed, Failpoint::ManifestWritten] {
            let mut meeting = Meeting::begin(engine);
            meeting.take(&update(0, 100));
            meeting.take(&update(1, 101));
            meeting.meet(point, &Step::Checkpoint, Meeting::write_everything);
            meeting.take(&Step::Checkpoint);
            meeting.survives_a_kill();
        }
    }
}

#[test]
fn a_stop_waits_for_a_group_that_is_on_its_way_to_the_kernel() {
    let _turn = take_turns();
    for engine in durable() {
        let mut meeting = Meeting::begin(engine);
        let step = insert(20..22, 50);
        let held = hold(Failpoint::GroupTaken);
        let writer = meeting.begin_step(&step);
        held.wait();
        let stop = {
            let server = Arc::clone(&meeting.server);
            std::thread::spawn(move || server.store().close().expect("closes"))
        };
        sleep(WATCHED);
        assert!(!stop.is_finished(), "closed with records that are in memory only");
        drop(held);
        stop.join().expect("the stop");
        writer.join().expect("it was acknowledged before the stop, or waited for it");
        step.apply(&mut meeting.model);
        meeting.survives_a_kill();
    }
}

#[test]
fn a_kill_between_the_steps_of_a_start_costs_nothing() {
    let _turn = take_turns();
    for engine in durable() {
        for point in [Failpoint::Replayed, Failpoint::LogStarted] {
            let mut meeting = Meeting::begin(engine);
            meeting.write_everything();
            let left = directory();
            copy(meeting.scratch.path(), left.path());
            let held = hold(point);
            let (path, engine) = (left.path().to_owned(), meeting.engine);
            let start = std::thread::spawn(move || Server::open(&path, engine).expect("starts"));
            held.wait();
            meeting.scratch = left;
            meeting.survives_a_kill();
            drop(held);
            meeting.server = Arc::new(start.join().expect("the start"));
            meeting.look();
            meeting.take(&insert(40..42, 10));
            meeting.survives_a_kill();
        }
    }
}

#[test]
fn a_slow_reader_does_not_bring_an_old_document_back() {
    let _turn = take_turns();
    let mut meeting = Meeting::begin(lsm());
    let held = hold(Failpoint::RowFound);
    let reader = {
        let server = Arc::clone(&meeting.server);
        std::thread::spawn(move || value_of(server.run("test", find_by_id(3).as_ref())))
    };
    held.wait();
    meeting.take(&update(3, 333));
    drop(held);
    // The read began before the update, so that either version is right.
    assert!([Some(6), Some(333)].contains(&reader.join().expect("the reader")));
    assert_eq!(value_of(meeting.server.run("test", find_by_id(3).as_ref())), Some(333));
    meeting.look();
}

#[test]
fn a_segment_is_not_used_again_while_a_document_in_it_is_being_read() {
    let _turn = take_turns();
    let mut meeting = Meeting::begin(lsm());
    let first = meeting.scratch.path().join("log/000000000000.segment");
    meeting.fill_segment();
    assert!(first.exists());
    let held = hold(Failpoint::SegmentFound);
    let reader = {
        let server = Arc::clone(&meeting.server);
        std::thread::spawn(move || value_of(server.run("test", find_by_id(4).as_ref())))
    };
    held.wait();
    meeting.take(&Step::Compact);
    assert!(first.exists(), "a segment that is being read is used again");
    drop(held);
    assert_eq!(reader.join().expect("the reader"), Some(8));
    meeting.take(&Step::Checkpoint);
    assert!(!first.exists(), "a segment without readers is kept");
    meeting.look();
}

#[test]
fn writes_between_the_registry_of_extents_and_the_manifest_are_kept() {
    let _turn = take_turns();
    let mut meeting = Meeting::begin(lsm());
    meeting.fill_segment();
    meeting.meet(Failpoint::ExtentRegistered, &Step::Compact, Meeting::write_everything);
}

#[test]
fn no_table_is_added_between_what_a_merge_may_forget_and_its_choice() {
    let _turn = take_turns();
    let mut meeting = Meeting::begin(lsm());
    meeting.take(&update(3, 31));
    let open = DocumentBuf::new().with("find", NAME).with("batchSize", 0);
    let Outcome::Acknowledged(opened) = meeting.server.run("test", open.as_ref()) else { panic!("no cursor") };
    meeting.meet(Failpoint::ThresholdDecided, &Step::Compact, |meeting| {
        meeting.take(&update(3, 32));
        meeting.is_held_up(&Step::Checkpoint);
    });
    let cursor = opened.as_ref().get("cursor").and_then(ValueRef::as_document).and_then(|cursor| cursor.get("id"));
    let Some(ValueRef::Int64(id)) = cursor else { panic!("{opened:?}") };
    let more = DocumentBuf::new().with("getMore", id).with("collection", NAME);
    let Outcome::Acknowledged(reply) = meeting.server.run("test", more.as_ref()) else { panic!("the cursor is gone") };
    let batch = reply.as_ref().get("cursor").and_then(ValueRef::as_document).and_then(|cursor| cursor.get("nextBatch"));
    let values: Vec<_> = batch.and_then(ValueRef::as_array).expect("a batch").iter().collect();
    let third = values[3].as_document().and_then(|document| document.get("v"));
    assert!(matches!(third, Some(ValueRef::Int32(31))), "the cursor sees {third:?}, which was 31 when it was opened");
}

#[test]
fn writes_between_a_builds_last_step_and_its_commit_have_their_keys() {
    let _turn = take_turns();
    for engine in durable() {
        let mut meeting = Meeting::begin(engine);
        let create = Step::CreateIndex { collection: NAME, field: "w" };
        meeting.meet(Failpoint::IndexFilled, &create, |meeting| {
            meeting.write();
            // The next start completes the index.
            create.apply(&mut meeting.model);
            meeting.survives_a_kill();
        });
    }
}

#[test]
fn a_duplicate_between_a_builds_last_step_and_its_commit_is_in_one_index_at_most() {
    let _turn = take_turns();
    for engine in durable() {
        let mut meeting = Meeting::begin(engine);
        let keys = DocumentBuf::new().with("pad", 1);
        let index = DocumentBuf::new().with("key", &keys).with("name", "pad").with("unique", true);
        let mut indexes = ArrayBuf::new();
        indexes.push(&index);
        let create = DocumentBuf::new().with("createIndexes", NAME).with("indexes", &indexes);
        let held = hold(Failpoint::IndexFilled);
        let builder = {
            let server = Arc::clone(&meeting.server);
            std::thread::spawn(move || server.run("test", create.as_ref()))
        };
        held.wait();
        // With an empty `pad`, the documents have the same key.
        meeting.take(&insert(50..52, 0));
        drop(held);
        match builder.join().expect("the builder") {
            Outcome::Refused(message) => assert!(message.contains("E11000"), "{message}"),
            other => panic!("two documents have one key: {other:?}"),
        }
        meeting.look();
        meeting.survives_a_kill();
    }
}

#[test]
fn a_query_between_the_end_of_an_index_and_the_collections_knowing_of_it_waits() {
    let _turn = take_turns();
    for engine in bunko_engines::ENGINES {
        let meeting = Meeting::begin(engine);
        let held = hold(Failpoint::IndexesCommitted);
        let dropping = meeting.begin_step(&Step::DropIndex { collection: NAME, field: "v" });
        held.wait();
        let range = DocumentBuf::new().with("v", &DocumentBuf::new().with("$gte", i32::MIN));
        let count = DocumentBuf::new().with("count", NAME).with("query", &range);
        match meeting.server.run("test", count.clone().with("maxTimeMS", 20).as_ref()) {
            Outcome::Refused(message) => assert!(message.contains("time limit"), "{message}"),
            other => panic!("{}: counted by an index that is gone: {other:?}", engine.name),
        }
        let server = Arc::clone(&meeting.server);
        let counting = std::thread::spawn(move || server.run("test", count.as_ref()));
        sleep(WATCHED);
        assert!(!counting.is_finished(), "{}: counted by an index that is gone", engine.name);
        drop(held);
        dropping.join().expect("the drop");
        let Outcome::Acknowledged(reply) = counting.join().expect("the count") else { panic!("no count") };
        assert!(matches!(reply.as_ref().get("n"), Some(ValueRef::Int32(6))), "{}: {reply:?}", engine.name);
    }
}
