//! The members in the configuration of a set of several.
//! Source: MongoDB manual 8.2, "Self-Managed Replica Set Configuration".

use crate::checks::{invalid, overlaid, wrong_type};
use crate::configuration::{self, name_and_port, replaced, with_port};
use crate::horizons::check_member_field;
use crate::listed::Listed;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};

/// Maximum number of members of a set, and of those that vote.
const MEMBERS_MAX: usize = 50;
const VOTERS_MAX: usize = 7;
/// Longest delay of a member, as in MongoDB: a leap year.
const DELAY_SECS_MAX: i64 = 366 * 24 * 3600;
/// The election timeout of a set whose configuration names none, in milliseconds.
const ELECTION_TIMEOUT_MS: i32 = 1000;
const HEARTBEAT_INTERVAL_MS: i32 = 200;

/// The complete members of a configuration of several.
/// # Errors
/// `InvalidReplicaSetConfig`, `TypeMismatch`; `CommandNotSupported` for kinds of members that are not supported yet.
pub(crate) fn complete_members(asked: ArrayRef<'_>) -> Result<ArrayBuf> {
    let mut members = ArrayBuf::new();
    for (index, member) in asked.iter().enumerate() {
        let place = format!("members.{index}");
        let member = member.as_document().ok_or_else(|| wrong_type(&place, member, "object"))?;
        for name in ["_id", "host"] {
            if member.get(name).is_none() {
                return Err(Failure::new(
                    ErrorCode::IDL_FAILED_TO_PARSE,
                    format!("BSON field 'MemberConfig.{name}' is missing but a required field"),
                ));
            }
        }
        members.push(&complete_member(&place, member)?);
    }
    let whole = DocumentBuf::new().with("members", &members);
    check_all(&Listed::all(whole.as_ref()).map_err(invalid)?)?;
    Ok(members)
}

fn complete_member(place: &str, asked: DocumentRef<'_>) -> Result<DocumentBuf> {
    let is_on = |name: &str| asked.get(name).is_some_and(bunko_request::fields::truth);
    let host = asked.get("host").and_then(ValueRef::as_str).unwrap_or_default();
    let mut defaults = configuration::member(0, host);
    if is_on("arbiterOnly") {
        defaults = replaced(defaults.as_ref(), &[("priority", ValueRef::Int32(0))]);
    }
    let member = overlaid(defaults.as_ref(), asked, "member", |field, value| check_field(place, field, value))?;
    Ok(replaced(member.as_ref(), &[("host", ValueRef::String(&with_port(host)))]))
}

fn check_field(place: &str, field: &str, value: ValueRef<'_>) -> Result<()> {
    let is_on = bunko_request::fields::truth(value);
    let as_number = || number::as_f64(value).ok_or_else(|| wrong_type(&format!("{place}.{field}"), value, "double"));
    let out_of_range = |range: &str| {
        let value = bunko_bson::text::ValueText(value);
        Err(invalid(format!("{place}.{field} is {value} and must be {range}")))
    };
    match field {
        "votes" if ![0.0, 1.0].contains(&as_number()?) => out_of_range("0 or 1"),
        "priority" if !(0.0..=1000.0).contains(&as_number()?) => out_of_range("between 0 and 1000"),
        "votes" | "priority" | "arbiterOnly" => Ok(()),
        "secondaryDelaySecs" => match number::as_i64_exact(value) {
            Some(0..=DELAY_SECS_MAX) => Ok(()),
            Some(delay) => Err(invalid(format!("secondaryDelaySecs field value of {delay} seconds is out of range"))),
            None => Err(wrong_type(&format!("{place}.{field}"), value, "long")),
        },
        "buildIndexes" if !is_on => Err(Failure::not_supported_yet("a member without indexes")),
        "hidden" | "buildIndexes" => Ok(()),
        _ => check_member_field(place, field, value),
    }
}

/// Checks the members against each other.
fn check_all(members: &[Listed]) -> Result<()> {
    if members.len() > MEMBERS_MAX {
        let message = format!(
            "Replica set configuration contains {} members, but must have at least 1 and no more than {MEMBERS_MAX}",
            members.len()
        );
        return Err(invalid(message));
    }
    for (second, member) in members.iter().enumerate() {
        let equal =
            |is_equal: fn(&Listed, &Listed) -> bool| members[..second].iter().position(|other| is_equal(other, member));
        if let Some(first) = equal(|one, other| one.id == other.id) {
            return Err(invalid(format!(
                "Found two member configurations with same _id field, members.{first}._id == members.{second}._id == {}",
                member.id
            )));
        }
        if let Some(first) = equal(|one, other| one.host == other.host) {
            return Err(invalid(format!(
                "Found two member configurations with same host field, members.{first}.host == members.{second}.host == {}",
                member.host
            )));
        }
        if member.arbiter && (member.priority > 0.0 || !member.votes || member.hidden) {
            return Err(invalid(format!("members.{second}: an arbiter votes, is not hidden, and its priority is 0")));
        }
        if member.arbiter && !member.tags.is_empty() {
            return Err(invalid("Cannot set tags on arbiters."));
        }
        if member.arbiter && member.delay_secs > 0 {
            return Err(invalid(format!("members.{second}: an arbiter has no data that could be delayed")));
        }
        if member.delay_secs > 0 && member.priority > 0.0 {
            return Err(invalid("priority must be 0 when secondaryDelaySecs is used"));
        }
        if member.hidden && member.priority > 0.0 {
            return Err(invalid("priority must be 0 when hidden=true"));
        }
        if !member.votes && member.priority > 0.0 {
            return Err(invalid("priority must be 0 when non-voting (votes:0)"));
        }
    }
    let voters = members.iter().filter(|member| member.votes).count();
    if voters > VOTERS_MAX {
        return Err(invalid(format!(
            "Replica set configuration contains {voters} voting members, but must be at least 1 and no more than {VOTERS_MAX}"
        )));
    }
    if !members.iter().any(|member| member.priority > 0.0) {
        return Err(invalid(
            "Replica set configuration must contain at least one non-arbiter member with priority > 0",
        ));
    }
    let local = members.iter().filter(|member| is_loopback(name_and_port(&member.host).0)).count();
    if local != 0 && local != members.len() {
        return Err(invalid(format!(
            "Either all host names in a replica set configuration must be localhost references, or none must be; found \
             {local} out of {}",
            members.len()
        )));
    }
    Ok(())
}

fn is_loopback(name: &str) -> bool {
    name == "localhost" || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

/// The settings of a new set of several members, where the client names none.
pub(crate) fn default_settings(settings: DocumentRef<'_>) -> DocumentBuf {
    replaced(
        settings,
        &[
            ("heartbeatIntervalMillis", ValueRef::Int32(HEARTBEAT_INTERVAL_MS)),
            ("electionTimeoutMillis", ValueRef::Int32(ELECTION_TIMEOUT_MS)),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::shell;

    fn completed(members: &str) -> Result<ArrayBuf> {
        let parsed = shell::parse_document(&format!("{{members: {members}}}")).expect("a document");
        complete_members(parsed.as_ref().get("members").and_then(ValueRef::as_array).expect("an array"))
    }

    #[test]
    fn contradictions_between_members_are_named() {
        let member = |rest: &str| format!(r#"{{"_id": 0, "host": "a:1"}}, {{{rest}}}"#);
        for (rest, words) in [
            (r#""_id": 0, "host": "b:1""#, "same _id field, members.0._id == members.1._id == 0"),
            (r#""_id": 1, "host": "a:1""#, "same host field, members.0.host == members.1.host == a:1"),
            (r#""_id": 1, "host": "localhost""#, "found 1 out of 2"),
            (r#""_id": 1, "host": "b", "arbiterOnly": true, "priority": 1"#, "members.1: an arbiter"),
            (r#""_id": 1, "host": "b", "arbiterOnly": true, "tags": {"dc": "a"}"#, "Cannot set tags on arbiters."),
            (r#""_id": 1, "host": "b", "votes": 0"#, "priority must be 0"),
            (r#""_id": 1, "host": "b", "votes": 2"#, "members.1.votes is 2"),
            (r#""_id": 1, "host": "b", "hidden": true"#, "priority must be 0 when hidden=true"),
            (
                r#""_id": 1, "host": "b", "secondaryDelaySecs": 60"#,
                "priority must be 0 when secondaryDelaySecs is used",
            ),
            (
                r#""_id": 1, "host": "b", "secondaryDelaySecs": -1, "priority": 0"#,
                "field value of -1 seconds is out of",
            ),
            (r#""_id": 1, "host": "b", "secondaryDelaySecs": 31622401, "priority": 0"#, "of 31622401 seconds is out"),
            (r#""_id": 1, "host": "b", "secondaryDelaySecs": 60, "arbiterOnly": true"#, "members.1: an arbiter has no"),
            (r#""_id": 1, "host": "b", "priority": -1"#, "members.1.priority is -1"),
            (r#""_id": 1"#, "'MemberConfig.host' is missing"),
            (r#""_id": 1, "host": "b", "colour": 1"#, "Unexpected field colour"),
        ] {
            let error = completed(&format!("[{}]", member(rest))).expect_err(rest);
            assert!(error.message().contains(words), "{rest}: {}", error.message());
        }
        let members = completed(&format!("[{}]", member(r#""_id": 1, "host": "b", "arbiterOnly": true"#)));
        let members = DocumentBuf::new().with("members", &members.expect("valid"));
        let listed = Listed::all(members.as_ref()).expect("complete");
        assert_eq!((listed[1].host.as_str(), listed[1].arbiter, listed[1].priority), ("b:27017", true, 0.0));
    }
}
