//! Requests of administrators: to step down, to stay a secondary, to change the configuration.

use crate::configuration::agreed;
use crate::core::Core;
use crate::installed::Change;
use crate::members::{CHECK_INTERVAL, Members};
use crate::requests::Asked;
use bunko_bson::DocumentBuf;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_replica::{Event, Force, Refusal, Stamp, Term};
use bunko_replica_set::{shown, with_stamp};
use std::cell::Cell;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// How often a change of the configuration that must wait for the last one is tried.
const PENDING_INTERVAL: Duration = Duration::from_millis(20);
/// How long an answer of the agreement may take beyond the time that was asked for.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Fails when the client's operation must end.
pub type Check<'a> = dyn Fn() -> Result<()> + 'a;

impl Members {
    /// Steps down. Waits until a successor has the whole log, as long as `check` succeeds.
    /// # Errors
    /// `NotWritablePrimary`; `ExceededTimeLimit` without a successor, unless `force` is [`Force::Yes`];
    /// `ConflictingOperationInProgress` during another step-down; as `check`, and the member stays primary then.
    pub fn step_down(&self, wait: Duration, freeze: Duration, force: Force, check: &Check<'_>) -> Result<()> {
        let ms = |duration: Duration| duration.as_millis() as u64;
        let event = Event::StepDown { to: None, wait_ms: ms(wait), freeze_ms: ms(freeze), force };
        self.ask(Asked::StepDown, wait, check, |core| core.step(event, None))
    }

    /// Keeps this member from campaigning for a period; zero ends an earlier one.
    pub fn freeze(&self, period: Duration) {
        self.core().step(Event::Freeze { ms: period.as_millis() as u64 }, None);
    }

    /// Proposes a configuration in place of `current`, once a majority stores the present one and enough members have all writes.
    /// Returns once a majority stores it; with `force`, once this member does.
    /// # Errors
    /// As the agreement refuses it; `PrimarySteppedDown` if this member leaves the primary's role before it knows that a majority
    /// stores the configuration; `NewReplicaSetConfigurationIncompatible` if `current` is not in use any more, unless the change is
    /// forced, or if another configuration took the place of a forced one; as `check`, and the configuration may come into use
    /// nevertheless then.
    pub fn propose(
        &self,
        current: &DocumentBuf,
        document: &DocumentBuf,
        force: Force,
        check: &Check<'_>,
    ) -> Result<()> {
        let invalid = |reason| Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, reason);
        let configuration = agreed(document.as_ref(), self.core().configuration().base).map_err(invalid)?;
        let until = self.core().clock.now() + ANSWER_TIME;
        let label = configuration.label;
        let taken = Cell::new(None);
        let (term, stamp) = loop {
            let term = self.term_led();
            if force == Force::No && !is_same(current, &self.core().set.member().configuration) {
                let message = "another change of the set's configuration came first: read the new one, and change that";
                return Err(Failure::new(ErrorCode::NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE, message));
            }
            let (configuration, document) = (configuration.clone(), document.clone());
            let propose = |core: &Core| taken.set(core.propose(configuration, document, force));
            let outcome = self.ask(Asked::Configuration, Duration::ZERO, check, propose);
            // Without a stamp the answer is that to an earlier configuration, which was kept at this moment.
            let pending = || failure(Asked::Configuration, Refusal::ConfigurationPending);
            match outcome.and_then(|()| taken.get().ok_or_else(pending)) {
                Err(failure) if is_passing(&failure) && self.core().clock.now() < until => {
                    check()?;
                    std::thread::sleep(PENDING_INTERVAL);
                }
                Ok(stamp) => break (term, stamp),
                Err(failure) => return Err(failure),
            }
        };
        match force {
            Force::Yes => self.check_in_use(label, stamp, check),
            Force::No => self.wait_for_majority(label, stamp, term, check),
        }
    }

    /// Checks that a forced configuration is in use, and not another one that this member has heard of meanwhile.
    fn check_in_use(&self, label: u64, stamp: Stamp, check: &Check<'_>) -> Result<()> {
        while self.core().is_keeping(stamp) {
            check()?;
            std::thread::sleep(PENDING_INTERVAL);
        }
        if self.core().configuration().label == label {
            return Ok(());
        }
        let message = "another configuration took the place of the forced one: read it, and change that";
        Err(Failure::new(ErrorCode::NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE, message))
    }

    /// Waits until a majority stores a configuration that this primary has proposed.
    fn wait_for_majority(&self, label: u64, stamp: Stamp, term: Term, check: &Check<'_>) -> Result<()> {
        loop {
            match self.core().standing_of_change(label, stamp, term) {
                Change::Installed => return Ok(()),
                Change::Pending => {}
                Change::Left => {
                    let message = "Primary stepped down before a majority of the members was known to store the new \
                                   configuration, which may come into use nevertheless";
                    return Err(Failure::new(ErrorCode::PRIMARY_STEPPED_DOWN, message));
                }
            }
            check()?;
            std::thread::sleep(PENDING_INTERVAL);
        }
    }

    fn ask(&self, asked: Asked, wait: Duration, check: &Check<'_>, event: impl FnOnce(&Core)) -> Result<()> {
        let Some(answer) = self.core().requests.begin(asked) else {
            let message = "another change of the set is in progress";
            return Err(Failure::new(ErrorCode::CONFLICTING_OPERATION_IN_PROGRESS, message));
        };
        let until = self.core().clock.now() + wait + ANSWER_TIME;
        event(self.core());
        loop {
            match answer.recv_timeout(CHECK_INTERVAL) {
                Ok(outcome) => return outcome.map_err(|refusal| failure(asked, refusal)),
                Err(RecvTimeoutError::Timeout) if self.core().clock.now() < until => {}
                Err(_) => break,
            }
            if let Err(failure) = check() {
                self.core().requests.give_up();
                if asked == Asked::StepDown {
                    // This replaces the search for a successor by one that ends now, and lets writes go on.
                    let event = Event::StepDown { to: None, wait_ms: 0, freeze_ms: 0, force: Force::No };
                    self.core().step(event, None);
                }
                return Err(failure);
            }
        }
        self.core().requests.give_up();
        Err(Failure::new(ErrorCode::EXCEEDED_TIME_LIMIT, "the set did not answer in time"))
    }
}

/// Whether two configurations differ in nothing but what the members change by themselves: term, version, and votes of new members.
fn is_same(one: &DocumentBuf, other: &DocumentBuf) -> bool {
    let [one, other] = [one, other].map(|it| with_stamp(shown(it.as_ref()).as_ref(), 0, 0));
    one == other
}

/// Whether a change of the configuration may succeed in a moment.
fn is_passing(failure: &Failure) -> bool {
    let passing = [
        ErrorCode::CONFIGURATION_IN_PROGRESS,
        ErrorCode::CURRENT_CONFIG_NOT_COMMITTED_YET,
        ErrorCode::CONFLICTING_OPERATION_IN_PROGRESS,
    ];
    passing.contains(&failure.code())
}

/// The failure that clients see.
fn failure(asked: Asked, refusal: Refusal) -> Failure {
    let (code, message) = match refusal {
        Refusal::NotPrimary if asked == Asked::Configuration => {
            (ErrorCode::NOT_WRITABLE_PRIMARY, "replSetReconfig without force is for the primary alone".to_owned())
        }
        Refusal::NotPrimary => (ErrorCode::NOT_WRITABLE_PRIMARY, "not primary so can't step down".to_owned()),
        Refusal::NoSuccessor => (
            ErrorCode::EXCEEDED_TIME_LIMIT,
            "No electable secondaries caught up. Please use the replSetStepDown command with the argument {force: true} to \
             force node to step down."
                .to_owned(),
        ),
        Refusal::NotElectable => (ErrorCode::NODE_NOT_ELECTABLE, "this member cannot become primary now".to_owned()),
        Refusal::ConfigurationPending => (
            ErrorCode::CONFIGURATION_IN_PROGRESS,
            "Cannot run replSetReconfig because the current configuration is still being stored, or not yet by a majority of \
             the members"
                .to_owned(),
        ),
        Refusal::NothingCommitted => (
            ErrorCode::CURRENT_CONFIG_NOT_COMMITTED_YET,
            "Cannot run replSetReconfig because no write of the primary's term is committed yet".to_owned(),
        ),
        Refusal::NotCaughtUp => (
            ErrorCode::CURRENT_CONFIG_NOT_COMMITTED_YET,
            "Cannot run replSetReconfig because too few voters of the new configuration have all committed writes. Add a member \
             with {votes: 0, priority: 0} first, and give it its vote once it is a secondary"
                .to_owned(),
        ),
        Refusal::SeveralVoters => (
            ErrorCode::NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE,
            "Non force replica set reconfig can only add or remove at most 1 voting member".to_owned(),
        ),
        Refusal::PrimaryLeaves => (
            ErrorCode::NODE_NOT_ELECTABLE,
            "This node, the primary, is not electable under the new configuration".to_owned(),
        ),
        Refusal::Invalid(_) => {
            (ErrorCode::INVALID_REPLICA_SET_CONFIG, format!("the configuration is refused: {refusal:?}"))
        }
    };
    Failure::new(code, message)
}
