//! `$listLocalSessions` and `$listSessions`: the sessions that the server knows. No other server could know more, so
//! both show all of them.

use super::{Source, SourceStage, check_known};
use crate::context::StageClient;
use crate::session_collections::describe_session;
use bunko_access::{Action, Name};
use bunko_authority::Asker;
use bunko_authority::privileges::has_on;
use bunko_authority::privileges::pipelines::{PipelinePlace, StagePrivileges};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::{Fields, wrong_type};
use bunko_session::sessions::SessionId;
use bunko_session::sessions::id::Digest;
use std::time::Duration;

pub(super) const LOCAL: SourceStage = SourceStage {
    facts: &bunko_stages::LIST_LOCAL_SESSIONS,
    privileges: StagePrivileges::By(may_begin),
    source: Source::Client(local),
};

pub(super) const ALL: SourceStage = SourceStage {
    facts: &bunko_stages::LIST_SESSIONS,
    privileges: StagePrivileges::By(may_begin),
    source: Source::Client(of_collection),
};

/// Whether the client may list the sessions that it asks for: sessions of some or all users, or only its own.
fn may_begin(asker: &Asker<'_>, place: &PipelinePlace<'_>) -> bool {
    if has_on(place.options, "allUsers") || place.options.get("users").is_some() {
        asker.on_cluster(Action::ListSessions)
    } else {
        asker.user().is_some()
    }
}

fn local(client: &dyn StageClient, _: &Namespace, specification: ValueRef<'_>) -> Result<Vec<DocumentBuf>> {
    let (options, users) = read(bunko_stages::LIST_LOCAL_SESSIONS.name, specification)?;
    if client.request().argument().as_str().is_some() {
        let message = "$listLocalSessions must be run against the database with {aggregate: 1}, not a collection";
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    }
    Ok(documents(client, options, &users))
}

fn of_collection(
    client: &dyn StageClient,
    namespace: &Namespace,
    specification: ValueRef<'_>,
) -> Result<Vec<DocumentBuf>> {
    let (options, users) = read(bunko_stages::LIST_SESSIONS.name, specification)?;
    if namespace.as_str() != "config.system.sessions" {
        let message = "$listSessions may only be run against config.system.sessions";
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    }
    Ok(documents(client, options, &users))
}

/// The options, and the users whose sessions are requested, if any. MongoDB parses them before it checks the stage's
/// namespace.
fn read<'s>(stage: &'static str, specification: ValueRef<'s>) -> Result<(DocumentRef<'s>, Vec<Digest>)> {
    let options = specification.as_document().ok_or_else(|| wrong_type(stage, specification, "object"))?;
    Ok((options, named_users(stage, options)?))
}

fn documents(client: &dyn StageClient, options: DocumentRef<'_>, users: &[Digest]) -> Vec<DocumentBuf> {
    let surroundings = client.surroundings();
    let describe = |(session, last_use): (SessionId, Duration)| {
        describe_session(&session.to_document(), surroundings.started_at_ms, last_use)
    };
    let shows_all = client.asker().is_none() || has_on(options, "allUsers");
    let own = client.session_user();
    let is_shown = |session: SessionId| match users {
        [] => shows_all || session.user == own,
        users => users.contains(&session.user),
    };
    surroundings.sessions.all().into_iter().filter(|(session, _)| is_shown(*session)).map(describe).collect()
}

fn named_users(stage: &'static str, options: DocumentRef<'_>) -> Result<Vec<Digest>> {
    check_known(stage, options, &["users", "allUsers"])?;
    let fields = Fields::new(stage, options);
    let wants_all = match fields.field("allUsers") {
        None => false,
        Some(ValueRef::Boolean(all)) => all,
        Some(other) => return Err(fields.mismatch("allUsers", other, "type 'bool'")),
    };
    let mut named = Vec::new();
    if let Some(users) = fields.array("users")? {
        for (index, user) in users.iter().enumerate().filter(|(_, user)| !user.is_nullish()) {
            let place = format!("{stage}.users.{index}");
            let user = user.as_document().ok_or_else(|| wrong_type(&place, user, "object"))?;
            named.push(user_of(&place, user)?.digest());
        }
    }
    if wants_all && !named.is_empty() {
        let message = format!("{stage} may not specify {{allUsers:true}} and {{users:[...]}} at the same time");
        return Err(Failure::new(ErrorCode::UNSUPPORTED_FORMAT, message));
    }
    Ok(named)
}

fn user_of(place: &str, user: DocumentRef<'_>) -> Result<Name> {
    check_known(place, user, &["user", "db"])?;
    let part = |name: &str| match user.get(name).filter(|value| !value.is_nullish()) {
        Some(ValueRef::String(part)) => Ok(part),
        Some(other) => Err(wrong_type(&format!("{place}.{name}"), other, "string")),
        None => Err(Failure::missing_field(format_args!("{place}.{name}"))),
    };
    Ok(Name::new(part("user")?, part("db")?))
}
