//! Refuses commands that their client may not run.

use crate::audit::{note_refusal, note_success};
use crate::authority::Authority;
use crate::client::Client;
use crate::privileges::Asker;
use crate::redaction::Shown;
use bunko_access::Owner;
use bunko_bson::ValueRef;
use bunko_bson::text::ValueText;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::Request;
use bunko_request::facts::CommandFacts;

impl Authority {
    /// Refuses a command that its client may not run. `is_allowed` is the command's own check.
    /// # Errors
    /// `Unauthorized`, which is logged as well.
    pub fn authorize(
        &self,
        client: &mut Client,
        command: &CommandFacts,
        request: &Request<'_>,
        is_allowed: impl FnOnce(&Asker<'_>) -> bool,
    ) -> Result<()> {
        let asker = Asker::of_command(self, client, request);
        let is_allowed = asker.as_ref().is_some_and(is_allowed);
        let is_logged_in = asker.is_some_and(|asker| asker.user().is_some());
        if is_allowed {
            note_success(self, client, command, request);
            return Ok(());
        }
        note_refusal(self, client, command, request);
        let message = if is_logged_in {
            let shown = Shown::of_any(command, request);
            let body = ValueRef::Document(shown.as_ref());
            format!("not authorized on {} to execute command {}", request.database, ValueText(body))
        } else {
            format!("Command {} requires authentication", command.name)
        };
        Err(refused(client, message))
    }

    /// The client with its privileges; `None` if privileges are not checked, or if the client has none.
    pub fn asker<'a>(&'a self, client: &'a Client) -> Option<Asker<'a>> {
        if self.access.is_enforced() { Asker::of(self, client) } else { None }
    }

    /// The owner of a cursor or transaction that the client begins; `None` if privileges are not checked or no user is
    /// logged in.
    pub fn owner(&self, client: &Client) -> Option<Owner> {
        if self.access.is_enforced() { client.owner() } else { None }
    }

    /// Whether privileges are checked and the client has not logged in.
    pub fn asks_for_login(&self, client: &Client) -> bool {
        self.access.is_enforced() && client.user().is_none()
    }
}

fn refused(client: &Client, message: String) -> Failure {
    let connection = format!("conn{}", client.id);
    let (user, database) =
        client.user().map_or(("", ""), |user| (user.name.name.as_str(), user.name.database.as_str()));
    tracing::info!(target: "ACCESS", id = 20_436, ctx = connection, remote = %client.peer, user, db = database, error = message, "Checking authorization failed");
    Failure::new(ErrorCode::UNAUTHORIZED, message)
}
