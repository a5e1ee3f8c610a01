//! `setQuerySettings` and `removeQuerySettings`: settings for all commands of one query shape.

use super::aggregate::Aggregate;
use super::distinct::Distinct;
use super::find;
use super::find::Find;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::scope_options::ScopeOptions;
use crate::stored_settings;
use bunko_access::Action;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_catalog::Namespace;
use bunko_catalog::stored_document::Stamps;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_pipelines::Aggregation;
use bunko_query::id_lookup;
use bunko_request::Request;
use bunko_request::deployment::Deployment;
use bunko_request::facts::{Changes, CommandFacts, Databases, Explanation};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;
use bunko_session::options::GenericOptions;
use bunko_settings::cluster_parameters::{COLLECTION, DATABASE};
use bunko_settings::query_settings::{NoHash, Set, Settings, ShapeHash, shape_of};
use std::sync::Arc;

pub(super) const SET: Command = Command {
    facts: CommandFacts {
        name: "setQuerySettings",
        fields: &[field("settings", Kind::Object)],
        databases: Databases::Admin,
        changes: Changes::Other,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::QuerySettings),
    run: set,
    ..Command::PLAIN
};

pub(super) const REMOVE: Command = Command {
    facts: CommandFacts {
        name: "removeQuerySettings",
        databases: Databases::Admin,
        changes: Changes::Other,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::QuerySettings),
    run: remove,
    ..Command::PLAIN
};

/// The shape, and the command that gave it. A hash alone gives no command.
struct Meant {
    hash: ShapeHash,
    query: Option<DocumentBuf>,
}

fn set(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    refuse_without_set(invocation)?;
    let settings = parse_settings(invocation)?;
    let meant = meant(invocation)?;
    let settings = Settings::parse(settings)?;
    let set = change(invocation, meant.hash, &|before| {
        let settings = settings.clone().over(before.map(|before| &before.settings))?;
        let query = meant.query.clone().or_else(|| before.and_then(|before| before.query.clone()));
        Ok(Some(Set::new(settings, query)))
    })?;
    if let Some(set) = set {
        reply.extend(set.to_document(meant.hash).as_ref());
    }
    Ok(())
}

fn parse_settings<'a>(fields: &Fields<'a>) -> Result<DocumentRef<'a>> {
    fields.document("settings")?.ok_or_else(|| fields.missing("settings"))
}

fn remove(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    refuse_without_set(invocation)?;
    let meant = meant(invocation)?;
    change(invocation, meant.hash, &|_| Ok(None)).map(drop)
}

/// Changes the settings of a shape durably, and returns the new ones.
/// # Errors
/// Errors of `change`; `BSONObjectTooLarge` if all settings do not fit into one document; errors of the write.
fn change(
    invocation: &mut Invocation<'_>,
    hash: ShapeHash,
    change: &dyn Fn(Option<&Set>) -> Result<Option<Set>>,
) -> Result<Option<Arc<Set>>, Halt> {
    let service = invocation.service;
    let mut changing = service.query_settings.change();
    let [before, after] = changing.replace(hash, change)?;
    if before.is_none() && after.is_none() {
        return Ok(None);
    }
    let kept = changing.to_document(service.world.timestamp())?;
    stored_settings::keep(invocation, DATABASE, COLLECTION, &kept)?;
    changing.publish();
    Ok(after)
}

fn refuse_without_set(invocation: &Invocation<'_>) -> Result<()> {
    if invocation.service.deployment() == Deployment::SetMember {
        return Ok(());
    }
    let message = format!("{} cannot be run on standalone nodes", invocation.command.name);
    Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message))
}

fn missing(place: &str) -> Failure {
    Failure::missing_field(place)
}

/// Reads a hash, or a command and its `$db`.
/// # Errors
/// `TypeMismatch` for anything else; `BadValue` and `InvalidLength` for a malformed hash; errors of [`checked`] for a
/// command.
fn meant(invocation: &mut Invocation<'_>) -> Result<Meant, Halt> {
    match invocation.argument() {
        ValueRef::String(text) => match ShapeHash::parse(text) {
            Ok(hash) => Ok(Meant { hash, query: None }),
            Err(NoHash::NotHexadecimal) => {
                Err(Failure::bad_value(format!("The hash '{text}' of a query shape is not hexadecimal")).into())
            }
            Err(NoHash::OfAnotherLength) => {
                let message = format!("The hash of a query shape has 64 digits, and not {}", text.len());
                Err(Failure::new(ErrorCode::INVALID_LENGTH, message).into())
            }
        },
        ValueRef::Document(query) => checked(invocation, query),
        other => {
            let name = invocation.command.name;
            Err(Failure::wrong_type(format_args!("{name}.{name}"), other, "types '[object, string]'").into())
        }
    }
}

/// Parses a command that represents its shape, with the checks that it would pass if it ran.
/// # Errors
/// 7746402 for a command that has no shape; `InvalidNamespace`; 8584900 and 8584901 for internal databases and system
/// collections; 7746606 for a find by `_id`, which is not planned; errors of the command.
fn checked(invocation: &mut Invocation<'_>, query: DocumentRef<'_>) -> Result<Meant, Halt> {
    let first = query.first();
    let command = first.and_then(|first| find(first.name)).filter(|command| command.takes_query_settings());
    let Some(command) = command else {
        let message = "query settings can only be set for find, distinct and aggregate";
        return Err(Failure::new(ErrorCode(7_746_402), message).into());
    };
    let place = invocation.command.name;
    let database = match query.get("$db").filter(|value| !value.is_nullish()) {
        Some(ValueRef::String(database)) => database,
        Some(other) => return Err(bunko_request::fields::wrong_type(&format!("{place}.$db"), other, "string").into()),
        None => return Err(missing(&format!("{place}.$db")).into()),
    };
    let namespace = match first.map(|first| first.value) {
        Some(ValueRef::String(collection)) => Namespace::new(database, collection)?,
        other => {
            let kind = other.map_or("missing", |value| value.kind().alias());
            let message = format!("collection name has invalid type {kind}");
            return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message).into());
        }
    };
    if matches!(database, "admin" | "config" | "local") {
        let message = format!("{place} command cannot be used on internal databases");
        return Err(Failure::new(ErrorCode(8_584_900), message).into());
    }
    if namespace.collection().starts_with("system.") {
        let message = format!("{place} command cannot be used on system collections");
        return Err(Failure::new(ErrorCode(8_584_901), message).into());
    }
    let request = Request::new(database, query, None);
    GenericOptions::parse(invocation.service.deployment(), command, &request)?;
    check_command(&invocation.inner(command, request)?, &namespace)?;
    if command.explain == Explanation::Find && is_by_id(query) {
        let message =
            format!("{place} command cannot be used on find queries eligible for IDHACK, an exact match on _id");
        return Err(Failure::new(ErrorCode(7_746_606), message).into());
    }
    let hash = ShapeHash::of(&shape_of(command, database, query));
    Ok(Meant { hash, query: Some(query.to_owned()) })
}

fn check_command(command: &Invocation<'_>, namespace: &Namespace) -> Result<()> {
    // Settings that the shape has already must not reject the command.
    let scope = |options: &ScopeOptions<'_>| command.scope_without_settings(options.collation, namespace);
    match command.command.explain {
        Explanation::Find => {
            let find = Find::parse(command)?;
            find.query(scope(&find.scope)?).map(drop)
        }
        Explanation::Distinct => {
            let distinct = Distinct::parse(command)?;
            distinct.query(&*scope(&distinct.scope)?).map(drop)
        }
        _ => {
            let request = Aggregate::parse(command)?;
            let stages = request.stages.ok_or_else(|| command.missing("pipeline"))?;
            let scope = request.scope.variables.define_in(scope(&request.scope)?)?;
            Aggregation::prepare(command, Some(namespace), stages, scope).map(drop)
        }
    }
}

/// Whether a find is a lookup by `_id`, which has no plan.
fn is_by_id(query: DocumentRef<'_>) -> bool {
    let is_given = |name: &str| {
        query.get(name).is_some_and(|value| match value {
            ValueRef::Document(document) => !document.is_empty(),
            other => bunko_request::fields::truth(other),
        })
    };
    let Some(filter) = query.get("filter").and_then(ValueRef::as_document) else { return false };
    let equal = filter.get("_id").and_then(ValueRef::as_document).filter(|operators| operators.count() == 1);
    let is_equality = equal.is_some_and(|operators| operators.get("$eq").is_some()) && filter.count() == 1;
    (id_lookup(filter).is_some() || is_equality)
        && !["hint", "max", "min", "showRecordId", "skip", "tailable"].into_iter().any(is_given)
}
