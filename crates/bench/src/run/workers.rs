//! Several generators that share a load.
//!
//! They need nothing but the server that they measure: each writes that it has arrived, and waits until all have. The
//! waiting ends before a phase begins, so that its polling disturbs no figure.

use crate::BenchError;
use crate::server::{at, integer};
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_client::Connection;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Beside the scenario's own database, which the first worker makes and drops.
const DATABASE: &str = "bunko_bench_workers";
const COLLECTION: &str = "arrivals";
const POLL: Duration = Duration::from_millis(100);
/// Workers are started at different times; their images may have to be fetched first.
const PATIENCE: Duration = Duration::from_mins(10);

/// Which of how many generators: `INDEX/COUNT`, the index from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerPosition {
    /// From 0.
    pub index: u32,
    /// All of them.
    pub count: u32,
}

impl FromStr for WorkerPosition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match parsed {
            Some((index, count)) if index < count && count <= 10_000 => Ok(Self { index, count }),
            _ => Err(format!("'{text}' is not INDEX/COUNT with the index from 0 and below the count")),
        }
    }
}

/// The place where workers meet.
pub(super) struct Rendezvous {
    position: WorkerPosition,
    /// Which run this is: what an earlier one left behind must not count.
    run: Option<i64>,
    meetings: u32,
}

impl Rendezvous {
    /// The first worker opens the meeting place, and removes what an earlier run left there.
    pub fn open(control: &mut Connection, position: WorkerPosition) -> Result<Self, BenchError> {
        if position.index > 0 {
            return Ok(Self { position, run: None, meetings: 0 });
        }
        drop_database(control)?;
        let run = rand::random::<i64>();
        let at = server_time(control)?;
        let document = DocumentBuf::new().with("_id", "run").with("run", run).with("at", ValueRef::DateTime(at));
        let insert = DocumentBuf::new().with("insert", COLLECTION);
        let insert = insert.with("documents", &[&document].into_iter().collect::<ArrayBuf>());
        control.run_command(DATABASE, insert.as_ref())?;
        Ok(Self { position, run: Some(run), meetings: 0 })
    }

    /// Waits until every worker has come to its meeting of the same number.
    /// # Errors
    /// Not all come in time, or the user has stopped the run.
    pub fn meet(&mut self, control: &mut Connection, stop: &AtomicBool) -> Result<(), BenchError> {
        self.sum(control, stop, 0).map(|_| ())
    }

    /// As [`Self::meet`]; adds up what each worker brings along.
    pub fn sum(&mut self, control: &mut Connection, stop: &AtomicBool, mine: u64) -> Result<u64, BenchError> {
        self.meetings += 1;
        let deadline = Instant::now() + PATIENCE;
        let mut arrived = 0;
        loop {
            if self.run.is_none() {
                self.run = opened_run(control)?;
            }
            if let Some(run) = self.run {
                let brought = self.arrive(control, run, mine)?;
                arrived = brought.len() as u32;
                if arrived >= self.position.count {
                    return Ok(brought.iter().sum());
                }
            }
            if stop.load(Ordering::Relaxed) {
                return Err(BenchError::Workers("stopped while waiting for the others".into()));
            }
            if Instant::now() > deadline {
                let (count, seconds) = (self.position.count, PATIENCE.as_secs());
                return Err(BenchError::Workers(format!("{arrived} of {count} arrived within {seconds} s")));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Says that this worker is there; what everybody who is has brought.
    fn arrive(&self, control: &mut Connection, run: i64, mine: u64) -> Result<Vec<u64>, BenchError> {
        // A field of its own for each meeting: a worker that has gone on to the next must not take this number along.
        let brought = format!("brought{}", self.meetings);
        let set = DocumentBuf::new().with("run", run).with("meeting", self.meetings as i32).with(&brought, mine as i64);
        let arrival = DocumentBuf::new()
            .with("q", &DocumentBuf::new().with("_id", self.position.index as i32))
            .with("u", &DocumentBuf::new().with("$set", &set))
            .with("upsert", true);
        let update = DocumentBuf::new().with("update", COLLECTION);
        let update = update.with("updates", &[&arrival].into_iter().collect::<ArrayBuf>());
        control.run_command(DATABASE, update.as_ref())?;
        let there = DocumentBuf::new().with("$gte", self.meetings as i32);
        let filter = DocumentBuf::new().with("run", run).with("meeting", &there);
        let question = DocumentBuf::new().with("find", COLLECTION).with("filter", &filter);
        let mut all = Vec::new();
        for worker in control.find_all(DATABASE, question.as_ref())? {
            let number = integer(worker?.as_ref().get(&brought)).unwrap_or(0);
            all.push(number.try_into().unwrap_or(0));
        }
        Ok(all)
    }

    /// The last meeting: when all others have seen that everybody is there, the first worker closes the place.
    pub fn close(mut self, control: &mut Connection, stop: &AtomicBool) -> Result<(), BenchError> {
        self.meet(control, stop)?;
        if self.position.index > 0 {
            self.meetings += 1;
            return self.arrive(control, self.run.unwrap_or_default(), 0).map(drop);
        }
        self.meet(control, stop)?;
        drop_database(control)
    }
}

fn drop_database(control: &mut Connection) -> Result<(), BenchError> {
    control.run_command(DATABASE, DocumentBuf::new().with("dropDatabase", 1_i32).as_ref())?;
    Ok(())
}

/// The run that the first worker has opened; one that began too long ago was never closed, and is over.
fn opened_run(control: &mut Connection) -> Result<Option<i64>, BenchError> {
    let command = DocumentBuf::new()
        .with("find", COLLECTION)
        .with("filter", &DocumentBuf::new().with("_id", "run"))
        .with("limit", 1_i32);
    let reply = control.run_command(DATABASE, command.as_ref())?;
    let found = at(reply.as_ref(), &["cursor", "firstBatch"]).and_then(ValueRef::as_array);
    let Some(found) = found.and_then(|batch| batch.get(0)?.as_document()) else { return Ok(None) };
    let now = server_time(control)?;
    let is_fresh = matches!(found.get("at"), Some(ValueRef::DateTime(at)) if now - at < PATIENCE.as_millis() as i64);
    Ok(integer(found.get("run")).filter(|_| is_fresh))
}

/// The server's clock, in milliseconds since 1970.
pub(super) fn server_time(control: &mut Connection) -> Result<i64, BenchError> {
    let reply = control.run_command("admin", DocumentBuf::new().with("hello", 1_i32).as_ref())?;
    match reply.as_ref().get("localTime") {
        Some(ValueRef::DateTime(time)) => Ok(time),
        _ => Err(BenchError::Workers("the server does not tell its time (hello.localTime)".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read() {
        assert_eq!("3/4".parse(), Ok(WorkerPosition { index: 3, count: 4 }));
        for wrong in ["4/4", "0/0", "1", "a/b", "-1/2", "0/10001"] {
            assert!(wrong.parse::<WorkerPosition>().is_err(), "{wrong}");
        }
    }
}
