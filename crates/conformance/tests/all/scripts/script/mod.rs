//! The language of the scripts: one line, one batch or one question.
//!
//! ```text
//! create K; insert K R DOCUMENT; put K KEY R     effects parted by semicolons are one batch
//! scan K ,b] back @before                         of a range, backwards, in a snapshot
//! repeat 1..99 insert 1 $ text                    a line for each number, which stands for $
//! threads 4 repeat 1..99 insert 1 $ text          the same, from four threads at once
//! ```

mod batches;
mod notation;

use batches::{Target, keyspace, record, repetition, summary};
use bunko_conformance::roster;
use bunko_conformance::subject::Subject;
use bunko_engines::Entry;
use bunko_store::{
    Direction, KeyCursor, KeyRange, KeyspaceId, RecordCursor, RecordRange, Snapshot, StorageError, Store, View,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// Role of the engine under test.
#[derive(Clone, Copy)]
pub enum Role {
    /// The engine is the store's own.
    Own,
    /// The engine holds keyspaces in a store with another own engine.
    Guest(&'static Entry),
}

/// A running script.
pub struct Script {
    // Declared first: open cursors must not outlive their store.
    cursors: BTreeMap<String, Cursor>,
    snapshots: BTreeMap<String, Arc<Snapshot>>,
    target: Target,
}

/// A walk that a script keeps open.
enum Cursor {
    Records(Box<dyn RecordCursor>),
    Keys(Box<dyn KeyCursor>),
}

type Answer = Result<String, StorageError>;

impl Script {
    pub fn new(entry: &'static Entry, role: Role) -> Self {
        let own = if let Role::Guest(own) = role { own } else { entry };
        let (cursors, snapshots) = (BTreeMap::new(), BTreeMap::new());
        Self { cursors, snapshots, target: Target { subject: Subject::new(own), engine: entry.name } }
    }

    /// The engines' answers to the lines of a case.
    pub fn run_case(&mut self, case: &datadriven::TestCase) -> String {
        assert_eq!(case.directive, "run", "unknown directive {:?}", case.directive);
        let mut output = String::new();
        for line in case.input.lines() {
            output += &self.run_line(line);
        }
        self.target.subject.content();
        if output.is_empty() { "ok\n".to_owned() } else { output }
    }

    fn run_line(&mut self, line: &str) -> String {
        if let Some(rest) = line.strip_prefix("threads ") {
            return self.target.threads(rest);
        }
        if let Some(rest) = line.strip_prefix("repeat ") {
            let (numbers, line) = repetition(rest);
            let answers: Vec<String> =
                numbers.map(|number| self.line(&line(number)).replace(&number.to_string(), "$")).collect();
            return summary(&answers);
        }
        self.line(line)
    }

    fn line(&mut self, line: &str) -> String {
        if let Some(answer) = self.target.change(line) {
            return answer;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = self.ask(&words).unwrap_or_else(|error| format!("error: {}\n", self.target.anonymous(&error)));
        if answer.is_empty() || answer.ends_with('\n') { answer } else { answer + "\n" }
    }

    /// Runs a line that is not a batch.
    fn ask(&mut self, words: &[&str]) -> Answer {
        match *words {
            ["snapshot", name] => {
                self.snapshots.insert(name.to_owned(), Arc::new(self.target.subject.store().snapshot()));
            }
            ["release", name] => {
                self.snapshots.remove(name).unwrap_or_else(|| panic!("no snapshot {name:?}"));
            }
            ["checkpoint"] => self.target.subject.store().checkpoint()?,
            ["compact"] => self.target.subject.store().compact()?,
            ["reopen"] => self.restart(Subject::reopen),
            ["crash"] => self.restart(Subject::crash),
            ["cursor", name, ref walk @ ..] => {
                let cursor = self.open(walk);
                self.cursors.insert(name.to_owned(), cursor);
            }
            ["next", name, count] => {
                let cursor = self.cursors.get_mut(name).unwrap_or_else(|| panic!("no cursor {name:?}"));
                return cursor.take(count.parse().expect("a number of steps"));
            }
            ["scan" | "keys", ..] => return self.open(words).take(usize::MAX),
            ["count", ref walk @ ..] => return self.open(walk).count(),
            _ => return self.look_up(words),
        }
        Ok(String::new())
    }

    fn look_up(&self, words: &[&str]) -> Answer {
        let store = self.target.subject.store();
        let view = self.view(words);
        let mut bytes = Vec::new();
        let found = match *words {
            ["get", space, id, ..] => {
                let location = view.record(keyspace(space), record(id), &mut bytes)?;
                location.map(|_| format!("{id} {}", notation::print_document(&bytes)))
            }
            ["find", space, key, ..] => {
                view.key(keyspace(space), &notation::key(key))?.map(|record| format!("{key} -> {}", record.0))
            }
            ["find-id", index, space, key, ..] => {
                let key = notation::key(key);
                let found = view.record_by_primary_key(keyspace(index), keyspace(space), &key, &mut bytes)?;
                found.map(|(record, _)| format!("{} {}", record.0, notation::print_document(&bytes)))
            }
            ["stats", space] => {
                let statistics = store.keyspace_statistics(keyspace(space));
                Some(format!("{} entries, {} bytes", statistics.entries, statistics.bytes))
            }
            ["engine", space] => Some(engine_role(self.target.engine, store, keyspace(space)).to_owned()),
            ["takes-space", space] => Some(takes_space(store, keyspace(space)).to_owned()),
            _ => panic!("no line: {words:?}"),
        };
        Ok(found.unwrap_or_else(|| "none".to_owned()))
    }

    fn restart(&mut self, restart: fn(&mut Subject)) {
        self.cursors.clear();
        self.snapshots.clear();
        restart(&mut self.target.subject);
    }

    /// The snapshot that a word names after an `@`, or the latest state.
    fn view(&self, words: &[&str]) -> &dyn View {
        match words.iter().find_map(|word| word.strip_prefix('@')) {
            Some(name) => &**self.snapshots.get(name).unwrap_or_else(|| panic!("no snapshot {name:?}")),
            None => self.target.subject.store().latest(),
        }
    }

    fn open(&self, words: &[&str]) -> Cursor {
        let view = self.view(words);
        let direction = if words.contains(&"back") { Direction::Backward } else { Direction::Forward };
        let keyspace = keyspace(words[1]);
        let written = words.iter().skip(2).find(|word| word.contains(','));
        if words[0] == "keys" {
            let range = written.map(|range| notation::range(range, notation::key).expect("a range"));
            let range = range.map_or(KeyRange::ALL, |(start, end)| KeyRange { start, end });
            return Cursor::Keys(view.keys(keyspace, range, direction));
        }
        assert_eq!(words[0], "scan", "scan or keys, not {:?}", words[0]);
        let range = written.map(|range| notation::range(range, record).expect("a range"));
        let range = range.map_or(RecordRange::ALL, |(start, end)| RecordRange { start, end });
        Cursor::Records(view.records(keyspace, range, direction))
    }
}

/// Whether a keyspace is in the engine under test.
fn engine_role(tested: &str, store: &Store, keyspace: KeyspaceId) -> &'static str {
    if store.engine_name_of(keyspace) == tested { "the tested engine" } else { "another engine" }
}

fn takes_space(store: &Store, keyspace: KeyspaceId) -> &'static str {
    match store.space(&[keyspace])[..] {
        [space] if space.used_bytes > 0 => "yes",
        [_] => "no",
        _ => "not one answer for one keyspace",
    }
}

impl Cursor {
    fn take(&mut self, count: usize) -> Answer {
        let mut output = String::new();
        for _ in 0..count {
            let line = match self {
                Self::Records(cursor) => {
                    cursor.next()?.map(|(record, _, bytes)| format!("{} {}", record.0, notation::print_document(bytes)))
                }
                Self::Keys(cursor) => {
                    cursor.next()?.map(|(key, record)| format!("{} -> {}", notation::print_key(key), record.0))
                }
            };
            let is_at_end = line.is_none();
            let _ = writeln!(output, "{}", line.as_deref().unwrap_or("end"));
            if is_at_end {
                break;
            }
        }
        Ok(output)
    }

    fn count(&mut self) -> Answer {
        let mut count = 0_u64;
        let mut bytes = 0;
        loop {
            let length = match self {
                Self::Records(cursor) => cursor.next()?.map(|(_, _, bytes)| bytes.len()),
                Self::Keys(cursor) => cursor.next()?.map(|(key, _)| key.len()),
            };
            let Some(length) = length else { return Ok(format!("{count}, {bytes} bytes")) };
            count += 1;
            bytes += length;
        }
    }
}

/// Roles in which an engine can be tested: as the store's own, and as guest in a store of each other durable engine.
pub fn roles(entry: &Entry) -> Vec<Role> {
    let hosts = bunko_engines::ENGINES.iter().filter(|host| host.name != entry.name);
    let hosts = hosts.filter(|host| roster::survival(host) == bunko_store::Survival::Durable);
    std::iter::once(Role::Own).chain(hosts.map(Role::Guest)).collect()
}
