//! Users and roles: the server merges them from temporary collections.
//!
//! Source: MongoDB's documentation of `mongorestore`, `--restoreDbUsersAndRoles`; the commands that it sends to
//! servers.

use super::options::{Existing, RestoreOptions, UsersAndRoles};
use super::plan::{ADMIN, ROLES_WAIT, USERS_WAIT};
use super::run::Run;
use super::target::{RestoredNamespace, Role, TargetDescription};
use crate::ToolError;
use crate::progress::Activity;
use bunko_bson::DocumentBuf;
use bunko_client::{Acknowledgement, CommandError, WriteConcern};
use std::sync::Arc;

/// MongoDB's `CommandNotFound`.
const COMMAND_NOT_FOUND: i32 = 59;

/// Checks that the dump has the users and roles that were asked for by database.
/// # Errors
/// `Failed` if it has none.
pub(super) fn check(options: &RestoreOptions, found: &[TargetDescription]) -> Result<(), ToolError> {
    match &options.users_and_roles {
        UsersAndRoles::Of { database } if !found.iter().any(|found| found.role.is_temporary()) => {
            Err(ToolError::Failed(format!("the dump has no users and roles of the database '{database}'")))
        }
        _ => Ok(()),
    }
}

/// Merges users and roles, if there are any. Returns a warning if the server cannot merge them and they were not asked
/// for by database.
/// # Errors
/// The server's refusal in all other cases; the error of the connection.
pub(super) fn merge(run: &Run<'_>) -> Result<Option<String>, ToolError> {
    let waiting = |role| run.targets.iter().find(move |target| target.role == role && !target.has_failed());
    let (users, roles) = (waiting(Role::Users), waiting(Role::Roles));
    let asked = &run.options.users_and_roles;
    let Some(any) = users.or(roles) else { return Ok(None) };
    let mut link = run.connect(&any.name)?;
    let command = command(users, roles, asked, run.options.existing);
    let namespace = (ADMIN, "system.users");
    let merged = run.command(&mut link, Activity::Server, namespace, &command)?;
    for target in [users, roles].into_iter().flatten() {
        let drop = DocumentBuf::new().with("drop", &target.collection);
        // A collection that is left behind is dropped by the next restore.
        let _ = run.command(&mut link, Activity::Server, (ADMIN, &target.collection), &drop)?;
    }
    match merged {
        Ok(_) => Ok(None),
        Err(CommandError { code: COMMAND_NOT_FOUND, .. }) if *asked == UsersAndRoles::IfPresent => {
            Ok(Some("the server has no users and roles: those of the dump were not restored".to_owned()))
        }
        Err(refusal) => Err(ToolError::server(ADMIN, refusal)),
    }
}

fn command(
    users: Option<&Arc<RestoredNamespace>>,
    roles: Option<&Arc<RestoredNamespace>>,
    asked: &UsersAndRoles,
    existing: Existing,
) -> DocumentBuf {
    let waiting = |target: Option<_>, collection: &str| match target {
        Some(_) => format!("{ADMIN}.{collection}"),
        None => String::new(),
    };
    let database = match asked {
        // All databases.
        UsersAndRoles::IfPresent | UsersAndRoles::Skip => "",
        UsersAndRoles::Of { database } => database,
    };
    let concern = WriteConcern { w: Acknowledgement::Majority, ..WriteConcern::default() };
    DocumentBuf::new()
        .with("_mergeAuthzCollections", 1_i32)
        .with("tempUsersCollection", &waiting(users, USERS_WAIT))
        .with("tempRolesCollection", &waiting(roles, ROLES_WAIT))
        .with("drop", existing == Existing::Drop)
        .with("db", database)
        .with("writeConcern", &concern.to_document())
}
