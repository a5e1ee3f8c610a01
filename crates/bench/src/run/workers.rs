//! Several generators that share a load.
//!
//! The generators communicate only through the measured server: each records its arrival, and waits until all have
//! arrived. The wait ends before a phase begins, so that its polling disturbs no figures.

use crate::BenchError;
use crate::clock;
use crate::server::integer;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_client::Connection;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A separate database: the scenario's own is made and dropped by the first worker.
const DATABASE: &str = "bunko_bench_workers";
const COLLECTION: &str = "arrivals";
const POLL: Duration = Duration::from_millis(100);
/// Longest wait for other workers. They are started at different times, and may have to download their images first.
const PATIENCE: Duration = Duration::from_mins(10);

/// Position of a generator among several: `INDEX/COUNT`, the index from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerPosition {
    /// Counted from 0.
    pub index: u32,
    /// Number of generators.
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

/// A meeting place of workers.
pub(super) struct Rendezvous {
    position: WorkerPosition,
    /// Identifies the run, so that arrivals of an earlier one do not count.
    run: Option<i64>,
    /// A random number of this worker. The first worker lists the tickets of all workers that have arrived in its run.
    /// An earlier run does not list this one, so the worker does not stay in it.
    ticket: i64,
    meetings: u32,
}

impl Rendezvous {
    /// Begins to use the meeting place. The first worker removes data of earlier runs and opens a new run.
    pub fn open(control: &mut Connection, position: WorkerPosition) -> Result<Self, BenchError> {
        let ticket = rand::random::<i64>();
        if position.index > 0 {
            return Ok(Self { position, run: None, ticket, meetings: 0 });
        }
        drop_database(control)?;
        let run = ticket;
        let document = DocumentBuf::new().with("_id", "run").with("run", run);
        let insert = DocumentBuf::new().with("insert", COLLECTION);
        let insert = insert.with("documents", &[&document].into_iter().collect::<ArrayBuf>());
        control.run_command(DATABASE, insert.as_ref())?;
        Ok(Self { position, run: Some(run), ticket, meetings: 0 })
    }

    /// Waits until every worker has arrived at the meeting of this number.
    /// # Errors
    /// Some workers are late, or the user has stopped the run.
    pub fn meet(&mut self, control: &mut Connection, stop: &AtomicBool) -> Result<(), BenchError> {
        self.sum(control, stop, 0).map(|_| ())
    }

    /// As [`Self::meet`]; returns the sum of all workers' numbers.
    pub fn sum(&mut self, control: &mut Connection, stop: &AtomicBool, mine: u64) -> Result<u64, BenchError> {
        self.meetings += 1;
        let deadline = clock::now() + PATIENCE;
        let mut arrived = 0;
        loop {
            let is_welcome = self.find_run(control)?;
            if let Some(run) = self.run {
                let there = self.arrive(control, run, mine)?;
                arrived = there.len() as u32;
                if arrived >= self.position.count && self.position.index == 0 && self.meetings == 1 {
                    welcome(control, &there)?;
                }
                if arrived >= self.position.count && is_welcome {
                    return Ok(there.iter().map(|worker| worker.brought).sum());
                }
            }
            if stop.load(Ordering::Relaxed) {
                return Err(BenchError::Workers("stopped while waiting for the others".into()));
            }
            if clock::now() > deadline {
                let (count, seconds) = (self.position.count, PATIENCE.as_secs());
                return Err(BenchError::Workers(format!("{arrived} of {count} arrived within {seconds} s")));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Looks up the open run. Returns whether the first worker has listed this worker's ticket in it.
    fn find_run(&mut self, control: &mut Connection) -> Result<bool, BenchError> {
        if self.position.index == 0 || self.meetings > 1 {
            return Ok(true);
        }
        let question = DocumentBuf::new()
            .with("find", COLLECTION)
            .with("filter", &DocumentBuf::new().with("_id", "run"))
            .with("limit", 1_i32);
        let Some(run) = control.find_all(DATABASE, question.as_ref())?.next().transpose()? else { return Ok(false) };
        self.run = integer(run.as_ref().get("run"));
        let welcome = run.as_ref().get("welcome").and_then(ValueRef::as_array);
        Ok(welcome.is_some_and(|tickets| tickets.iter().any(|ticket| integer(Some(ticket)) == Some(self.ticket))))
    }

    /// Records this worker's arrival; returns all workers that have arrived.
    fn arrive(&self, control: &mut Connection, run: i64, mine: u64) -> Result<Vec<Arrival>, BenchError> {
        // Each meeting has its own field, because a worker may already have gone on to the next one.
        let brought = format!("brought{}", self.meetings);
        let set = DocumentBuf::new().with("run", run).with("ticket", self.ticket).with(&brought, mine as i64);
        // `$max`, so that the number never falls: a worker that already looks for the next run starts its count of
        // meetings anew, and other workers still wait for it at this run's last meeting.
        let at_least = DocumentBuf::new().with("meeting", self.meetings as i32);
        let arrival = DocumentBuf::new()
            .with("q", &DocumentBuf::new().with("_id", format!("{run}/{}", self.position.index).as_str()))
            .with("u", &DocumentBuf::new().with("$set", &set).with("$max", &at_least))
            .with("upsert", true);
        let update = DocumentBuf::new().with("update", COLLECTION);
        let update = update.with("updates", &[&arrival].into_iter().collect::<ArrayBuf>());
        control.run_command(DATABASE, update.as_ref())?;
        let there = DocumentBuf::new().with("$gte", self.meetings as i32);
        let filter = DocumentBuf::new().with("run", run).with("meeting", &there);
        let question = DocumentBuf::new().with("find", COLLECTION).with("filter", &filter);
        let mut all = Vec::new();
        for worker in control.find_all(DATABASE, question.as_ref())? {
            let worker = worker?;
            let number = |name: &str| integer(worker.as_ref().get(name)).unwrap_or(0);
            all.push(Arrival { ticket: number("ticket"), brought: number(&brought).try_into().unwrap_or(0) });
        }
        Ok(all)
    }

    /// The last meeting. When all others have seen that all workers arrived, the first worker removes the meeting
    /// place.
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

/// A worker that has arrived at a meeting.
struct Arrival {
    ticket: i64,
    brought: u64,
}

/// Lists the tickets of these workers, so that they know their run.
fn welcome(control: &mut Connection, there: &[Arrival]) -> Result<(), BenchError> {
    let tickets: ArrayBuf = there.iter().map(|worker| worker.ticket).collect();
    let change = DocumentBuf::new()
        .with("q", &DocumentBuf::new().with("_id", "run"))
        .with("u", &DocumentBuf::new().with("$set", &DocumentBuf::new().with("welcome", &tickets)));
    let update = DocumentBuf::new().with("update", COLLECTION);
    let update = update.with("updates", &[&change].into_iter().collect::<ArrayBuf>());
    control.run_command(DATABASE, update.as_ref())?;
    Ok(())
}

/// Asks for the server's clock, in milliseconds since 1970.
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
