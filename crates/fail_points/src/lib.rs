//! Failpoints, for tests of clients: `configureFailPoint`, on a server with test commands enabled.
//!
//! Each command reads one atomic flag that says whether any failpoint is on. While none is, that is the only cost.
//!
//! While any is on, the caller runs every command on a thread of its own: a command that refused its first thread would
//! meet each failpoint twice. A failpoint closes the connection by `Halt::ClosesConnection`.
//! Source: MongoDB's specification of failpoints for drivers' tests, "The failCommand Fail Point".
#![forbid(unsafe_code)]

mod mode;
mod trouble;

pub use mode::Mode;
pub use trouble::{InjectedError, RunningCommand, StatementTrouble, Trouble};

use bunko_aggregate::Rewrites;
use bunko_bson::DocumentRef;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_session::Halt;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The failpoints that have an effect here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailPoint {
    /// A command fails before it begins, or has its reply changed.
    Command,
    /// A `getMore` fails once it has its cursor, which is closed.
    GetMore,
    /// Commands with a time limit run out of time.
    TimeLimit,
    /// A statement of a retryable write fails, or its connection is closed before the reply.
    RetryableWrite,
    /// Pipelines run without rewrites, or without those that `rules` names.
    NoRewrites,
}

/// Names, and the fields that their `data` may have.
const POINTS: [(FailPoint, &str, &[&str]); 5] = [
    (FailPoint::Command, "failCommand", &trouble::FIELDS),
    (FailPoint::GetMore, "failGetMoreAfterCursorCheckout", &["errorCode", "closeConnection"]),
    (FailPoint::TimeLimit, "maxTimeAlwaysTimeOut", &[]),
    (FailPoint::RetryableWrite, "onPrimaryTransactionalWrite", &["closeConnection", "failBeforeCommitExceptionCode"]),
    (FailPoint::NoRewrites, "disablePipelineOptimization", &["rules"]),
];

impl FailPoint {
    /// The failpoint of that name.
    /// # Errors
    /// `FailPointSetFailed` if there is none.
    pub fn named(name: &str) -> Result<Self> {
        let found = POINTS.iter().find(|(_, own, _)| *own == name);
        found.map(|(point, ..)| *point).ok_or_else(|| {
            let message = format!("failpoint '{name}' not found, or not supported yet");
            Failure::new(ErrorCode::FAIL_POINT_SET_FAILED, message)
        })
    }

    /// Parses the `data` of a failpoint that is switched on.
    /// # Errors
    /// Errors of the fields, whose messages name `command`.
    pub fn trouble(self, command: &'static str, data: DocumentRef<'_>) -> Result<Trouble> {
        let (_, name, fields) = POINTS[self as usize];
        Trouble::parse((command, name), fields, data)
    }
}

/// The state of one failpoint.
#[derive(Debug, Default)]
struct Slot {
    mode: Mode,
    trouble: Trouble,
    /// How often it has fired since it was last configured.
    fired: u64,
}

impl Slot {
    fn fires(&mut self, random: &dyn Fn() -> u64) -> bool {
        let fires = self.mode.fires(random);
        self.fired += u64::from(fires);
        fires
    }
}

/// All failpoints of a server.
pub struct FailPoints {
    are_allowed: bool,
    is_any_on: AtomicBool,
    slots: Mutex<[Slot; POINTS.len()]>,
    /// Random bits, for failpoints that fire with a probability.
    random: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl FailPoints {
    /// Failpoints that are off, and that clients may not configure.
    pub fn new(random: Arc<dyn Fn() -> u64 + Send + Sync>) -> Self {
        Self { are_allowed: false, is_any_on: AtomicBool::new(false), slots: Mutex::default(), random }
    }

    /// Lets clients configure failpoints from now on.
    pub fn allow(&mut self) {
        self.are_allowed = true;
    }

    /// Whether clients may configure failpoints, because the server has test commands enabled.
    pub fn are_allowed(&self) -> bool {
        self.are_allowed
    }

    /// Whether any failpoint is on.
    pub fn is_any_on(&self) -> bool {
        self.is_any_on.load(Ordering::Relaxed)
    }

    /// Switches a failpoint on or off. Returns how often it had fired since it was last configured.
    pub fn configure(&self, point: FailPoint, mode: Mode, trouble: Trouble) -> u64 {
        let mut slots = self.slots.lock();
        let before = std::mem::replace(&mut slots[point as usize], Slot { mode, trouble, fired: 0 });
        self.note_whether_any_is_on(&*slots);
        before.fired
    }

    fn note_whether_any_is_on(&self, slots: &[Slot]) {
        self.is_any_on.store(slots.iter().any(|slot| slot.mode != Mode::Off), Ordering::Relaxed);
    }

    /// Applies failpoints to a command that begins. Returns the error to add to its reply.
    /// # Errors
    /// The injected error; [`Halt::ClosesConnection`].
    pub fn meet_command(&self, command: &RunningCommand<'_>) -> Result<Option<InjectedError>, Halt> {
        self.meet_time_limit(command)?;
        {
            let slots = self.slots.lock();
            let Slot { mode, trouble, .. } = &slots[FailPoint::Command as usize];
            if *mode == Mode::Off || !trouble.concerns(command) {
                return Ok(None);
            }
        }
        self.take(FailPoint::Command).map_or(Ok(None), |trouble| trouble.befall(command))
    }

    /// # Errors
    /// `MaxTimeMSExpired` for a command with a time limit, if the failpoint is on.
    fn meet_time_limit(&self, command: &RunningCommand<'_>) -> Result<()> {
        if command.has_time_limit && self.take(FailPoint::TimeLimit).is_some() {
            return Err(Failure::new(ErrorCode::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"));
        }
        Ok(())
    }

    /// Applies failpoints to a `getMore` that has taken its cursor. Returns the error to add to its reply.
    /// # Errors
    /// As [`Self::meet_command`].
    pub fn meet_get_more(&self, command: &RunningCommand<'_>) -> Result<Option<InjectedError>, Halt> {
        self.meet_time_limit(command)?;
        self.take(FailPoint::GetMore).map_or(Ok(None), |trouble| trouble.befall(command))
    }

    /// The effect on a statement of a retryable write. Called once for each statement, before it is done.
    pub fn meet_statement(&self) -> Option<StatementTrouble> {
        if self.is_any_on() { self.take(FailPoint::RetryableWrite).map(Trouble::of_statement) } else { None }
    }

    /// How a pipeline that begins is rewritten: not at all, or without the rules that the failpoint names.
    pub fn rewrites(&self) -> Rewrites {
        let trouble = if self.is_any_on() { self.take(FailPoint::NoRewrites) } else { None };
        trouble.map_or(Rewrites::Applied, |trouble| trouble.rewrites())
    }

    /// The trouble of a failpoint, if it fires now.
    fn take(&self, point: FailPoint) -> Option<Trouble> {
        let mut slots = self.slots.lock();
        let slot = &mut slots[point as usize];
        let trouble = slot.fires(&*self.random).then(|| slot.trouble.clone());
        self.note_whether_any_is_on(&*slots);
        trouble
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_stands_at_its_number() {
        for (index, (point, name, _)) in POINTS.iter().enumerate() {
            assert_eq!((*point as usize, FailPoint::named(name).expect("known")), (index, *point));
        }
        let unknown = FailPoint::named("failAll").expect_err("unknown");
        assert_eq!(unknown.code(), ErrorCode::FAIL_POINT_SET_FAILED);
    }
}
