//! Commands without what must be shown to nobody, for `currentOp`, the profiler and the log.

use crate::commands;
use bunko_bson::{DocumentBuf, DocumentRef};

/// What stands in the place of a secret, as in MongoDB.
const HIDDEN: &str = "xxx";

/// The fields of a command that hold a secret, or what a secret could be guessed from.
fn secret_fields(command: &str) -> &'static [&'static str] {
    match command {
        "createUser" | "updateUser" => &["pwd"],
        "saslStart" | "saslContinue" => &["payload"],
        "hello" | "isMaster" => &["speculativeAuthenticate"],
        "authenticate" => &["key", "nonce", "pwd"],
        _ => &[],
    }
}

/// The command without its secrets; `None` where it has none.
pub(crate) fn redacted(command: &str, body: DocumentRef<'_>) -> Option<DocumentBuf> {
    if command == "explain" {
        return redacted_inside(body);
    }
    let secrets = secret_fields(command);
    if secrets.is_empty() || !body.iter().any(|field| secrets.contains(&field.name)) {
        return None;
    }
    let mut shown = DocumentBuf::new();
    for field in body {
        if secrets.contains(&field.name) {
            shown.append(field.name, HIDDEN);
        } else {
            shown.append(field.name, field.value);
        }
    }
    Some(shown)
}

/// The same of the command that another one explains.
fn redacted_inside(body: DocumentRef<'_>) -> Option<DocumentBuf> {
    let first = body.first()?;
    let inner = first.value.as_document()?;
    let shown = match commands::find(inner.first()?.name)?.name {
        // Nobody explains that, and it could go on for any number of levels.
        "explain" => DocumentBuf::new().with("explain", HIDDEN),
        command => redacted(command, inner)?,
    };
    let mut whole = DocumentBuf::new().with(first.name, &shown);
    for field in body.iter().skip(1) {
        whole.append(field.name, field.value);
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown() {
        let body = DocumentBuf::new().with("createUser", "u").with("pwd", "canary").with("roles", 1);
        let shown = redacted("createUser", body.as_ref()).expect("it has one");
        assert_eq!(shown, DocumentBuf::new().with("createUser", "u").with("pwd", HIDDEN).with("roles", 1));
        let explained = DocumentBuf::new().with("explain", &body).with("verbosity", "queryPlanner");
        let shown_inside = redacted("explain", explained.as_ref()).expect("it has one");
        assert_eq!(shown_inside, DocumentBuf::new().with("explain", &shown).with("verbosity", "queryPlanner"));
        assert!(redacted("find", DocumentBuf::new().with("find", "c").as_ref()).is_none());
    }
}
