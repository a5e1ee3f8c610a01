//! The lines that a user typed, kept between sessions in a file that only the user can read.

use std::path::PathBuf;

/// Maximum number of lines that are kept.
pub(crate) const LINES_MAX: usize = 1000;
/// Calls whose arguments may contain a password: such lines are not kept.
const SECRET_CALLS: [&str; 8] =
    ["createUser", "updateUser", "changeUserPassword", "auth", "Mongo", "connect", "passwordPrompt", "pwd"];

/// The file of the history: in `$XDG_STATE_HOME/bunko`, or in `~/.local/state/bunko`; `None` without a home.
pub(crate) fn file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state")))?;
    Some(state.join("bunko/shell_history"))
}

/// Whether a line may be kept.
pub(crate) fn may_keep(line: &str) -> bool {
    // `mongodb+srv://` is refused, but a password in it is secret too.
    !["mongodb://", "mongodb+srv://"].iter().any(|scheme| line.contains(scheme))
        && !SECRET_CALLS.iter().any(|call| has_word(line, call))
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::may_keep;

    #[test]
    fn lines_with_passwords_are_not_kept() {
        for secret in [
            "db.createUser({user: 'a', pwd: 'b'})",
            "db.auth('a', 'b')",
            "connect('h')",
            "x = 'mongodb://a:b@h'",
            "x = 'mongodb+srv://a:b@h'",
            "{pwd: 1}",
        ] {
            assert!(!may_keep(secret), "{secret}");
        }
        for harmless in ["db.authors.find()", "db.t.find({author: 1})", "show users", "db.connections.drop()"] {
            assert!(may_keep(harmless), "{harmless}");
        }
    }
}
