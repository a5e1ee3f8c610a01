//! `saslStart` and `saslContinue`: login by SCRAM. `authenticate`: login by a certificate.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_authority::{Client, authenticate, continue_login, start_login};
use bunko_errors::{ErrorCode, Result};
use bunko_request::facts::{CommandFacts, Compression, Secrets, Stability};
use bunko_request::field_kinds::{Kind, field};

pub(crate) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "saslStart",
        fields: &[
            field("mechanism", Kind::Own),
            field("payload", Kind::Own),
            field("autoAuthorize", Kind::Own),
            field("options", Kind::Own),
            field("db", Kind::Own),
        ],
        stable_api: Stability::WHOLE,
        compression: Compression::Never,
        secrets: Secrets::Fields(&["payload"]),
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::BeforeLogin,
    run: |invocation, reply| {
        let (service, fields, database) = (invocation.service, **invocation, invocation.request.database);
        let start = |client: &mut _| start_login(&service.authority, client, &fields, database, reply);
        Ok(slowly_refused(invocation, start)?)
    },
    ..Command::PLAIN
};
pub(super) const CONTINUE: Command = Command {
    facts: CommandFacts {
        name: "saslContinue",
        // mgo.v2 sends the mechanism again.
        fields: &[field("conversationId", Kind::Own), field("payload", Kind::Own), field("mechanism", Kind::Own)],
        stable_api: Stability::WHOLE,
        compression: Compression::Never,
        secrets: Secrets::Fields(&["payload"]),
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::BeforeLogin,
    run: |invocation, reply| {
        let (service, fields) = (invocation.service, **invocation);
        let go_on = |client: &mut _| continue_login(&service.authority, client, &fields, reply);
        Ok(slowly_refused(invocation, go_on)?)
    },
    ..Command::PLAIN
};
pub(crate) const AUTHENTICATE: Command = Command {
    facts: CommandFacts {
        name: "authenticate",
        fields: &[
            field("mechanism", Kind::Own),
            field("user", Kind::Own),
            field("pwd", Kind::Own),
            field("nonce", Kind::Own),
            field("key", Kind::Own),
            field("db", Kind::Own),
        ],
        stable_api: Stability::WHOLE,
        compression: Compression::Never,
        secrets: Secrets::Fields(&["key", "nonce", "pwd"]),
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::BeforeLogin,
    run: |invocation, reply| {
        let (service, fields, database) = (invocation.service, **invocation, invocation.request.database);
        let prove = |client: &mut _| authenticate(&service.authority, client, &fields, database, reply);
        Ok(slowly_refused(invocation, prove)?)
    },
    ..Command::PLAIN
};

/// Logs the client in. Delays the reply to a refused login by `authFailedDelayMs`, so that passwords cannot be guessed
/// fast. The delay blocks no thread.
fn slowly_refused(invocation: &mut Invocation<'_>, log_in: impl FnOnce(&mut Client) -> Result<()>) -> Result<()> {
    let outcome = invocation.connection.change_login(log_in);
    let is_refused = outcome.as_ref().is_err_and(|failure| failure.code() == ErrorCode::AUTHENTICATION_FAILED);
    let delay = invocation.service.authority.access.failure_delay();
    if is_refused && !delay.is_zero() {
        invocation.delay = Some(delay);
    }
    outcome
}
