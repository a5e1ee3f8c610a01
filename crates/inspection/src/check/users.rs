//! Roles and users: the rehearsal creates each, with a password of its own.

use super::server::{GRANT, text};
use super::{Check, Subject};
use crate::InspectionError;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use std::collections::HashSet;

const ADVICE: &str = "Grant on the new server what it needs with other roles and privileges.";
/// Database of users whom the server does not check by a password of its own.
const EXTERNAL: &str = "$external";

impl Check<'_> {
    /// Rehearses the roles of all databases, then all users.
    pub(super) fn roles_and_users(&mut self, databases: &[String]) -> Result<(), InspectionError> {
        let command = DocumentBuf::new().with("usersInfo", &DocumentBuf::new().with("forAllDBs", true));
        let users = match self.source.ask("admin", &command)? {
            Ok(reply) => documents(reply.as_ref(), "users"),
            Err(refusal) => {
                self.unknown(Subject::User, "users", &refusal, GRANT);
                Vec::new()
            }
        };
        let roles = self.roles_of_source(databases, &users)?;
        self.roles(&roles)?;
        for user in &users {
            self.user(user.as_ref())?;
        }
        Ok(())
    }

    /// The roles in these databases, in `admin`, and in each database that a user or a role names: a database may have
    /// roles and no data.
    fn roles_of_source(
        &mut self,
        databases: &[String],
        users: &[DocumentBuf],
    ) -> Result<Vec<DocumentBuf>, InspectionError> {
        let mut wanted = vec!["admin".to_owned()];
        wanted.extend(databases.iter().cloned());
        wanted.extend(users.iter().flat_map(databases_of_roles));
        let (mut asked, mut roles) = (HashSet::new(), Vec::new());
        while let Some(database) = wanted.pop() {
            if !asked.insert(database.clone()) {
                continue;
            }
            let command = DocumentBuf::new().with("rolesInfo", 1_i32).with("showPrivileges", true);
            match self.source.ask(&database, &command)? {
                Ok(reply) => {
                    let found = documents(reply.as_ref(), "roles");
                    wanted.extend(found.iter().flat_map(databases_of_roles));
                    roles.extend(found);
                }
                Err(refusal) => self.unknown(Subject::User, &database, &refusal, GRANT),
            }
        }
        Ok(roles)
    }

    /// Roles may name each other in any order, so all exist before any has roles.
    fn roles(&mut self, roles: &[DocumentBuf]) -> Result<(), InspectionError> {
        let empty = ArrayBuf::new();
        let mut refused = HashSet::new();
        for (position, role) in roles.iter().enumerate() {
            let role = role.as_ref();
            let (Some(name), Some(database)) = (text(role, "role"), text(role, "db")) else { continue };
            self.report.count(Subject::User);
            let mut command = DocumentBuf::new().with("createRole", name).with("roles", &empty);
            command.append("privileges", role.get("privileges").unwrap_or_else(|| (&empty).into()));
            if let Some(restrictions) = role.get("authenticationRestrictions") {
                command.append("authenticationRestrictions", restrictions);
            }
            if let Err(refusal) = self.rehearsal.ask(database, &command)? {
                self.refused(Subject::User, format!("role {database}.{name}"), &refusal, ADVICE);
                refused.insert(position);
            }
        }
        for (_, role) in roles.iter().enumerate().filter(|(position, _)| !refused.contains(position)) {
            let role = role.as_ref();
            let (Some(name), Some(database)) = (text(role, "role"), text(role, "db")) else { continue };
            let Some(inherited) = role.get("roles") else { continue };
            let command = DocumentBuf::new().with("updateRole", name).with("roles", inherited);
            if let Err(refusal) = self.rehearsal.ask(database, &command)? {
                self.refused(Subject::User, format!("role {database}.{name}"), &refusal, ADVICE);
            }
        }
        Ok(())
    }

    fn user(&mut self, user: DocumentRef<'_>) -> Result<(), InspectionError> {
        let (Some(name), Some(database)) = (text(user, "user"), text(user, "db")) else { return Ok(()) };
        self.report.count(Subject::User);
        let mut command = DocumentBuf::new().with("createUser", name);
        if database != EXTERNAL {
            command.append("pwd", "of the rehearsal");
        }
        for field in ["roles", "customData", "authenticationRestrictions", "mechanisms"] {
            if let Some(value) = user.get(field).filter(|_| database != EXTERNAL || field != "mechanisms") {
                command.append(field, value);
            }
        }
        if let Err(refusal) = self.rehearsal.ask(database, &command)? {
            self.refused(Subject::User, format!("user {database}.{name}"), &refusal, ADVICE);
        }
        Ok(())
    }
}

/// The databases of the roles that a user or a role has.
fn databases_of_roles(holder: &DocumentBuf) -> Vec<String> {
    let roles = documents(holder.as_ref(), "roles");
    roles.iter().filter_map(|role| text(role.as_ref(), "db").map(str::to_owned)).collect()
}

/// The documents of an array field.
fn documents(reply: DocumentRef<'_>, field: &str) -> Vec<DocumentBuf> {
    let array = reply.get(field).and_then(ValueRef::as_array);
    let documents = array.iter().flat_map(|array| array.iter()).filter_map(ValueRef::as_document);
    documents.map(DocumentRef::to_owned).collect()
}
