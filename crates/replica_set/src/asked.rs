//! The configurations in `replSetInitiate` and `replSetReconfig`.
//!
//! In a set of one member, most settings have no effect: they are checked, stored and shown. A value that would need
//! behaviour which this server does not have is refused.
//! Source: MongoDB manual 8.2, "Self-Managed Replica Set Configuration".

use crate::Listed;
use crate::asked_members::{complete_members, default_settings};
use crate::checks::{integer, invalid, only, overlaid, text, unknown, wrong_type};
use crate::configuration::{self, Member, VERSION_MAX, replaced, shown_term, with_port};
use crate::horizons::{check_horizons, check_member_field};
use crate::modes::check_modes;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef, number, order};
use bunko_errors::{ErrorCode, Failure, Result};

/// How much a forced change raises the version, so that it exceeds versions of other changes made meanwhile.
const FORCED_STEP: i64 = 10_000;

/// Whether a change ignores the rules that keep several members together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// The rules are ignored.
    Yes,
    /// The rules hold.
    No,
}

/// How many members a set has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// A single member, which elects itself.
    One,
    /// Several, or one that is left of them: the members elect a primary.
    Several,
}

impl Extent {
    /// The extent of a set with the members that a configuration names.
    pub(crate) fn of(asked: DocumentRef<'_>) -> Result<Self> {
        Ok(if members_of(asked)?.iter().count() == 1 { Self::One } else { Self::Several })
    }
}

/// The configuration of `replSetInitiate`, completed with defaults.
/// # Errors
/// `InvalidReplicaSetConfig`, `TypeMismatch`; `CommandNotSupported` for kinds of members that are not supported yet.
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
            complete(asked, name, current, (1, Extent::of(asked)?))
        }
    }
}

/// The configuration of `replSetReconfig`, completed with defaults.
/// # Errors
/// As [`initial`]; `NewReplicaSetConfigurationIncompatible` if its version is not above the current one, or if its name
/// differs.
pub(crate) fn next(
    asked: DocumentRef<'_>,
    name: &str,
    current: &Member,
    force: Force,
    extent: Extent,
) -> Result<DocumentBuf> {
    let incompatible = |message| Err(Failure::new(ErrorCode::NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE, message));
    if let Some(id) = asked.get("_id").and_then(ValueRef::as_str).filter(|id| *id != name) {
        return incompatible(format!(
            "New and old configurations differ in replica set name; old was {name}, and new is {id}"
        ));
    }
    let had = current.version();
    let version = version_of(asked)?;
    let version = match force {
        // The members raise it themselves.
        Force::Yes if extent == Extent::Several => version.max(had),
        Force::Yes => (version.max(had) + FORCED_STEP).min(VERSION_MAX),
        Force::No if version <= had => {
            return incompatible(format!(
                "New replica set configuration version must be greater than old, but {version} is not greater than {had} \
                 for replica set {name}"
            ));
        }
        Force::No => version,
    };
    complete(asked, name, current, (version, extent))
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

/// The complete configuration: each field as requested, or with its default.
fn complete(
    asked: DocumentRef<'_>,
    name: &str,
    current: &Member,
    (version, extent): (i64, Extent),
) -> Result<DocumentBuf> {
    let id = configuration::set_id(current.configuration.as_ref());
    let members = members_of(asked)?;
    let first = members.iter().next().and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
    let host = first.get("host").and_then(ValueRef::as_str).unwrap_or_default();
    let whole = configuration::make(name, host, version, id);
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
    let of_whole = whole.as_ref().get("settings").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
    let (members, of_whole): (ArrayBuf, _) = match extent {
        Extent::One => ([&only_member(first)?].into_iter().collect(), of_whole.to_owned()),
        Extent::Several => (complete_members(members)?, default_settings(of_whole)),
    };
    let of_whole = of_whole.as_ref();
    let settings = match asked.get("settings") {
        None => of_whole.to_owned(),
        Some(settings) => {
            let settings = settings.as_document().ok_or_else(|| wrong_type("settings", settings, "object"))?;
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
    check_modes(made.as_ref())?;
    check_horizons(&Listed::all(made.as_ref()).map_err(invalid)?)?;
    Ok(made)
}

/// The members of a configuration; at least one.
fn members_of(asked: DocumentRef<'_>) -> Result<ArrayRef<'_>> {
    let members = asked.get("members").ok_or_else(|| invalid("the configuration names no members"))?;
    let members = members.as_array().ok_or_else(|| wrong_type("members", members, "array"))?;
    match members.iter().next() {
        Some(ValueRef::Document(_)) => Ok(members),
        Some(other) => Err(wrong_type("members.0", other, "object")),
        None => Err(invalid("Replica set configuration contains no members")),
    }
}

/// The complete member of a set of one.
fn only_member(asked: DocumentRef<'_>) -> Result<DocumentBuf> {
    let host = asked.get("host").and_then(ValueRef::as_str).unwrap_or_default();
    let defaults = configuration::member(0, host);
    let member =
        overlaid(defaults.as_ref(), asked, "member", |field, value| check_member_field("members.0", field, value))?;
    Ok(replaced(member.as_ref(), &[("host", ValueRef::String(&with_port(host)))]))
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
        // Checked once the members are complete.
        "getLastErrorModes" if value.as_document().is_some() => Ok(()),
        "getLastErrorModes" => Err(wrong_type(&name, value, "object")),
        "getLastErrorDefaults" => {
            let is_default = of_whole.get(field).is_some_and(|default| order::equal(default, value));
            only(&name, value, is_default, "{w: 1, wtimeout: 0}: setDefaultRWConcern sets the default write concern")
        }
        "replicaSetId" => {
            let current = of_whole.get(field);
            only(&name, value, current.is_some_and(|current| order::equal(current, value)), "what it is")
        }
        _ => Err(unknown("settings", field)),
    }
}
