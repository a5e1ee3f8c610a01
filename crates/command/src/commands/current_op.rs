//! `currentOp`: lists the running operations.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_authority::privileges::administration;
use bunko_bson::{DocumentBuf, Writer};
use bunko_errors::Failure;
use bunko_matcher::Filter;
use bunko_pipelines::operation_description::{LargeCommands, describe, describe_idle_sessions};
use bunko_query::parse_filter;
use bunko_request::facts::{ANY_FIELDS, CommandFacts, Databases, Queueing};
use bunko_request::fields::Fields;
use bunko_request::generic_fields::is_generic;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "currentOp",
        fields: ANY_FIELDS,
        databases: Databases::Admin,
        queueing: Queueing::AtOnce,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(administration::current_op),
    run,
    ..Command::PLAIN
};

/// Whether idle connections are listed, and whether only the client's own operations are.
fn parse(fields: &Fields<'_>) -> (bool, bool) {
    (fields.truth("$all"), fields.truth("$ownOps"))
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let (with_idle, only_own) = parse(invocation);
    // Without access control each operation counts as the client's own. A client without the privilege to see others'
    // operations gets only its own, even without `$ownOps`: the command may contain that field twice.
    let asker = invocation.asker().filter(|asker| only_own || !asker.on_cluster(Action::InProg));
    let filter = filter(invocation)?;
    reply.begin_array("inprog");
    let mut index = 0;
    let activity = invocation.service.activity();
    for observed in activity.operations.observe() {
        let is_own = asker.as_ref().is_none_or(|asker| observed.user.as_ref().is_some_and(|user| asker.is(user)));
        if observed.opid == 0 && !with_idle || !is_own {
            continue;
        }
        let described = describe(activity, &observed, LargeCommands::Fields);
        if filter.try_matches(described.as_ref())? {
            reply.push(index, &described);
            index += 1;
        }
    }
    // Idle sessions are listed even without `$all`, as in MongoDB, because they hold resources. They do not show their
    // users, so a client that sees only its own operations gets none of them.
    let idle = if asker.is_none() { describe_idle_sessions(activity) } else { Vec::new() };
    for described in idle {
        if filter.try_matches(described.as_ref())? {
            reply.push(index, &described);
            index += 1;
        }
    }
    reply.end();
    if invocation.service.write_lock.is_closed() {
        reply
            .append("fsyncLock", true)
            .append("info", "use db.fsyncUnlock() to terminate the fsync write/snapshot lock");
    }
    Ok(())
}

/// The condition on operations: all fields that are not options. `$truncateOps` is an option for tests and is ignored.
fn filter(invocation: &Invocation<'_>) -> Result<Filter, Failure> {
    let mut conditions = DocumentBuf::new();
    for element in invocation.request.body.iter().skip(1) {
        if !matches!(element.name, "$all" | "$ownOps" | "$truncateOps") && !is_generic(element.name) {
            conditions.append(element.name, element.value);
        }
    }
    parse_filter(conditions.as_ref(), &invocation.scope())
}
