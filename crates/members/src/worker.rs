//! The thread `member`: carries out the actions that change the store or its files, in their order.

use crate::core::Core;
use crate::kept::{REPLACED, host_of};
use crate::requests::Asked;
use crate::tasks::Task;
use bunko_bson::DocumentBuf;
use bunko_catalog::Truncated;
use bunko_errors::Failure;
use bunko_replica::{Configuration, Event, Force, Memory, Position, Refusal, Term, Vote};
use bunko_replica_set::Seen;
use bunko_store::{Lsn, StorageError};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a member that becomes primary applies its log before it looks for other actions.
const SLICE: Duration = Duration::from_millis(50);

/// The pause before an action that failed is tried again. Other actions are carried out meanwhile.
const PAUSE: Duration = Duration::from_millis(500);

/// Carries out actions until the member ends. The work of the thread `member`.
pub(crate) fn run(core: &Arc<Core>) {
    // The last vote, if it could not be saved.
    let mut unsaved: Option<Vote> = None;
    while let Some(task) = core.tasks.next(&core.clock) {
        // A primary's log with a term that is lost in a crash would look like the log of an earlier term's primary.
        if matches!(task, Task::Append(..) | Task::Truncate(_)) {
            unsaved = unsaved.and_then(|vote| save_vote_again(core, vote));
        }
        match task {
            Task::SaveVote(vote) => unsaved = save_vote(core, vote),
            Task::Keep(configuration, document) => keep(core, configuration, document),
            Task::BecomePrimary(term) => become_primary(core, term),
            Task::StepDown => {
                step_down(core);
                core.note_role();
            }
            Task::Remember => remember(core),
            // The primary sends them again.
            Task::Append(..) if unsaved.is_some() => {}
            Task::Append(after, bytes) => append(core, after, &bytes),
            Task::Truncate(_) if unsaved.is_some() => core.tasks.put_later(core.clock.now() + PAUSE, task),
            Task::Truncate(position) => truncate(core, position),
        }
    }
}

/// Saves a vote. Returns it if that fails.
fn save_vote(core: &Core, vote: Vote) -> Option<Vote> {
    match core.store.save_vote(vote) {
        Ok(()) => {
            core.step(Event::VoteSaved(vote), None);
            None
        }
        // The member takes no part in this term's election, and follows no primary before the vote is saved.
        Err(error) => {
            tracing::error!(target: "REPL", id = 304, ctx = "member", term = vote.term, error = %error, "The vote cannot be saved");
            Some(vote)
        }
    }
}

/// Saves a vote whose failure has been reported. Returns it if that fails again.
fn save_vote_again(core: &Core, vote: Vote) -> Option<Vote> {
    if core.store.save_vote(vote).is_err() {
        return Some(vote);
    }
    core.step(Event::VoteSaved(vote), None);
    None
}

fn keep(core: &Arc<Core>, configuration: Arc<Configuration>, document: DocumentBuf) {
    // Another member may have sent a newer configuration meanwhile, which ends a proposal of this member.
    if !core.is_keeping(configuration.stamp()) {
        core.requests.answer(Asked::Configuration, Err(Refusal::ConfigurationPending));
        return;
    }
    // The set may have given this member's id to another server since it removed this one.
    let is_replaced = host_of(document.as_ref(), core.id).is_some_and(|host| host != core.own_host);
    let id = if is_replaced { REPLACED } else { core.id };
    let mut kept = core.kept.lock();
    // The file has another member, which this server is after the restart that has been asked for.
    if kept.id != core.id || kept.host != core.own_host {
        return;
    }
    let mut next = kept.clone().with_configuration(id, document.clone(), configuration.base);
    next.invited.retain(|invited| configuration.member(*invited).is_some());
    next.offered.retain(|(offered, _)| configuration.member(*offered).is_some());
    next.invited.extend(core.added(&configuration));
    let written = next.write(&core.directory);
    if written.is_ok() {
        *kept = next;
    }
    drop(kept);
    if let Err(error) = written {
        if !core.retries.swap(true, Ordering::Relaxed) {
            tracing::error!(target: "REPL", id = 305, ctx = "member", version = configuration.version, error = %error, "The set's configuration cannot be saved, and the member will try again");
        }
        core.tasks.put_later(core.clock.now() + PAUSE, Task::Keep(configuration, document));
        // A primary commits nothing before it has kept the configuration of its term, so another member must lead. A
        // member that follows refuses this.
        lead_no_more(core);
        return;
    }
    core.retries.store(false, Ordering::Relaxed);
    core.strangers.lock().retain(|(stranger, _)| configuration.member(*stranger).is_some());
    if is_replaced {
        tracing::warn!(target: "REPL", id = 341, ctx = "member", "The set has removed this member, and gave its id to another server: it starts again, and belongs to no set until it is added");
        return core.host.upgrade().map_or((), |host| host.restart());
    }
    let is_removed = configuration.member(core.id).is_none();
    if is_removed && !core.is_removed() {
        tracing::warn!(target: "REPL", id = 342, ctx = "member", version = configuration.version, "The set has removed this member: it keeps its data, and serves none until it is added again");
    }
    core.set.configure(document.clone(), core.id.0);
    if let Err(error) = core.fit_links(document.as_ref()) {
        tracing::error!(target: "REPL", id = 343, ctx = "member", error, "A member of the new configuration cannot be reached");
    }
    core.note_configuration(configuration.stamp(), document);
    core.requests.answer(Asked::Configuration, Ok(()));
    note_configuration(core);
}

fn remember(core: &Core) {
    let mut kept = core.kept.lock();
    kept.memory = Memory::Kept;
    if let Err(error) = kept.write(&core.directory) {
        // The next start asks the others again.
        tracing::error!(target: "REPL", id = 338, ctx = "member", error = %error, "The note that this member remembers its votes again cannot be saved");
    }
}

/// Writes the configuration to where clients look for it, on the primary.
fn note_configuration(core: &Core) {
    if let Some(host) = core.host.upgrade()
        && core.set.is_primary()
        && let Err(failure) = host.note_configuration()
    {
        tracing::warn!(target: "REPL", id = 306, ctx = "member", error = %failure, "The configuration cannot be written to local.system.replset");
    }
}

fn become_primary(core: &Core, term: Term) {
    if core.is_to_lead(term) {
        match core.begin_change().map(|change| (core.catalog.apply_rest(SLICE), change)) {
            // Votes for other members, and the end of the server, do not wait until all of the log is applied.
            Some((Ok(false), _)) => return core.tasks.put(Task::BecomePrimary(term)),
            Some((Ok(true), _change)) => begin_term(core, term),
            Some((Err(failure), _)) => refuse_term(core, &failure),
            // Clients could not write while the files are held, so another member must lead.
            None => lead_no_more(core),
        }
    }
    core.note_role();
}

fn begin_term(core: &Core, term: Term) {
    let Some(host) = core.host.upgrade() else { return };
    // The record of the term must be known before writes after it are acknowledged; the log's bell may tell it first.
    match host.step_up(term) {
        Ok(()) => {
            core.note_log();
            core.show_again();
            note_configuration(core);
        }
        Err(failure) => refuse_term(core, &failure),
    }
}

/// Lets another member lead.
fn refuse_term(core: &Core, failure: &Failure) {
    tracing::error!(target: "REPL", id = 154, ctx = "member", error = %failure, "The member cannot become primary, and will try again");
    lead_no_more(core);
}

/// Makes the primary step down at once.
fn lead_no_more(core: &Core) {
    core.step(Event::StepDown { to: None, wait_ms: 0, freeze_ms: 0, force: Force::Yes }, None);
}

fn step_down(core: &Core) {
    if let Some(host) = core.host.upgrade() {
        host.step_down();
    }
    core.set.resume_writes();
    core.show_again();
    core.requests.answer(Asked::StepDown, Ok(()));
}

fn append(core: &Core, after: Position, bytes: &[u8]) {
    // The primary sends them again.
    let Some(_change) = core.begin_change() else { return };
    match core.store.append_raw(after, bytes) {
        Ok(position) if position.end > after.end => {
            core.appends_fail.store(false, Ordering::Relaxed);
            let last = Lsn(position.end - 1);
            if core.store.write(last).is_ok() {
                // The log's bell tells of the sync.
                core.store.on_durable(last, Box::new(|_| ()));
            }
            core.note_log();
        }
        // The same bytes have come before.
        Ok(_) | Err(StorageError::Diverged { .. }) => {}
        // Told once: the primary sends them again with each heartbeat.
        Err(_) if core.appends_fail.swap(true, Ordering::Relaxed) => {}
        Err(error) => {
            tracing::error!(target: "REPL", id = 307, ctx = "member", from = after.end, error = %error, "Records of the primary cannot be appended, and are asked for again");
        }
    }
}

fn truncate(core: &Core, position: Position) {
    let Some(_change) = core.begin_change() else {
        return core.tasks.put_later(core.clock.now() + PAUSE, Task::Truncate(position));
    };
    match core.catalog.truncate_log(position) {
        Ok(Truncated::Done) => {
            core.retries.store(false, Ordering::Relaxed);
            core.note_truncation(position.end);
        }
        Ok(Truncated::Reopen) => {
            tracing::warn!(target: "REPL", id = 308, ctx = "member", end = position.end, "Writes of this member that no majority had are rolled back: the server starts again");
            core.set.show(Seen { state: bunko_replica_set::MemberState::Rollback, ..Seen::default() });
            if let Some(host) = core.host.upgrade() {
                host.restart();
            }
        }
        Ok(Truncated::NeedsInitialSync { checkpoint }) => {
            core.need_resync();
            tracing::warn!(target: "REPL", id = 314, ctx = "member", end = position.end, checkpoint = checkpoint.0, "A checkpoint has writes of this member that no majority had: it needs an initial sync");
        }
        Err(failure) => {
            if !core.retries.swap(true, Ordering::Relaxed) {
                tracing::error!(target: "REPL", id = 309, ctx = "member", end = position.end, error = %failure, "Writes of this member that no majority had cannot be rolled back, and the member will try again");
            }
            core.tasks.put_later(core.clock.now() + PAUSE, Task::Truncate(position));
        }
    }
}
