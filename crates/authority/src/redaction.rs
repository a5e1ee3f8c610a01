//! Commands without their secrets: the only form in which `currentOp`, the profiler, the log, the audit and error
//! messages show them.
//!
//! **Invariant:** a command is shown only as a [`Shown`], which has no constructors other than these.

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_request::Request;
use bunko_request::facts::{ANY_FIELDS, CommandFacts, FindFacts, Secrets};
use bunko_request::generic_fields::is_generic;
use bunko_request::secret_names::{
    COLLECTION_OF_USERS, DATABASE_OF_USERS, HIDDEN, append_without_named, is_of_users, names_secret,
};

/// A command in a form that may be shown.
#[derive(Clone, Debug)]
pub struct Shown<'a>(Form<'a>);

#[derive(Clone, Debug)]
enum Form<'a> {
    /// The command as the client sent it. It holds no secret.
    AsSent(DocumentRef<'a>),
    /// A copy with [`HIDDEN`] in place of secrets.
    Redacted(DocumentBuf),
}

impl<'a> Shown<'a> {
    /// A command whose fields have been checked, so that it has no unknown ones.
    pub fn of_admitted(command: &CommandFacts, request: &Request<'a>) -> Self {
        let body = request.body;
        // In a command that takes any field, all fields are unknown.
        let has_only_known = || command.fields != ANY_FIELDS || body.iter().skip(1).all(|field| is_generic(field.name));
        match command.secrets {
            Secrets::OfUsers(are_meant) if !are_meant(request) => Self(Form::AsSent(body)),
            Secrets::None if has_only_known() => Self(Form::AsSent(body)),
            _ => Self::redacted(command, request),
        }
    }

    /// A command that the server itself runs. It holds no secret.
    pub fn of_own(body: DocumentRef<'a>) -> Self {
        Self(Form::AsSent(body))
    }

    /// A command whose fields have not been checked.
    pub fn of_any(command: &CommandFacts, request: &Request<'a>) -> Self {
        Self::redacted(command, request)
    }

    fn redacted(command: &CommandFacts, request: &Request<'a>) -> Self {
        let mut shown = DocumentBuf::new();
        for (position, field) in request.body.iter().enumerate() {
            let is_known =
                position == 0 || command.fields.iter().any(|known| known.name == field.name) || is_generic(field.name);
            match command.secrets {
                Secrets::OfExplained(find) => return Self(Form::Redacted(redacted_inside(find, request))),
                Secrets::Fields(secrets)
                    if position > 0 && secrets.contains(&field.name) || !is_known && command.fields != ANY_FIELDS =>
                {
                    shown.append(field.name, HIDDEN);
                }
                _ if !is_known && names_secret(field.name) => {
                    shown.append(field.name, HIDDEN);
                }
                Secrets::Fields(_) | Secrets::Named => append_without_named(&mut shown, &field, is_known),
                Secrets::OfUsers(are_meant) if are_meant(request) => {
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

/// Whether a command on the collection that its first value names may read or write documents of users.
pub fn is_on_users(request: &Request<'_>) -> bool {
    request.database == DATABASE_OF_USERS || request.argument().as_str() == Some(COLLECTION_OF_USERS)
}

/// Whether a command with its namespaces in `nsInfo` may write documents of users. Namespaces that the client sent as a
/// document sequence are not shown.
pub fn has_namespace_of_users(request: &Request<'_>) -> bool {
    let targets = request.body.get("nsInfo").and_then(ValueRef::as_array);
    let names_users = |target: DocumentRef<'_>| target.get("ns").and_then(ValueRef::as_str).is_some_and(is_of_users);
    targets.is_some_and(|targets| targets.iter().filter_map(ValueRef::as_document).any(names_users))
}

/// An `explain`, with the command inside it redacted. `find` finds the facts of a command by its name.
fn redacted_inside(find: FindFacts, request: &Request<'_>) -> DocumentBuf {
    let mut whole = DocumentBuf::new();
    for (position, field) in request.body.iter().enumerate() {
        let inner = field.value.as_document().filter(|_| position == 0);
        let name = inner.and_then(DocumentRef::first).map_or("", |first| first.name);
        match (inner, find(name)) {
            // An inner `explain` is hidden whole: the command is refused anyway, and could nest to any depth.
            (Some(_), Some(command)) if command.is_explain() => {
                whole.append(field.name, &DocumentBuf::new().with(command.name, HIDDEN));
            }
            (Some(inner), Some(command)) => {
                let inner = Request::new(request.database, inner, None);
                whole.append(field.name, Shown::redacted(command, &inner).as_ref());
            }
            _ => append_without_named(&mut whole, &field, field.name == "verbosity" || is_generic(field.name)),
        }
    }
    whole
}
