//! The fighters: each runs on a connection of its own until it is stopped or the server is gone.

use super::document::{DOCUMENTS, document, fields, key, missing};
use super::model::{Model, Moving, Place};
use super::ring::{
    Answer, COLLECTIONS, CROWDS, DATABASE, DOOMED, DUPLICATE_KEY, MOVING, command, connect, insert, run,
};
use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_client::{ClientError, Connection};
use bunko_testkit::random::scramble;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Writers of each collection; each document belongs to one of them.
const WRITERS: i32 = 2;
/// Indexes that are built and dropped, by turns: name, key, options.
const INDEXES: &[(&str, &str, &str)] = &[
    ("unique", "{k: 1}", ", unique: true"),
    ("by_n", "{n: -1}", ""),
    ("by_tags", "{tags: 1}", ""),
    ("unique_pair", "{k: 1, n: 1}", ", unique: true"),
    ("by_tags_and_key", "{tags: 1, k: -1}", ""),
];
/// Largest number of cursors that are left open.
const IDLE_CURSORS: usize = 40;
/// Documents that are added to a crowd and deleted again.
const CROWD: i32 = 300;
/// Documents of the collection that moves.
const MOVING_DOCUMENTS: i32 = 60;

/// The expected state of all collections.
#[derive(Clone, Default)]
pub struct Known {
    pub model: Model,
    pub moving: Arc<Mutex<Moving>>,
}

/// All fighters of one server.
pub struct Brawl {
    stop: Arc<AtomicBool>,
    fighters: Vec<JoinHandle<()>>,
}

/// One turn of a fighter; `None` when the server is gone.
type Turn = Box<dyn FnMut(&mut Connection, u64) -> Option<()> + Send>;

impl Brawl {
    pub fn start(address: SocketAddr, known: &Known, seed: u64) -> Self {
        let mut turns: Vec<(Turn, Duration)> = Vec::new();
        for (name, _) in COLLECTIONS {
            for writer in 0..WRITERS {
                let model = known.model.clone();
                let mut duplicate = Duplicate::default();
                let write = move |connection: &mut Connection, random| {
                    write(connection, &model, (name, writer), &mut duplicate, random)
                };
                turns.push((Box::new(write), Duration::ZERO));
            }
        }
        let moving = Arc::clone(&known.moving);
        let model = known.model.clone();
        let wander = move |connection: &mut Connection, _| wander(connection, &moving, &model);
        turns.push((Box::new(wander), Duration::from_millis(2)));
        turns.push((Box::new(build), Duration::from_millis(3)));
        turns.push((Box::new(build), Duration::from_millis(7)));
        let model = known.model.clone();
        let mut builder = connect(address);
        let gather = move |connection: &mut Connection, random| gather(connection, &mut builder, &model, random);
        turns.push((Box::new(gather), Duration::from_millis(5)));
        turns.push((Box::new(doom), Duration::from_millis(1)));
        turns.push((Box::new(doom), Duration::from_millis(1)));
        let mut idle = Vec::new();
        let leave = move |_: &mut Connection, random| leave_a_cursor(address, &mut idle, random);
        turns.push((Box::new(leave), Duration::from_millis(20)));
        turns.push((Box::new(checkpoint), Duration::from_millis(150)));
        let stop = Arc::new(AtomicBool::new(false));
        let fighters = turns.into_iter().zip(seed..).map(|((turn, pause), seed)| {
            let stop = Arc::clone(&stop);
            let connection = connect(address);
            thread::spawn(move || fight(connection, &stop, turn, pause, seed))
        });
        Self { fighters: fighters.collect(), stop }
    }

    /// Stops all fighters.
    ///
    /// # Panics
    /// If a fighter has seen a broken promise.
    pub fn join(self) {
        self.stop.store(true, Ordering::Relaxed);
        let failed: Vec<_> = self.fighters.into_iter().map(JoinHandle::join).filter_map(Result::err).collect();
        if let Some(panic) = failed.into_iter().next() {
            std::panic::resume_unwind(panic);
        }
    }
}

fn fight(mut connection: Connection, stop: &AtomicBool, mut turn: Turn, pause: Duration, seed: u64) {
    for number in 0.. {
        if stop.load(Ordering::Relaxed) || turn(&mut connection, scramble(seed << 32 ^ number)).is_none() {
            return;
        }
        // The pauses decide how much of the fight each kind of fighter is.
        thread::sleep(pause);
    }
}

/// A document with the key of another one, and the number of writes after which its key becomes unique again: few
/// enough for a unique index to be built, and enough for that to happen during the build.
#[derive(Default)]
struct Duplicate(Option<(i32, u64)>);

impl Duplicate {
    /// The next document to write, and the number of the write.
    fn next(&mut self, model: &Model, id: i32, random: u64) -> (i32, i64) {
        let unique = |id: i32| std::iter::repeat_with(|| model.next_number()).find(|number| key(id, *number) == id);
        let (id, number) = match self.0.take() {
            Some((id, 0)) => (id, unique(id)),
            Some((kept, left)) => {
                self.0 = Some((kept, left - 1));
                (id, unique(id))
            }
            None => (id, Some(model.next_number())),
        };
        let number = number.expect("an endless row has one");
        if key(id, number) != id {
            self.0 = Some((id, random >> 50 & 31));
        }
        (id, number)
    }
}

/// Inserts, updates or deletes documents of one writer.
fn write(
    connection: &mut Connection,
    model: &Model,
    (name, writer): (&str, i32),
    duplicate: &mut Duplicate,
    random: u64,
) -> Option<()> {
    let chosen = (random % (DOCUMENTS / WRITERS) as u64) as i32 * WRITERS + writer;
    let (id, number) = duplicate.next(model, chosen, random);
    let is_there = model.state(name, id).is_some();
    let (ids, state, request) = match (random >> 32 & 15, is_there) {
        (0, _) => {
            let ids: Vec<i32> = (0..8).map(|place| id + place * WRITERS).filter(|id| *id < DOCUMENTS).collect();
            (ids.clone(), None, delete_many(name, &ids))
        }
        (_, false) => (vec![id], Some(number), insert(name, &[document(id, number)])),
        (1 | 2, true) => (vec![id], None, delete_many(name, &[id])),
        (3..=5, true) => (vec![id], Some(number), find_and_modify(name, id, number)),
        (6 | 7, true) => (vec![id], Some(number), update(name, id, &document(id, number))),
        (_, true) => (vec![id], Some(number), update(name, id, &change(id, number))),
    };
    model.ask(name, &ids, |_| state);
    match run(connection, &request) {
        Answer::Done => model.acknowledge(name, &ids),
        Answer::Refused(failure) => {
            assert_eq!(failure.code, DUPLICATE_KEY, "{failure:?} to {request:?}");
            model.refuse(name, &ids);
        }
        Answer::Gone => return None,
    }
    Some(())
}

fn by_id(id: i32) -> DocumentBuf {
    DocumentBuf::new().with("_id", id)
}

fn change(id: i32, number: i64) -> DocumentBuf {
    let fields = fields(id, number);
    let missing = missing(&fields);
    let change = DocumentBuf::new().with("$set", &fields);
    if missing.as_ref().is_empty() { change } else { change.with("$unset", &missing) }
}

fn update(name: &str, id: i32, change: &DocumentBuf) -> DocumentBuf {
    let update = DocumentBuf::new().with("q", &by_id(id)).with("u", change);
    DocumentBuf::new().with("update", name).with("updates", &[&update].into_iter().collect::<ArrayBuf>())
}

fn find_and_modify(name: &str, id: i32, number: i64) -> DocumentBuf {
    DocumentBuf::new().with("findAndModify", name).with("query", &by_id(id)).with("update", &change(id, number))
}

fn delete_many(name: &str, ids: &[i32]) -> DocumentBuf {
    let mut list = ArrayBuf::new();
    for id in ids {
        list.push(*id);
    }
    let filter = DocumentBuf::new().with("_id", &DocumentBuf::new().with("$in", &list));
    let delete = DocumentBuf::new().with("q", &filter).with("limit", 0);
    DocumentBuf::new().with("delete", name).with("deletes", &[&delete].into_iter().collect::<ArrayBuf>())
}

/// Builds or drops an index.
fn build(connection: &mut Connection, random: u64) -> Option<()> {
    let (name, _) = COLLECTIONS[random as usize % COLLECTIONS.len()];
    let (index, pattern, options) = INDEXES[(random >> 16) as usize % INDEXES.len()];
    let request = if (random >> 32).is_multiple_of(3) {
        format!("{{dropIndexes: '{name}', index: '{index}'}}")
    } else {
        format!("{{createIndexes: '{name}', indexes: [{{key: {pattern}, name: '{index}'{options}}}]}}")
    };
    whatever_comes(connection, &command(&request))
}

/// Adds many documents that duplicate the keys of others, and deletes them while a unique index is built.
fn gather(connection: &mut Connection, builder: &mut Connection, model: &Model, random: u64) -> Option<()> {
    let (name, _) = CROWDS[random as usize % CROWDS.len()];
    let added: Vec<i32> = (DOCUMENTS..DOCUMENTS + CROWD).collect();
    if model.state(name, 0).is_none() {
        insert_all(connection, model, name, &(0..DOCUMENTS).collect::<Vec<_>>())?;
    }
    whatever_comes(connection, &command(&format!("{{dropIndexes: '{name}', index: 'unique'}}")))?;
    insert_all(connection, model, name, &added)?;
    thread::scope(|scope| {
        let indexes = "[{key: {k: 1}, name: 'unique', unique: true}]";
        let build = command(&format!("{{createIndexes: '{name}', indexes: {indexes}}}"));
        let built = scope.spawn(move || whatever_comes(builder, &build));
        // Any moment of the build is a good one.
        thread::sleep(Duration::from_micros(random >> 32 & 0x7fff));
        model.ask(name, &added, |_| None);
        let gone = matches!(run(connection, &delete_many(name, &added)), Answer::Done);
        if gone {
            model.acknowledge(name, &added);
        }
        built.join().expect("a builder does not panic")?;
        gone.then_some(())
    })
}

/// Inserts the missing ones of these documents, with keys that follow from their ids.
fn insert_all(connection: &mut Connection, model: &Model, name: &str, ids: &[i32]) -> Option<()> {
    let missing: Vec<i32> = ids.iter().copied().filter(|id| model.state(name, *id).is_none()).collect();
    let number =
        std::iter::repeat_with(|| model.next_number()).find(|number| key(0, *number) == 0 && key(1, *number) == 1)?;
    for ids in missing.chunks(500) {
        model.ask(name, ids, |_| Some(number));
        let documents: Vec<_> = ids.iter().map(|id| document(*id, number)).collect();
        match run(connection, &insert(name, &documents)) {
            Answer::Done => model.acknowledge(name, ids),
            Answer::Refused(failure) => panic!("{failure:?} to an insert into {name}"),
            Answer::Gone => return None,
        }
    }
    Some(())
}

/// Writes to a doomed collection, or indexes, renames or drops it, while another fighter does so too. Its final
/// contents are not predictable, but must agree with its indexes.
fn doom(connection: &mut Connection, random: u64) -> Option<()> {
    let number = (random >> 8 & 0xffff) as i64;
    let (index, pattern, options) = INDEXES[(random >> 32) as usize % INDEXES.len()];
    let (from, to) = if random >> 48 & 1 == 0 { (DOOMED[0], DOOMED[1]) } else { (DOOMED[1], DOOMED[0]) };
    let request = match random % 64 {
        0 => command(&format!("{{drop: '{from}'}}")),
        1 => {
            let rename = format!("{{renameCollection: '{DATABASE}.{from}', to: '{DATABASE}.{to}', dropTarget: true}}");
            return connection
                .run_command("admin", command(&rename).as_ref())
                .map_or_else(|error| refused(&error), |_| Some(()));
        }
        2..=7 => {
            command(&format!("{{createIndexes: '{from}', indexes: [{{key: {pattern}, name: '{index}'{options}}}]}}"))
        }
        8 => command(&format!("{{dropIndexes: '{from}', index: '*'}}")),
        9..=15 => delete_many(from, &[number as i32 & 255]),
        16..=31 => update(from, number as i32 & 255, &change(number as i32 & 255, number)),
        _ => insert(from, &[document(number as i32 & 255, number)]),
    };
    whatever_comes(connection, &request)
}

fn whatever_comes(connection: &mut Connection, request: &DocumentBuf) -> Option<()> {
    match run(connection, request) {
        Answer::Gone => None,
        Answer::Done | Answer::Refused(_) => Some(()),
    }
}

/// A refusal is part of the brawl; any other error means that the server is gone.
fn refused(error: &ClientError) -> Option<()> {
    matches!(error, ClientError::Command(_)).then_some(())
}

/// Creates, fills, indexes, renames or drops the collection that moves, one change per turn.
fn wander(connection: &mut Connection, moving: &Mutex<Moving>, model: &Model) -> Option<()> {
    let known = moving.lock().expect("not poisoned").known.clone();
    let number = model.next_number();
    let (next, request) = match known.name {
        None => {
            let name = MOVING[number as usize % 2];
            let engine = ["lsm", "mmap"][number as usize / 2 % 2];
            let request = format!("{{create: '{name}', storageEngine: {{{engine}: {{}}}}}}");
            (Place { name: Some(name), ..Place::default() }, command(&request))
        }
        Some(name) if known.contents.is_empty() => {
            let documents: Vec<_> = (0..MOVING_DOCUMENTS).map(|id| document(id, number)).collect();
            let contents = (0..MOVING_DOCUMENTS).map(|id| (id, number)).collect();
            (Place { name: Some(name), contents }, insert(name, &documents))
        }
        Some(name) if number % 4 == 0 => (Place::default(), DocumentBuf::new().with("drop", name)),
        Some(name) if number % 4 == 1 => {
            let indexes = "[{key: {tags: 1, n: 1}, name: 'moves'}, {key: {n: 1, _id: 1}, name: 'moves_too'}]";
            (known.clone(), command(&format!("{{createIndexes: '{name}', indexes: {indexes}}}")))
        }
        Some(name) => {
            let to = MOVING[usize::from(name == MOVING[0])];
            let request = format!("{{renameCollection: '{DATABASE}.{name}', to: '{DATABASE}.{to}'}}");
            (Place { name: Some(to), contents: known.contents.clone() }, command(&request))
        }
    };
    moving.lock().expect("not poisoned").asked = Some(next.clone());
    let answer = if request.as_ref().get("renameCollection").is_some() {
        connection.run_command("admin", request.as_ref()).map_or_else(rename_failed, |_| Answer::Done)
    } else {
        run(connection, &request)
    };
    match answer {
        Answer::Done => *moving.lock().expect("not poisoned") = Moving { known: next, asked: None },
        Answer::Refused(failure) => panic!("the collection that moves: {failure:?} to {request:?}"),
        Answer::Gone => return None,
    }
    Some(())
}

fn rename_failed(error: ClientError) -> Answer {
    match error {
        ClientError::Command(failure) => Answer::Refused(failure),
        _ => Answer::Gone,
    }
}

/// Opens a cursor and leaves it open; if there are too many, the oldest connection is closed.
fn leave_a_cursor(address: SocketAddr, idle: &mut Vec<Connection>, random: u64) -> Option<()> {
    let (name, _) = COLLECTIONS[random as usize % COLLECTIONS.len()];
    let sort = ["{}", "{n: -1}", "{k: 1, n: 1}", "{tags: 1}"][(random >> 8) as usize % 4];
    if idle.len() == IDLE_CURSORS {
        idle.remove(0);
    }
    // The server may be gone by now.
    let uri = format!("mongodb://{address}/?connectTimeoutMS=300").parse().expect("a valid URI");
    let mut connection = Connection::connect(&uri).ok()?;
    let find = command(&format!("{{find: '{name}', sort: {sort}, batchSize: 2}}"));
    if matches!(run(&mut connection, &find), Answer::Gone) {
        return None;
    }
    idle.push(connection);
    Some(())
}

/// Asks for a checkpoint, or for `compact`.
fn checkpoint(connection: &mut Connection, random: u64) -> Option<()> {
    let done = if random.is_multiple_of(5) {
        connection.run_command(DATABASE, command("{compact: 'own'}").as_ref())
    } else {
        connection.run_command("admin", command("{fsync: 1}").as_ref())
    };
    done.ok().map(drop)
}
