//! `saslStart` and `saslContinue`: login by SCRAM. `authenticate`: login by a certificate.

use crate::access_control::{authenticate, continue_login, start_login};
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
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
    run: |invocation, reply| Ok(slowly_refused(start_login(invocation, reply), invocation)?),
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
    run: |invocation, reply| Ok(slowly_refused(continue_login(invocation, reply), invocation)?),
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
    run: |invocation, reply| Ok(slowly_refused(authenticate(invocation, reply), invocation)?),
    ..Command::PLAIN
};

/// Delays the reply to a refused login by `authFailedDelayMs`, so that passwords cannot be guessed fast. The delay
/// blocks no thread.
fn slowly_refused(outcome: Result<()>, invocation: &mut Invocation<'_>) -> Result<()> {
    let is_refused = outcome.as_ref().is_err_and(|failure| failure.code() == ErrorCode::AUTHENTICATION_FAILED);
    let delay = invocation.service.access.failure_delay();
    if is_refused && !delay.is_zero() {
        invocation.delay = Some(delay);
    }
    outcome
}
