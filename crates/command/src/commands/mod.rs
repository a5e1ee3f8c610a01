//! The table of commands: one file each, one line here.

use crate::dispatch::Command;

mod get_more;
mod hello;
mod insert;
mod kill_cursors;
mod ping;

/// Every command that the server knows.
pub const COMMANDS: &[Command] = &[
    get_more::COMMAND,
    hello::COMMAND,
    hello::IS_MASTER,
    insert::COMMAND,
    kill_cursors::COMMAND,
    ping::COMMAND,
];

/// The command of that name; names are matched in MongoDB's spelling.
pub(crate) fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name || command.aliases.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique() {
        let names: Vec<_> = COMMANDS.iter().flat_map(|command| command.aliases.iter().chain([&command.name])).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }
}
