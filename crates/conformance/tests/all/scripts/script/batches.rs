//! Lines of changes: effects separated by semicolons are one batch.

use super::notation;
use bunko_conformance::subject::Subject;
use bunko_store::{Batch, KeyspaceId, LockTable, Presence, RecordId, StorageError};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// The store that a script changes.
pub struct Target {
    pub subject: Subject,
    /// The engine under test.
    pub engine: &'static str,
}

impl Target {
    /// Runs one line for many numbers, shared out among threads. The line must change something.
    pub fn threads(&self, rest: &str) -> String {
        let (count, rest) = rest.split_once(" repeat ").expect("threads N repeat A..B line");
        let count: usize = count.parse().expect("a number of threads");
        let answers: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..count)
                .map(|thread| {
                    scope.spawn(move || {
                        let (numbers, line) = repetition(rest);
                        let own = numbers.skip(thread).step_by(count);
                        let answer = |number| self.change(&line(number)).expect("a line that changes something");
                        own.map(|number| answer(number).replace(&number.to_string(), "$")).collect::<Vec<_>>()
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        summary(&answers)
    }

    pub fn anonymous(&self, error: &StorageError) -> String {
        error.to_string().replace(&self.subject.path().display().to_string(), "DIRECTORY")
    }

    /// Runs a line of effects; `None` for any other line.
    pub fn change(&self, line: &str) -> Option<String> {
        let effects: Vec<Vec<&str>> = line.split(';').map(|effect| effect.split_whitespace().collect()).collect();
        let is_change = effects.iter().any(|effect| effect.first().is_some_and(|word| EFFECTS.contains(word)));
        is_change.then(|| match self.commit(&effects) {
            Ok(()) => String::new(),
            Err(error) => format!("error: {}\n", self.anonymous(&error)),
        })
    }

    fn commit(&self, effects: &[Vec<&str>]) -> Result<(), StorageError> {
        let store = self.subject.store();
        let stripe = |effect: &Vec<&str>| Some(LockTable::stripe((*effect.get(1)?, *effect.get(2)?)));
        let for_long = || Ok::<_, StorageError>(Instant::now() + Duration::from_secs(1));
        let _locked = store.locks().lock_all(&mut effects.iter().filter_map(stripe).collect(), for_long)?;
        let mut batch = Batch::new();
        for effect in effects {
            self.effect(&mut batch, effect)?;
        }
        let lsn = store.commit(&batch)?;
        store.write(lsn)
    }

    fn effect(&self, batch: &mut Batch<'_>, words: &[&str]) -> Result<(), StorageError> {
        let latest = self.subject.store().latest();
        let location = |keyspace, record| {
            let location = latest.record(keyspace, record, &mut Vec::new())?;
            Ok::<_, StorageError>(location.unwrap_or_else(|| panic!("no record for {words:?}")))
        };
        match *words {
            ["create", space] => batch.create_keyspace(keyspace(space), self.engine, &[]),
            ["create", space, "in", engine] => batch.create_keyspace(keyspace(space), engine, &[]),
            ["drop", space] => batch.drop_keyspace(keyspace(space)),
            ["insert", space, id, document] => {
                batch.insert_record(keyspace(space), record(id), notation::document(document));
            }
            ["replace", space, id, document] => {
                let (keyspace, record) = (keyspace(space), record(id));
                let replaced = location(keyspace, record)?;
                batch.replace_record(keyspace, record, notation::document(document), replaced);
            }
            ["delete", space, id] => {
                let (keyspace, record) = (keyspace(space), record(id));
                batch.delete_record(keyspace, record, location(keyspace, record)?);
            }
            ["put", space, key, id] => batch.put_key(keyspace(space), &notation::key(key), record(id)),
            ["put-id", space, key, id] => {
                batch.put_primary_key(keyspace(space), &notation::key(key), record(id), Presence::New);
            }
            ["move-id", space, key, id] => {
                batch.put_primary_key(keyspace(space), &notation::key(key), record(id), Presence::Moved);
            }
            ["remove", space, key] => batch.delete_key(keyspace(space), &notation::key(key)),
            _ => panic!("no effect: {words:?}"),
        }
        Ok(())
    }
}

/// Words that begin an effect.
const EFFECTS: [&str; 9] = ["create", "drop", "insert", "replace", "delete", "put", "put-id", "move-id", "remove"];

/// A range of numbers, and the line for each of them.
pub fn repetition(words: &str) -> (std::ops::Range<u64>, impl Fn(u64) -> String) {
    let (numbers, line) = words.split_once(' ').expect("A..B line");
    let (start, end) = numbers.split_once("..").expect("A..B");
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("no number: {text:?}"));
    (number(start)..number(end) + 1, move |number| line.replace('$', &number.to_string()))
}

/// Counts equal answers that follow each other; empty if all answers are empty.
pub fn summary(answers: &[String]) -> String {
    let mut output = String::new();
    for alike in answers.chunk_by(|left, right| left == right).filter(|alike| !alike[0].is_empty()) {
        let _ = writeln!(output, "{} x {}", alike.len(), alike[0].trim_end().replace('\n', " | "));
    }
    output
}

pub fn keyspace(word: &str) -> KeyspaceId {
    KeyspaceId(word.parse().unwrap_or_else(|_| panic!("no keyspace: {word:?}")))
}

pub fn record(word: &str) -> RecordId {
    RecordId(word.parse().unwrap_or_else(|_| panic!("no record id: {word:?}")))
}
