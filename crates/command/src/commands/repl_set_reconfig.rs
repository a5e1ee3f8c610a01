//! `replSetReconfig`: changes the members and the settings of the set.
//!
//! In a set of one member, this server changes its own name, or begins a set of several. In a set of several, the
//! primary proposes the change to the others; with `force`, any member that has data does.

use super::repl_set_get_status::no_set;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_access::Action;
use bunko_bson::{DocumentRef, Writer};
use bunko_errors::Failure;
use bunko_members::Members;
use bunko_replica_set::{COLLECTION, DATABASE, Force, ReplicaSet};
use bunko_request::facts::{Changes, CommandFacts, Databases};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;
use std::time::Duration;

/// How long a change that makes a set of several of a set of one waits for the first primary.
const ELECTION_TIME: Duration = Duration::from_secs(10);
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "replSetReconfig",
        fields: &[field("force", Kind::Own), field("newlyAdded", Kind::Own)],
        changes: Changes::Output(needs_primary),
        databases: Databases::Admin,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::ReplSetConfigure),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let service = invocation.service;
    let set = service.replica_set.as_ref().ok_or_else(no_set)?;
    let force = parse(invocation)?;
    let asked = invocation.argument().as_document();
    let asked = asked.ok_or_else(|| Failure::bad_value("no configuration specified"))?;
    // Host names may have to be resolved.
    invocation.operation().leave_shared_thread()?;
    if let Some(members) = service.members() {
        return change_several(invocation, members, set, asked, force);
    }
    if set.grows(asked)? {
        set.grow(asked, force, |initiation| service.grow(initiation, force))?;
        return Ok(wait_for_election(invocation, set)?);
    }
    set.reconfigure(asked, force, &*service.process.is_this_machine, |configuration| {
        if force == Force::No {
            service.check_default_mode(configuration)?;
        }
        stored_settings::keep(invocation, DATABASE, COLLECTION, configuration)
    })
}

/// Only a primary takes a change without `force`.
fn needs_primary(body: DocumentRef<'_>) -> bool {
    !body.get("force").is_some_and(bunko_request::fields::truth)
}

fn change_several(
    invocation: &Invocation<'_>,
    members: &Members,
    set: &ReplicaSet,
    asked: DocumentRef<'_>,
    force: Force,
) -> Result<(), Halt> {
    let (service, current) = (invocation.service, set.member());
    let proposed = set.proposed(asked, force)?;
    service.check_change(members, set, &proposed, force)?;
    let check = || invocation.operation().check();
    let (force, how) = match force {
        Force::Yes => (bunko_members::Force::Yes, "forced"),
        Force::No => (bunko_members::Force::No, "safe"),
    };
    if force == bunko_members::Force::Yes {
        tracing::warn!(target: "REPL", id = 344, ctx = "ReplCoord", "A change of the set's configuration is forced: writes that a majority of the former members has may be rolled back");
    }
    members.propose(&current.configuration, &proposed, force, &check)?;
    tracing::info!(target: "REPL", id = 345, ctx = "ReplCoord", how, version = set.member().version(), "The set has a new configuration");
    Ok(())
}

/// Waits until the members of a new set have elected this one, or until another one is elected.
fn wait_for_election(invocation: &Invocation<'_>, set: &ReplicaSet) -> Result<(), Failure> {
    let until = invocation.now() + ELECTION_TIME;
    while set.primary().is_none() && invocation.now() < until {
        invocation.operation().check()?;
        std::thread::sleep(LOOK_INTERVAL);
    }
    Ok(())
}

fn parse(fields: &Fields<'_>) -> Result<Force, Failure> {
    Ok(if fields.boolean("force", false)? { Force::Yes } else { Force::No })
}
