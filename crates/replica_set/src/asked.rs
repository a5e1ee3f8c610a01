//! The configurations in `replSetInitiate` and `replSetReconfig`.
//!
//! The set has one member, so most settings have no effect: they are checked, stored and shown. A value that would need
//! behaviour which this server does not have is refused.
//! Source: MongoDB manual 8.2, "Self-Managed Replica Set Configuration".

use crate::configuration::{self, Member, VERSION_MAX, name_and_port, replaced, shown_term};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, number, order};
use bunko_errors::{ErrorCode, Failure, Result};

/// How much a forced change raises the version, so that it exceeds versions of other changes made meanwhile.
const FORCED_STEP: i64 = 10_000;

/// Whether a change ignores the rules that keep several members together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// The configuration of `replSetInitiate`, completed with defaults.
/// # Errors
/// `InvalidReplicaSetConfig`, `TypeMismatch`; `CommandNotSupported` for several members.
pub(crate) fn initial(asked: DocumentRef<'_>, name: &str, current: &Member) -> Result<DocumentBuf> {
    match asked.get("_id").and_then(ValueRef::as_str) {
        Some(id) if id != name => {
            let message = format!(
                "Attempting to initiate a replica set with name {id}, but command line reports {name}; rejecting"
            );
            Err(invalid(message))
        }
        _ => {
            version_of(asked)?;
            complete(asked, name, current, 1)
        }
    }
}

/// The configuration of `replSetReconfig`, completed with defaults.
/// # Errors
/// As [`initial`]; `NewReplicaSetConfigurationIncompatible` if its version is not above the current one, or if its name
/// differs.
pub(crate) fn next(asked: DocumentRef<'_>, name: &str, current: &Member, force: Force) -> Result<DocumentBuf> {
    let incompatible = |message| Err(Failure::new(ErrorCode::NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE, message));
    if let Some(id) = asked.get("_id").and_then(ValueRef::as_str).filter(|id| *id != name) {
        return incompatible(format!(
            "New and old configurations differ in replica set name; old was {name}, and new is {id}"
        ));
    }
    let had = current.version();
    let version = version_of(asked)?;
    let version = match force {
        Force::Yes => (version.max(had) + FORCED_STEP).min(VERSION_MAX),
        Force::No if version <= had => {
            return incompatible(format!(
                "New replica set configuration version must be greater than old, but {version} is not greater than {had} \
                 for replica set {name}"
            ));
        }
        Force::No => version,
    };
    complete(asked, name, current, version)
}

/// The version that a configuration names, or 1.
/// # Errors
/// `TypeMismatch`; `BadValue` outside of 1..=2,147,483,647.
fn version_of(asked: DocumentRef<'_>) -> Result<i64> {
    let Some(value) = asked.get("version") else { return Ok(1) };
    let bound = match number::as_i64_exact(value) {
        None => return Err(wrong_type("version", value, "int")),
        Some(version @ 1..=VERSION_MAX) => return Ok(version),
        Some(..=0) => "> 0".to_owned(),
        Some(_) => format!("<= {VERSION_MAX}"),
    };
    let value = bunko_bson::text::ValueText(value);
    Err(Failure::bad_value(format!("BSON field 'version' value must be {bound}, actual value '{value}'")))
}

fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, message)
}

/// The complete configuration: each field as requested, or with its default.
fn complete(asked: DocumentRef<'_>, name: &str, current: &Member, version: i64) -> Result<DocumentBuf> {
    let id = configuration::id(current.configuration.as_ref());
    let host = MembersOf(asked).only()?.get("host").and_then(ValueRef::as_str).unwrap_or_default().to_owned();
    let whole = configuration::make(name, &host, version, id);
    let mut made = overlaid(whole.as_ref(), asked, "configuration", |field, value| match field {
        "_id" => text(field, value),
        "version" | "term" => integer(field, value),
        // Checked below.
        "members" | "settings" => Ok(()),
        "protocolVersion" => only(field, value, number::as_i64_exact(value) == Some(1), "1"),
        "writeConcernMajorityJournalDefault" => only(field, value, matches!(value, ValueRef::Boolean(true)), "true"),
        "configsvr" => Err(Failure::not_supported_yet("a set of configuration servers")),
        _ => Err(unknown("configuration", field)),
    })?;
    let parts = whole.as_ref();
    let of_whole = MembersOf(parts).only()?;
    let member = overlaid(of_whole, MembersOf(asked).only()?, "member", check_member)?;
    let (host_name, port) = name_and_port(&host);
    let named = if host.ends_with(&format!(":{port}")) { host.clone() } else { format!("{host_name}:{port}") };
    let member = replaced(member.as_ref(), &[("host", ValueRef::String(&named))]);
    let members: ArrayBuf = [&member].into_iter().collect();
    let settings = match asked.get("settings") {
        None => parts.get("settings").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY).to_owned(),
        Some(settings) => {
            let settings = settings.as_document().ok_or_else(|| wrong_type("settings", settings, "object"))?;
            let of_whole = parts.get("settings").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
            overlaid(of_whole, settings, "settings", |field, value| check_setting(field, value, of_whole))?
        }
    };
    made = replaced(
        made.as_ref(),
        &[
            ("version", ValueRef::Int32(version as i32)),
            ("term", shown_term(current.term())),
            ("members", ValueRef::Array(members.as_ref())),
            ("settings", ValueRef::Document(settings.as_ref())),
        ],
    );
    Ok(made)
}

/// The members of a configuration.
struct MembersOf<'a>(DocumentRef<'a>);

impl<'a> MembersOf<'a> {
    fn only(&self) -> Result<DocumentRef<'a>> {
        let members = self.0.get("members").ok_or_else(|| invalid("the configuration names no members"))?;
        let members = members.as_array().ok_or_else(|| wrong_type("members", members, "array"))?;
        match (members.iter().next(), members.iter().count()) {
            (Some(ValueRef::Document(member)), 1) => Ok(member),
            (Some(other), 1) => Err(wrong_type("members.0", other, "object")),
            (None, _) => Err(invalid("Replica set configuration contains no members")),
            _ => Err(Failure::not_supported_yet("a replica set of several members")),
        }
    }
}

fn check_member(field: &str, value: ValueRef<'_>) -> Result<()> {
    match field {
        "_id" => match number::as_i64_exact(value) {
            Some(0..=255) => Ok(()),
            Some(id) => Err(invalid(format!("_id field value of {id} is out of range"))),
            None => Err(wrong_type("members.0._id", value, "int")),
        },
        "host" => text("members.0.host", value),
        "votes" => only("members.0.votes", value, number::as_f64(value) == Some(1.0), "1"),
        "priority" => {
            let priority = number::as_f64(value).ok_or_else(|| wrong_type("members.0.priority", value, "double"))?;
            let is_electable = priority > 0.0 && priority <= 1000.0;
            only(
                "members.0.priority",
                value,
                is_electable,
                "above 0 and at most 1000: the only member must be electable",
            )
        }
        "arbiterOnly" | "hidden" => {
            let is_off = !bunko_request::fields::truth(value);
            only(&format!("members.0.{field}"), value, is_off, "false: the only member must be electable")
        }
        "buildIndexes" => only("members.0.buildIndexes", value, bunko_request::fields::truth(value), "true"),
        "secondaryDelaySecs" => only("members.0.secondaryDelaySecs", value, number::as_f64(value) == Some(0.0), "0"),
        "tags" => match value.as_document() {
            Some(tags) => tags.iter().try_for_each(|tag| text(&format!("members.0.tags.{}", tag.name), tag.value)),
            None => Err(wrong_type("members.0.tags", value, "object")),
        },
        "horizons" => Err(Failure::not_supported_yet("members.0.horizons")),
        _ => Err(unknown("member", field)),
    }
}

fn check_setting(field: &str, value: ValueRef<'_>, of_whole: DocumentRef<'_>) -> Result<()> {
    let name = format!("settings.{field}");
    match field {
        "chainingAllowed" if matches!(value, ValueRef::Boolean(_)) => Ok(()),
        "chainingAllowed" => Err(wrong_type(&name, value, "bool")),
        "heartbeatIntervalMillis" | "heartbeatTimeoutSecs" | "electionTimeoutMillis" => {
            integer(&name, value)?;
            only(&name, value, number::as_f64(value).is_some_and(|number| number > 0.0), "above 0")
        }
        "catchUpTimeoutMillis" | "catchUpTakeoverDelayMillis" => {
            integer(&name, value)?;
            only(&name, value, number::as_f64(value).is_some_and(|number| number >= -1.0), "-1 or more")
        }
        "getLastErrorModes" => match value.as_document() {
            Some(modes) if modes.is_empty() => Ok(()),
            Some(_) => Err(Failure::not_supported_yet("settings.getLastErrorModes with a mode")),
            None => Err(wrong_type(&name, value, "object")),
        },
        "getLastErrorDefaults" | "replicaSetId" => {
            let current = of_whole.get(field);
            only(&name, value, current.is_some_and(|current| order::equal(current, value)), "what it is")
        }
        _ => Err(unknown("settings", field)),
    }
}

fn unknown(place: &str, field: &str) -> Failure {
    invalid(format!("Unexpected field {field} in replica set {place}"))
}

fn wrong_type(field: &str, value: ValueRef<'_>, expected: &str) -> Failure {
    let kind = value.kind().alias();
    Failure::type_mismatch(format!("\"{field}\" had the wrong type. Expected {expected}, found {kind}"))
}

fn text(field: &str, value: ValueRef<'_>) -> Result<()> {
    match value.as_str() {
        Some("") => Err(invalid(format!("{field} may not be empty"))),
        Some(_) => Ok(()),
        None => Err(wrong_type(field, value, "string")),
    }
}

fn integer(field: &str, value: ValueRef<'_>) -> Result<()> {
    number::as_i64_exact(value).map(drop).ok_or_else(|| wrong_type(field, value, "int"))
}

/// Refuses a value unless `is_it` holds.
fn only(field: &str, value: ValueRef<'_>, is_it: bool, expected: &str) -> Result<()> {
    if is_it {
        return Ok(());
    }
    let value = bunko_bson::text::ValueText(value);
    Err(invalid(format!("{field} is {value} and must be {expected}")))
}

/// `below`, with the fields of `above` in their places. `check` checks each field of `above`.
fn overlaid(
    below: DocumentRef<'_>,
    above: DocumentRef<'_>,
    place: &str,
    check: impl Fn(&str, ValueRef<'_>) -> Result<()>,
) -> Result<DocumentBuf> {
    let mut named = std::collections::HashSet::new();
    for element in above {
        if !named.insert(element.name) {
            return Err(invalid(format!("{place} names {} twice", element.name)));
        }
        check(element.name, element.value)?;
    }
    let fields: Vec<_> = above.iter().map(|element| (element.name, element.value)).collect();
    Ok(replaced(below, &fields))
}
