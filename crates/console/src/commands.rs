//! The commands that the page may run: those that read, and `killOp`.
//!
//! The server checks the user's privileges for each, so this table gives no rights. It makes a stolen session worth
//! less.

use crate::guard::Refusal;
use bunko_bson::number::as_i64_exact;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use hyper::StatusCode;

/// Longest time that a command of the page may take, in milliseconds.
pub const COMMAND_MS_MAX: i64 = 30_000;
const TIME_LIMIT: &str = "maxTimeMS";

/// The commands by name.
const RUN: [&str; 11] = [
    "aggregate",
    "connectionStatus",
    "explain",
    "find",
    "getLog",
    "hello",
    "killOp",
    "listCollections",
    "listDatabases",
    "replSetGetStatus",
    "serverStatus",
];

/// The command as it is sent: with its database, and with a time limit.
/// # Errors
/// If the page does not run such a command.
pub fn bounded(command: DocumentRef<'_>, database: &str) -> Result<DocumentBuf, Refusal> {
    let refuse = |reason: String| Err(Refusal::new(StatusCode::FORBIDDEN, reason));
    let name = command.iter().next().map_or("", |field| field.name);
    if !RUN.contains(&name) {
        return refuse(format!("the command '{name}' in the console is not supported yet"));
    }
    if let Some(stage) = writing_stage(command) {
        return refuse(format!("{stage} in the console is not supported yet: it only reads"));
    }
    let mut sent = DocumentBuf::new();
    let mut limit = COMMAND_MS_MAX;
    for field in command {
        match field.name {
            "$db" => return refuse("the field $db is the console's own".to_owned()),
            TIME_LIMIT => limit = as_i64_exact(field.value).filter(|asked| (1..limit).contains(asked)).unwrap_or(limit),
            name => {
                sent.append(name, field.value);
            }
        }
    }
    Ok(sent.with(TIME_LIMIT, limit).with("$db", database))
}

/// The stage of the command's pipeline that writes. An explained command stands inside its command.
fn writing_stage(command: DocumentRef<'_>) -> Option<String> {
    let explained = command.iter().next().and_then(|field| field.value.as_document());
    if let Some(stage) = explained.and_then(writing_stage) {
        return Some(stage);
    }
    let pipeline = command.get("pipeline").and_then(ValueRef::as_array)?;
    let mut names = pipeline.iter().filter_map(|stage| Some(stage.as_document()?.iter().next()?.name.to_owned()));
    names.find(|name| bunko_stages::is_writing(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::extended_json;

    fn sent(command: &str) -> Result<String, String> {
        let command = extended_json::parse_document(command).expect(command);
        bounded(command.as_ref(), "shop")
            .map(|sent| extended_json::to_relaxed(ValueRef::Document(sent.as_ref())))
            .map_err(|refusal| refusal.reason)
    }

    #[test]
    fn commands_have_a_time_limit() {
        assert_eq!(sent(r#"{"find":"c"}"#).unwrap(), r#"{"find":"c","maxTimeMS":30000,"$db":"shop"}"#);
        let limits = [("5", 5), ("0", 30_000), ("-1", 30_000), ("\"x\"", 30_000), ("99999999", 30_000)];
        for (asked, limit) in limits {
            let sent = sent(&format!(r#"{{"find":"c","maxTimeMS":{asked}}}"#)).unwrap();
            assert_eq!(sent, format!(r#"{{"find":"c","maxTimeMS":{limit},"$db":"shop"}}"#));
        }
    }

    #[test]
    fn commands_that_write_are_refused() {
        for command in [r#"{"insert":"c"}"#, r#"{"dropDatabase":1}"#, r#"{"eval":1}"#, "{}", r#"{"Find":"c"}"#] {
            assert!(sent(command).is_err_and(|error| error.contains("not supported yet")), "{command}");
        }
        let out = r#"{"aggregate":"c","pipeline":[{"$match":{}},{"$out":"d"}],"cursor":{}}"#;
        assert!(sent(out).is_err_and(|error| error.starts_with("$out ")));
        assert!(sent(&format!(r#"{{"explain":{out}}}"#)).is_err_and(|error| error.starts_with("$out ")));
        assert!(sent(r#"{"find":"c","$db":"admin"}"#).is_err());
    }
}
