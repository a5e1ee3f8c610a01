//! `logout`: ends the connection's login, if its user is of this database.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_authority::Client;
use bunko_authority::audit::note_logout;
use bunko_bson::Writer;
use bunko_request::facts::CommandFacts;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "logout", ..CommandFacts::PLAIN },
    privileges: Privileges::BeforeLogin,
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let database = invocation.request.database;
    if invocation.connection.user().is_some_and(|user| user.name.database == database) {
        note_logout(&invocation.service.authority, invocation.connection);
        invocation.connection.change_login(Client::log_out);
    }
    Ok(())
}
