//! Commands without their secrets: the only form in which `currentOp`, the profiler, the log, the audit and error
//! messages show them.
//!
//! **Invariant:** a command is shown only as a [`Shown`], which has no constructors other than these.

use crate::command_entry::Command;
use crate::commands::{self, apply_ops};
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Element, ValueRef};
use bunko_request::Request;
use bunko_request::facts::{ANY_FIELDS, Secrets};
use bunko_request::generic_fields::is_generic;

/// The text that replaces a secret, as in MongoDB.
const HIDDEN: &str = "xxx";

/// A command in a form that may be shown.
#[derive(Clone, Debug)]
pub(crate) struct Shown<'a>(Form<'a>);

#[derive(Clone, Debug)]
enum Form<'a> {
    /// The command as the client sent it. It holds no secret.
    AsSent(DocumentRef<'a>),
    /// A copy with [`HIDDEN`] in place of secrets.
    Redacted(DocumentBuf),
}

impl<'a> Shown<'a> {
    /// A command whose fields have been checked, so that it has no unknown ones.
    pub fn of_admitted(command: &Command, request: &Request<'a>) -> Self {
        let (body, database) = (request.body, request.database);
        // In a command that takes any field, all fields are unknown.
        let has_only_known = || command.fields != ANY_FIELDS || body.iter().skip(1).all(|field| is_generic(field.name));
        match command.secrets {
            Secrets::OfUsers(are_meant) if !are_meant(database, body) => Self(Form::AsSent(body)),
            Secrets::None if has_only_known() => Self(Form::AsSent(body)),
            _ => Self::redacted(command, database, body),
        }
    }

    /// A command that the server itself runs. It holds no secret.
    pub fn of_own(body: DocumentRef<'a>) -> Self {
        Self(Form::AsSent(body))
    }

    /// A command whose fields have not been checked.
    pub fn of_any(command: &Command, request: &Request<'a>) -> Self {
        Self::redacted(command, request.database, request.body)
    }

    /// A statement of a write to the collection `namespace`, or the stages that ran for it.
    pub fn of_statement(namespace: &str, statement: DocumentBuf) -> DocumentBuf {
        if is_of_users(namespace) { without_named(statement.as_ref()) } else { statement }
    }

    fn redacted(command: &Command, database: &str, body: DocumentRef<'a>) -> Self {
        let mut shown = DocumentBuf::new();
        for (position, field) in body.iter().enumerate() {
            let is_known =
                position == 0 || command.fields.iter().any(|known| known.name == field.name) || is_generic(field.name);
            match command.secrets {
                Secrets::OfExplained => return Self(Form::Redacted(redacted_inside(database, body))),
                Secrets::Fields(secrets)
                    if position > 0 && secrets.contains(&field.name) || !is_known && command.fields != ANY_FIELDS =>
                {
                    shown.append(field.name, HIDDEN);
                }
                _ if !is_known && names_secret(field.name) => {
                    shown.append(field.name, HIDDEN);
                }
                Secrets::Fields(_) | Secrets::Named => append_without_named(&mut shown, &field, is_known),
                Secrets::OfUsers(are_meant) if are_meant(database, body) => {
                    append_without_named(&mut shown, &field, is_known);
                }
                _ if !is_known || command.fields == ANY_FIELDS => {
                    append_without_named(&mut shown, &field, is_known);
                }
                Secrets::None | Secrets::OfUsers(_) => {
                    shown.append(field.name, field.value);
                }
            }
        }
        Self(Form::Redacted(shown))
    }

    /// The document to show.
    pub fn as_ref(&self) -> DocumentRef<'_> {
        match &self.0 {
            Form::AsSent(body) => *body,
            Form::Redacted(shown) => shown.as_ref(),
        }
    }
}

/// The database that holds the collection of users and, while a dump is restored, a temporary one of the dump's users.
const DATABASE_OF_USERS: &str = super::DATABASE;
/// The collection of users. Dumps of single databases and old servers have one in other databases too.
const COLLECTION_OF_USERS: &str = "system.users";

/// Whether a command on the collection that its first value names may read or write documents of users.
pub(crate) fn is_on_users(database: &str, body: DocumentRef<'_>) -> bool {
    let collection = body.first().and_then(|first| first.value.as_str());
    database == DATABASE_OF_USERS || collection == Some(COLLECTION_OF_USERS)
}

/// Whether a command with its namespaces in `nsInfo` may write documents of users. Namespaces that the client sent as a
/// document sequence are not shown.
pub(crate) fn has_namespace_of_users(_: &str, body: DocumentRef<'_>) -> bool {
    let targets = body.get("nsInfo").and_then(ValueRef::as_array);
    targets.is_some_and(|targets| targets.iter().filter_map(ValueRef::as_document).any(is_target_of_users))
}

/// Whether a command whose first value is an array of oplog entries may write documents of users.
pub(crate) fn has_entry_of_users(_: &str, body: DocumentRef<'_>) -> bool {
    let entries = body.first().and_then(|first| first.value.as_array());
    entries.is_some_and(|entries| entries.iter().filter_map(ValueRef::as_document).any(is_entry_of_users))
}

fn is_target_of_users(target: DocumentRef<'_>) -> bool {
    target.get("ns").and_then(ValueRef::as_str).is_some_and(is_of_users)
}

/// Whether an oplog entry is about users: by its namespace, or because it contains such entries.
fn is_entry_of_users(entry: DocumentRef<'_>) -> bool {
    let inner = entry.get("o").and_then(ValueRef::as_document).and_then(|o| o.get(apply_ops::COMMAND.name)?.as_array());
    is_target_of_users(entry)
        || inner.is_some_and(|inner| inner.iter().filter_map(ValueRef::as_document).any(is_entry_of_users))
}

fn is_of_users(namespace: &str) -> bool {
    namespace
        .split_once('.')
        .is_some_and(|(database, collection)| database == DATABASE_OF_USERS || collection == COLLECTION_OF_USERS)
}

/// An `explain`, with the command inside it redacted.
fn redacted_inside(database: &str, body: DocumentRef<'_>) -> DocumentBuf {
    let mut whole = DocumentBuf::new();
    for (position, field) in body.iter().enumerate() {
        let inner = field.value.as_document().filter(|_| position == 0);
        let name = inner.and_then(DocumentRef::first).map_or("", |first| first.name);
        match (inner, commands::find(name)) {
            // An `explain` of an `explain` is refused, and could nest to any depth.
            (Some(_), Some(command)) if command.is_explain() => {
                whole.append(field.name, &DocumentBuf::new().with(command.name, HIDDEN));
            }
            (Some(inner), Some(command)) => {
                whole.append(field.name, Shown::redacted(command, database, inner).as_ref());
            }
            _ => append_without_named(&mut whole, &field, field.name == "verbosity" || is_generic(field.name)),
        }
    }
    whole
}

/// A copy of the document in which fields with the name of a secret are hidden.
pub(crate) fn without_named(document: DocumentRef<'_>) -> DocumentBuf {
    let mut shown = DocumentBuf::new();
    document.iter().for_each(|field| append_without_named(&mut shown, &field, false));
    shown
}

/// The text of a value for an error message, in which fields with the name of a secret are hidden.
pub(crate) fn shown_text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Document(_) | ValueRef::Array(_) => {
            let shown = without_named(DocumentBuf::new().with("", value).as_ref());
            shown.as_ref().first().map_or_else(String::new, |only| ValueText(only.value).to_string())
        }
        other => ValueText(other).to_string(),
    }
}

/// Appends a field. It is hidden if it has the name of a secret and is not `is_known`; otherwise the fields inside it
/// are checked by their names.
fn append_without_named(shown: &mut DocumentBuf, field: &Element<'_>, is_known: bool) {
    if !is_known && is_secret(field.name, field.value) {
        shown.append(field.name, HIDDEN);
        return;
    }
    match field.value {
        ValueRef::Document(inner) => shown.append(field.name, &without_named(inner)),
        ValueRef::Array(inner) => {
            let mut elements = ArrayBuf::new();
            for element in inner.iter() {
                match element {
                    ValueRef::Document(document) => {
                        elements.push(&without_named(document));
                    }
                    ValueRef::Array(nested) => {
                        // An array is a document whose field names are its indexes.
                        let nested = without_named(nested.as_document());
                        elements.push(&nested.as_ref().iter().map(|field| field.value).collect::<ArrayBuf>());
                    }
                    other => {
                        elements.push(other);
                    }
                }
            }
            shown.append(field.name, &elements)
        }
        other => shown.append(field.name, other),
    };
}

/// Whether a field holds a secret, judged by its name and the type of its value.
fn is_secret(name: &str, value: ValueRef<'_>) -> bool {
    match value {
        // For example `digestPassword`.
        ValueRef::Boolean(_) => false,
        ValueRef::Document(pattern) if name == "key" && is_key_pattern(pattern) => false,
        _ => names_secret(name),
    }
}

/// Whether a document can be the key pattern of an index.
fn is_key_pattern(document: DocumentRef<'_>) -> bool {
    const KINDS: [&str; 6] = ["2d", "2dsphere", "hashed", "text", "wildcard", "columnstore"];
    document
        .iter()
        .all(|field| field.value.is_number() || field.value.as_str().is_some_and(|kind| KINDS.contains(&kind)))
}

/// Whether a field's name is that of a secret. Only the last name of a path counts, and only its letters and digits.
fn names_secret(name: &str) -> bool {
    const PARTS: [&str; 7] =
        ["password", "passwd", "passphrase", "secret", "credential", "speculativeauthenticate", "privatekey"];
    const ENDS: [&str; 8] =
        ["pwd", "token", "apikey", "accesskey", "storedkey", "serverkey", "encryptionkey", "authkey"];
    const WHOLE: [&str; 6] = ["pass", "payload", "nonce", "salt", "auth", "key"];
    let last = name.rsplit('.').next().unwrap_or(name);
    let letters: String = last.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let letters = letters.as_str();
    PARTS.iter().any(|part| letters.contains(part))
        || ENDS.iter().any(|end| letters.ends_with(end))
        || WHOLE.contains(&letters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::shell;

    fn document(text: &str) -> DocumentBuf {
        shell::parse_document(text).expect("a document")
    }

    /// Shows a command in both forms: before and after its fields are checked.
    fn shown(database: &str, command: &str) -> [String; 2] {
        let body = document(command);
        let request = Request::new(database, body.as_ref(), None);
        let entry = commands::find(request.name()).expect("a command");
        [Shown::of_any(entry, &request), Shown::of_admitted(entry, &request)]
            .map(|shown| shell::print(ValueRef::Document(shown.as_ref())))
    }

    #[test]
    fn no_secret_is_shown() {
        for (command, expected) in [
            ("{createUser: 'u', pwd: 'canary', roles: []}", "{createUser: \"u\", pwd: \"xxx\", roles: []}"),
            // A mistyped field.
            ("{createUser: 'u', pasword: 'canary', roles: []}", "{createUser: \"u\", pasword: \"xxx\", roles: []}"),
            ("{createUser: {user: 'u', pwd: 'canary'}}", "{createUser: {user: \"u\", pwd: \"xxx\"}}"),
            (
                "{updateUser: 'u', customData: {apiToken: 'canary', team: 'a'}}",
                "{updateUser: \"u\", customData: {apiToken: \"xxx\", team: \"a\"}}",
            ),
            (
                "{saslStart: 1, mechanism: 'PLAIN', payload: 'canary'}",
                "{saslStart: 1, mechanism: \"PLAIN\", payload: \"xxx\"}",
            ),
            ("{setParameter: 1, ldapQueryPassword: 'canary'}", "{setParameter: 1, ldapQueryPassword: \"xxx\"}"),
            ("{setParameter: 1, a: {b: [{pwd: 'canary'}]}}", "{setParameter: 1, a: {b: [{pwd: \"xxx\"}]}}"),
            (
                "{hello: 1, client: {driver: {name: 'd'}}, speculativeAuthenticate: {payload: 'canary'}, password: 'canary'}",
                "{hello: 1, client: {driver: {name: \"d\"}}, speculativeAuthenticate: \"xxx\", password: \"xxx\"}",
            ),
            (
                "{applyOps: [{op: 'i', ns: 'admin.system.users', o: {credentials: {a: 'canary'}}}]}",
                "{applyOps: [{op: \"i\", ns: \"admin.system.users\", o: {credentials: \"xxx\"}}]}",
            ),
            (
                "{find: 'system.users', filter: {'credentials.SCRAM-SHA-1.storedKey': 'canary'}}",
                "{find: \"system.users\", filter: {\"credentials.SCRAM-SHA-1.storedKey\": \"xxx\"}}",
            ),
            (
                "{explain: {createUser: 'u', pwd: 'canary'}, verbosity: 'queryPlanner'}",
                "{explain: {createUser: \"u\", pwd: \"xxx\"}, verbosity: \"queryPlanner\"}",
            ),
            ("{explain: {explain: {createUser: 'u', pwd: 'canary'}}}", "{explain: {explain: \"xxx\"}}"),
        ] {
            assert_eq!(shown("admin", command), [expected, expected], "{command}");
        }
        let refused = document("{ping: 1, password: 'canary', other: 1}");
        let request = Request::new("test", refused.as_ref(), None);
        let shown = Shown::of_any(commands::find("ping").expect("a command"), &request);
        assert_eq!(shown.as_ref(), document("{ping: 1, password: 'xxx', other: 1}").as_ref());
    }

    #[test]
    fn no_secret_of_users_is_shown_in_other_databases() {
        for (command, expected) in [
            (
                "{find: 'system.users', filter: {'credentials.SCRAM-SHA-256.storedKey': 'canary'}}",
                "{find: \"system.users\", filter: {\"credentials.SCRAM-SHA-256.storedKey\": \"xxx\"}}",
            ),
            (
                "{insert: 'system.users', documents: [{credentials: {k: 'canary'}}]}",
                "{insert: \"system.users\", documents: [{credentials: \"xxx\"}]}",
            ),
            (
                "{aggregate: 'system.users', pipeline: [{$match: {pwd: 'canary'}}], cursor: {}}",
                "{aggregate: \"system.users\", pipeline: [{$match: {pwd: \"xxx\"}}], cursor: {}}",
            ),
            (
                "{bulkWrite: 1, ops: [{insert: 0, document: {pwd: 'canary'}}], nsInfo: [{ns: 'test.system.users'}]}",
                "{bulkWrite: 1, ops: [{insert: 0, document: {pwd: \"xxx\"}}], nsInfo: [{ns: \"test.system.users\"}]}",
            ),
            (
                "{usersInfo: {user: 'u', db: 'a', pwd: 'canary'}, filter: {pwd: 'canary'}}",
                "{usersInfo: {user: \"u\", db: \"a\", pwd: \"xxx\"}, filter: {pwd: \"xxx\"}}",
            ),
            (
                "{usersInfo: [{user: 'u', db: 'a', pwd: 'canary'}]}",
                "{usersInfo: [{user: \"u\", db: \"a\", pwd: \"xxx\"}]}",
            ),
            (
                "{rolesInfo: {role: 'r', db: 'a', secret: 'canary'}}",
                "{rolesInfo: {role: \"r\", db: \"a\", secret: \"xxx\"}}",
            ),
        ] {
            assert_eq!(shown("test", command), [expected, expected], "{command}");
        }
        let statement = document("{q: {pwd: 'canary'}, u: {$set: {pwd: 'canary'}}}");
        let hidden = document("{q: {pwd: 'xxx'}, u: {$set: {pwd: 'xxx'}}}");
        assert_eq!(Shown::of_statement("test.system.users", statement.clone()), hidden);
        assert_eq!(Shown::of_statement("test.users", statement.clone()), statement);
    }

    #[test]
    fn what_is_no_secret_is_shown() {
        for command in [
            "{find: \"c\", filter: {token: \"t\", password: \"p\"}}",
            "{distinct: \"c\", key: \"password\"}",
            "{insert: \"c\", documents: [{pwd: \"p\"}]}",
            "{createIndexes: \"c\", indexes: [{key: {token: 1}, name: \"token_1\"}]}",
            "{applyOps: [{op: \"i\", ns: \"test.c\", o: {_id: 1, token: \"t\"}}]}",
        ] {
            assert_eq!(shown("test", command), [command, command]);
        }
    }
}
