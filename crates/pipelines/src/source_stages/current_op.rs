//! `$currentOp`: the running operations as in `currentOp`, but as documents of a pipeline.

use super::{Source, SourceStage};
use crate::context::StageClient;
use crate::operation_description::{Activity, LargeCommands, describe, describe_idle_sessions, describe_told};
use bunko_access::{Action, Name};
use bunko_authority::Asker;
use bunko_authority::privileges::has_on;
use bunko_authority::privileges::pipelines::{PipelinePlace, StagePrivileges};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::wrong_type;
use bunko_session::cursors::IdleCursor;

pub(super) const STAGE: SourceStage = SourceStage {
    facts: &bunko_stages::CURRENT_OP,
    privileges: StagePrivileges::By(may_begin),
    source: Source::Client(documents),
};

/// Whether the client may see the operations of all users, or asks only for its own.
fn may_begin(asker: &Asker<'_>, place: &PipelinePlace<'_>) -> bool {
    if has_on(place.options, "allUsers") { asker.on_cluster(Action::InProg) } else { asker.user().is_some() }
}

fn documents(client: &dyn StageClient, namespace: &Namespace, specification: ValueRef<'_>) -> Result<Vec<DocumentBuf>> {
    Shown::check_users(specification)?;
    // The namespace of `{aggregate: 1}`. No collection has that name.
    if namespace.as_str() != "admin.$cmd.aggregate" {
        let message = "$currentOp must be run against the 'admin' database with {aggregate: 1}";
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    }
    let shown = Shown::parse(specification)?;
    let asker = client.asker().filter(|_| !shown.all_users);
    let is_own = |user: Option<&Name>| asker.as_ref().is_none_or(|asker| user.is_some_and(|user| asker.is(user)));
    let activity = client.activity();
    let observed = activity.operations.observe();
    let mut documents: Vec<_> = observed
        .iter()
        .filter(|observed| (observed.opid != 0 || shown.idle_connections) && is_own(observed.user.as_ref()))
        .map(|observed| describe(activity, observed, shown.large_commands))
        .collect();
    // Idle sessions do not show their user, so a client that may see only its own sees none.
    if shown.idle_sessions && asker.is_none() {
        documents.extend(describe_idle_sessions(activity));
    }
    if shown.idle_cursors {
        let cursors = activity.cursors.idle(activity.now);
        let own = cursors.iter().filter(|cursor| is_own(cursor.owner.as_ref().map(|owner| &owner.name)));
        documents.extend(own.map(|cursor| describe_cursor(activity, cursor)));
    }
    Ok(documents)
}

fn describe_cursor(activity: Activity<'_>, cursor: &IdleCursor) -> DocumentBuf {
    let mut details = describe_told(activity, cursor.id, &cursor.told);
    if let Some(summary) = &cursor.plan_summary {
        details.append("planSummary", summary.as_str());
    }
    let mut described =
        DocumentBuf::new().with("type", "idleCursor").with("host", activity.host).with("ns", &cursor.namespace);
    if let Some(session) = &cursor.session {
        described.append("lsid", &session.to_document());
    }
    described.with("cursor", &details)
}

const OPTIONS: [&str; 8] = [
    "allUsers",
    "idleConnections",
    "idleCursors",
    "idleSessions",
    "localOps",
    "truncateOps",
    "backtrace",
    "targetAllNodes",
];

/// The options of `$currentOp`.
#[derive(Clone, Copy, Debug)]
struct Shown {
    idle_connections: bool,
    idle_cursors: bool,
    idle_sessions: bool,
    all_users: bool,
    large_commands: LargeCommands,
}

impl Shown {
    /// Checks the options that MongoDB checks before the stage's namespace: the users and the servers that are meant.
    fn check_users(specification: ValueRef<'_>) -> Result<()> {
        let options = specification
            .as_document()
            .ok_or_else(|| wrong_type(bunko_stages::CURRENT_OP.name, specification, "object"))?;
        let mut asked = options.iter().filter(|option| matches!(option.name, "allUsers" | "localOps"));
        match asked.find(|option| !matches!(option.value, ValueRef::Boolean(_))) {
            Some(option) => Err(wrong_type(&format!("$currentOp.{}", option.name), option.value, "bool")),
            None => Ok(()),
        }
    }

    /// Parses the options.
    fn parse(specification: ValueRef<'_>) -> Result<Self> {
        let options = specification
            .as_document()
            .ok_or_else(|| wrong_type(bunko_stages::CURRENT_OP.name, specification, "object"))?;
        let mut shown = Self {
            idle_connections: false,
            idle_cursors: false,
            idle_sessions: true,
            all_users: false,
            large_commands: LargeCommands::Fields,
        };
        for option in options {
            let place = || format!("$currentOp.{}", option.name);
            if !OPTIONS.contains(&option.name) {
                return Err(Failure::unknown_field(place()));
            }
            let ValueRef::Boolean(value) = option.value else {
                return Err(wrong_type(&place(), option.value, "bool"));
            };
            match option.name {
                "allUsers" => shown.all_users = value,
                "idleConnections" => shown.idle_connections = value,
                "idleCursors" => shown.idle_cursors = value,
                "idleSessions" => shown.idle_sessions = value,
                "truncateOps" if value => shown.large_commands = LargeCommands::Truncated,
                "targetAllNodes" if value => {
                    let message = "$currentOp supports targetAllNodes parameter only for sharded clusters";
                    return Err(Failure::failed_to_parse(message));
                }
                "backtrace" if value => {
                    let message = format!("the option '{}' of '$currentOp' is not supported", option.name);
                    return Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message));
                }
                _ => {}
            }
        }
        Ok(shown)
    }
}
