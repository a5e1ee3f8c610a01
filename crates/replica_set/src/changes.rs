//! Changes of the members of a set: which ones a configuration may make.
//! Source: MongoDB manual 8.2, `replSetReconfig`.

use crate::asked_members::default_settings;
use crate::checks::invalid;
use crate::configuration::{self, Member, replaced};
use crate::listed::NEWLY_ADDED;
use crate::{Force, Listed};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef, number, order};
use bunko_errors::{ErrorCode, Failure, Result};

/// Maximum number of voters that one change may add or remove.
const CHANGED_VOTERS_MAX: usize = 1;

/// Checks a complete configuration beside the current one.
/// # Errors
/// `NewReplicaSetConfigurationIncompatible` for members that turn from data members to arbiters or back, for a host with
/// another `_id`, and, without `force`, for more than one voter that comes or goes; `NodeNotFound` if this member is missing;
/// `NodeNotElectable` if it could not stay primary; `CommandNotSupported` for a member with another host.
pub(crate) fn check_change(name: &str, current: &Member, proposed: DocumentRef<'_>, force: Force) -> Result<()> {
    let next = Listed::all(proposed).map_err(invalid)?;
    let incompatible =
        |message: String| Err(Failure::new(ErrorCode::NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE, message));
    for member in &next {
        if let Some(had) = current.listed.iter().find(|had| had.host == member.host && had.id != member.id) {
            return incompatible(format!(
                "New and old configurations both have members with host of {} but in the new configuration the _id field is \
                 {} and in the old configuration it is {} for replica set {name}",
                member.host, member.id, had.id
            ));
        }
        let Some(had) = current.listed.iter().find(|had| had.id == member.id) else { continue };
        if had.host != member.host {
            let change = "replSetReconfig that changes the host of a member: remove it, and add it under its new host";
            return Err(Failure::not_supported_yet(change));
        }
        if had.arbiter != member.arbiter {
            return incompatible(format!(
                "New and old configurations differ in the setting of the arbiterOnly field for member {}; to make this \
                 change, remove then re-add the member",
                member.host
            ));
        }
    }
    let stamp = format!("{{version: {}, term: {}}}", version_of(proposed), current.term());
    let own = current.own().and_then(|own| next.iter().find(|member| member.id == own.id));
    let Some(own) = own else {
        let message =
            format!("No host described in new configuration with {stamp} for replica set {name} maps to this node");
        return Err(Failure::new(ErrorCode::NODE_NOT_FOUND, message));
    };
    if force == Force::Yes {
        return Ok(());
    }
    if own.priority == 0.0 {
        let message = format!(
            "This node, {}, with _id {} is not electable under the new configuration with {stamp} for replica set {name}",
            own.host, own.id
        );
        return Err(Failure::new(ErrorCode::NODE_NOT_ELECTABLE, message));
    }
    let (added, removed) = (voters_beside(&next, &current.listed), voters_beside(&current.listed, &next));
    if added + removed > CHANGED_VOTERS_MAX {
        return incompatible(format!(
            "Non force replica set reconfig can only add or remove at most 1 voting member: this one adds {added} and \
             removes {removed}"
        ));
    }
    Ok(())
}

/// How many voters of `members` do not vote in `others`.
fn voters_beside(members: &[Listed], others: &[Listed]) -> usize {
    let votes = |id: u32| others.iter().any(|other| other.id == id && other.is_to_vote());
    members.iter().filter(|member| member.is_to_vote() && !votes(member.id)).count()
}

/// The configuration with the field `newlyAdded` in each data member that is to vote and has no vote yet: it is new, or was
/// so before.
pub(crate) fn with_newly_added(current: &Member, proposed: DocumentRef<'_>) -> DocumentBuf {
    let is_new = |listed: &Listed| {
        let had = current.listed.iter().find(|had| had.id == listed.id);
        listed.votes && !listed.arbiter && had.is_none_or(|had| had.newly_added)
    };
    let listed = Listed::all(proposed).unwrap_or_default();
    let new: Vec<u32> = listed.iter().filter(|listed| is_new(listed)).map(|listed| listed.id).collect();
    with_members(proposed, |id, member| {
        let member = member.to_owned();
        if new.contains(&id) { member.with(NEWLY_ADDED, true) } else { member }
    })
}

/// The configuration with a vote for a member that has none yet.
pub fn with_vote(configuration: DocumentRef<'_>, member: u32) -> DocumentBuf {
    with_members(configuration, |id, entry| if id == member { shown_member(entry) } else { entry.to_owned() })
}

/// The configuration as clients see it.
pub fn shown(configuration: DocumentRef<'_>) -> DocumentBuf {
    with_members(configuration, |_, member| shown_member(member))
}

fn shown_member(member: DocumentRef<'_>) -> DocumentBuf {
    let mut shown = DocumentBuf::new();
    member.iter().filter(|field| field.name != NEWLY_ADDED).for_each(|field| {
        shown.append(field.name, field.value);
    });
    shown
}

/// The configuration with its members changed, each of which has an `_id`.
fn with_members(configuration: DocumentRef<'_>, change: impl Fn(u32, DocumentRef<'_>) -> DocumentBuf) -> DocumentBuf {
    let members = configuration.get("members").and_then(ValueRef::as_array).into_iter().flat_map(ArrayRef::iter);
    let id = |member: DocumentRef<'_>| {
        member.get("_id").and_then(number::as_i64_exact).and_then(|id| u32::try_from(id).ok())
    };
    let members =
        members.filter_map(ValueRef::as_document).map(|member| change(id(member).unwrap_or(u32::MAX), member));
    let members: ArrayBuf = members.collect::<Vec<_>>().iter().collect();
    replaced(configuration, &[("members", ValueRef::Array(members.as_ref()))])
}

fn version_of(configuration: DocumentRef<'_>) -> i64 {
    configuration.get("version").and_then(number::as_i64_exact).unwrap_or(1)
}

/// The first configuration of several members, whose election timeout and heartbeats are those of such a set where the client
/// has left the ones of the set of one, to which they were of no use.
pub(crate) fn with_periods_of_several(current: &Member, proposed: DocumentBuf) -> DocumentBuf {
    fn settings(configuration: &DocumentBuf) -> DocumentRef<'_> {
        configuration.as_ref().get("settings").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY)
    }
    let (before, asked) = (settings(&current.configuration), settings(&proposed));
    let usual = configuration::make("", "", 1, configuration::set_id(proposed.as_ref()));
    let names = ["electionTimeoutMillis", "heartbeatIntervalMillis"];
    let is_usual = |name: &&str| match (before.get(name), asked.get(name), settings(&usual).get(name)) {
        (Some(before), Some(asked), Some(usual)) => order::equal(before, asked) && order::equal(asked, usual),
        _ => false,
    };
    if !names.iter().all(is_usual) {
        return proposed;
    }
    let several = default_settings(asked);
    replaced(proposed.as_ref(), &[("settings", ValueRef::Document(several.as_ref()))])
}
