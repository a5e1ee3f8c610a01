//! Failpoints, for tests of clients: `configureFailPoint`, on a server with test commands enabled.
//!
//! Each command reads one atomic flag that says whether any failpoint is on. While none is, that is the only cost.
//!
//! While any is on, every command runs on a thread of its own: a command that refused its first thread would meet each
//! failpoint twice. A failpoint closes the connection by `Halt::ClosesConnection`.
//! Source: MongoDB's specification of failpoints for drivers' tests, "The failCommand Fail Point".

mod mode;
mod trouble;

pub(crate) use mode::Mode;
pub(crate) use trouble::{InjectedError, StatementTrouble, Trouble};

use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::service::World;
use bunko_aggregate::Rewrites;
use bunko_bson::DocumentRef;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::facts::FailPointUse;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The failpoints that have an effect here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailPoint {
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
    pub(crate) fn named(name: &str) -> Result<Self> {
        let found = POINTS.iter().find(|(_, own, _)| *own == name);
        found.map(|(point, ..)| *point).ok_or_else(|| {
            let message = format!("failpoint '{name}' not found, or not supported yet");
            Failure::new(ErrorCode::FAIL_POINT_SET_FAILED, message)
        })
    }

    /// Parses the `data` of a failpoint that is switched on.
    /// # Errors
    /// Errors of [`Trouble::parse`].
    pub(crate) fn trouble(self, data: DocumentRef<'_>) -> Result<Trouble> {
        let (_, name, fields) = POINTS[self as usize];
        Trouble::parse(name, fields, data)
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
#[derive(Debug, Default)]
pub(crate) struct FailPoints {
    are_allowed: bool,
    is_any_on: AtomicBool,
    slots: Mutex<[Slot; POINTS.len()]>,
}

impl FailPoints {
    /// Lets clients configure failpoints from now on.
    pub(crate) fn allow(&mut self) {
        self.are_allowed = true;
    }

    /// Whether clients may configure failpoints, because the server has test commands enabled.
    pub(crate) fn are_allowed(&self) -> bool {
        self.are_allowed
    }

    /// Whether any failpoint is on.
    pub(crate) fn is_any_on(&self) -> bool {
        self.is_any_on.load(Ordering::Relaxed)
    }

    /// Switches a failpoint on or off. Returns how often it had fired since it was last configured.
    pub(crate) fn configure(&self, point: FailPoint, mode: Mode, trouble: Trouble) -> u64 {
        let mut slots = self.slots.lock();
        let before = std::mem::replace(&mut slots[point as usize], Slot { mode, trouble, fired: 0 });
        self.note_whether_any_is_on(&*slots);
        before.fired
    }

    fn note_whether_any_is_on(&self, slots: &[Slot]) {
        self.is_any_on.store(slots.iter().any(|slot| slot.mode != Mode::Off), Ordering::Relaxed);
    }

    /// Applies failpoints to a command that begins.
    /// # Errors
    /// The injected error; [`Halt::TooLong`] on a thread that serves other connections.
    pub(crate) fn meet_command(&self, invocation: &mut Invocation<'_>) -> Result<(), Halt> {
        if invocation.command.fail_point == FailPointUse::Exempt {
            return Ok(());
        }
        // A command that halts as too long on a shared thread would run again on its own thread, and would meet the
        // failpoints twice.
        invocation.refuse_if_long(true)?;
        self.meet_time_limit(invocation, invocation.options.max_time.is_some())?;
        let trouble = {
            let slots = self.slots.lock();
            let Slot { mode, trouble, .. } = &slots[FailPoint::Command as usize];
            if *mode == Mode::Off || !trouble.concerns(invocation) {
                return Ok(());
            }
            drop(slots);
            self.take(FailPoint::Command, &invocation.service.world)
        };
        trouble.map_or(Ok(()), |trouble| trouble.befall(invocation))
    }

    /// # Errors
    /// `MaxTimeMSExpired` for an operation with a time limit, if the failpoint is on.
    fn meet_time_limit(&self, invocation: &Invocation<'_>, has_limit: bool) -> Result<(), Halt> {
        if has_limit && self.take(FailPoint::TimeLimit, &invocation.service.world).is_some() {
            return Err(Failure::new(ErrorCode::MAX_TIME_MS_EXPIRED, "operation exceeded time limit").into());
        }
        Ok(())
    }

    /// Applies failpoints to a `getMore` that has taken its cursor.
    /// # Errors
    /// The injected error.
    pub(crate) fn meet_get_more(&self, invocation: &mut Invocation<'_>, has_limit: bool) -> Result<(), Halt> {
        self.meet_time_limit(invocation, has_limit)?;
        self.take(FailPoint::GetMore, &invocation.service.world).map_or(Ok(()), |trouble| trouble.befall(invocation))
    }

    /// The effect on a statement of a retryable write. Called once for each statement, before it is done.
    pub(crate) fn meet_statement(&self, world: &World) -> Option<StatementTrouble> {
        if self.is_any_on() { self.take(FailPoint::RetryableWrite, world).map(Trouble::of_statement) } else { None }
    }

    /// How a pipeline that begins is rewritten: not at all, or without the rules that the failpoint names.
    pub(crate) fn rewrites(&self, world: &World) -> Rewrites {
        let trouble = if self.is_any_on() { self.take(FailPoint::NoRewrites, world) } else { None };
        trouble.map_or(Rewrites::Applied, |trouble| trouble.rewrites())
    }

    /// The trouble of a failpoint, if it fires now.
    fn take(&self, point: FailPoint, world: &World) -> Option<Trouble> {
        let mut slots = self.slots.lock();
        let slot = &mut slots[point as usize];
        let trouble = slot.fires(&*world.random).then(|| slot.trouble.clone());
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
