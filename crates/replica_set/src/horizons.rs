//! Split horizons: clients that reach the members under other names than the members among each other.
//!
//! Each member has a host for each horizon. A client's horizon is that of the name that it gives in its TLS handshake
//! (SNI), and `hello` names all members as that horizon does.
//! Source: MongoDB manual 8.2, "Self-Managed Replica Set Configuration", `members[n].horizons`.

use crate::Listed;
use crate::checks::{check_member, invalid, text, wrong_type};
use crate::configuration::{Member, name_and_port};
use bunko_bson::ValueRef;
use bunko_errors::Result;
use std::net::IpAddr;

/// The name of the horizon that the hosts of the members are in.
const DEFAULT: &str = "__default";

impl Listed {
    /// Its `host:port` in a horizon.
    pub fn host_in(&self, horizon: Option<&str>) -> &str {
        let found = horizon.and_then(|horizon| self.horizons.iter().find(|(name, _)| name == horizon));
        found.map_or(&self.host, |(_, host)| host)
    }
}

impl Member {
    /// The horizon of a client that has reached this member under that name; `None` if it is the one of the members.
    pub fn horizon(&self, server_name: Option<&str>) -> Option<&str> {
        let server_name = server_name?;
        let is_it = |host: &str| name_and_port(host).0.eq_ignore_ascii_case(server_name);
        let own = self.own().filter(|own| !is_it(&own.host))?;
        own.horizons.iter().find(|(_, host)| is_it(host)).map(|(name, _)| name.as_str())
    }
}

/// As [`check_member`], with the field for horizons.
/// # Errors
/// As there.
pub(crate) fn check_member_field(place: &str, field: &str, value: ValueRef<'_>) -> Result<()> {
    match field {
        "horizons" => check_field(&format!("{place}.{field}"), value),
        _ => check_member(place, field, value),
    }
}

/// Checks the horizons of one member.
/// # Errors
/// `InvalidReplicaSetConfig`, `TypeMismatch`.
fn check_field(name: &str, value: ValueRef<'_>) -> Result<()> {
    let horizons = value.as_document().ok_or_else(|| wrong_type(name, value, "object"))?;
    if horizons.is_empty() {
        return Err(invalid("horizons field cannot be empty, if present"));
    }
    for (index, horizon) in horizons.iter().enumerate() {
        let place = format!("{name}.{}", horizon.name);
        text(&place, horizon.value)?;
        let host = horizon.value.as_str().unwrap_or_default();
        if horizon.name.is_empty() {
            return Err(invalid("Horizons cannot have empty names"));
        }
        if horizon.name == DEFAULT {
            return Err(invalid(format!("Horizon name \"{DEFAULT}\" is reserved for internal mongodb usage")));
        }
        if horizons.iter().take(index).any(|other| other.name == horizon.name) {
            return Err(invalid(format!("Duplicate horizon name found \"{}\".", horizon.name)));
        }
        let (host_name, port) = name_and_port(host);
        if !host.ends_with(&format!(":{port}")) {
            return Err(invalid(format!("{place} is '{host}' and must be a host with a port")));
        }
        if host_name.parse::<IpAddr>().is_ok() {
            return Err(invalid(format!(
                "Found split horizon configuration using IP \"{host}\": a client names no IP address in its TLS handshake"
            )));
        }
    }
    Ok(())
}

/// Checks the horizons of all members beside each other.
/// # Errors
/// `InvalidReplicaSetConfig`.
pub(crate) fn check_horizons(members: &[Listed]) -> Result<()> {
    let names = |member: &Listed| {
        let mut names: Vec<_> = member.horizons.iter().map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        names
    };
    let Some(first) = members.first().map(names) else { return Ok(()) };
    if members.iter().any(|member| names(member) != first) {
        return Err(invalid("Saw a replica set member with a different horizon view from the others."));
    }
    let hosts = || members.iter().flat_map(|member| member.horizons.iter().map(|(_, host)| host).chain([&member.host]));
    for (index, host) in hosts().enumerate() {
        if hosts().take(index).any(|other| other == host) {
            return Err(invalid(format!("Duplicate horizon member found \"{host}\".")));
        }
    }
    for member in members {
        let mut names: Vec<_> = member.horizons.iter().map(|(_, host)| name_and_port(host).0).collect();
        names.sort_unstable();
        if let Some([twice, _]) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(invalid(format!("Duplicate horizon member found \"{twice}\".")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentBuf;
    use bunko_testkit::shell;

    fn configuration(members: &[&str]) -> DocumentBuf {
        let member = |(id, horizons): (usize, &&str)| {
            format!("{{_id: {id}, host: 'm{id}:27017', priority: 1, horizons: {horizons}}}")
        };
        let members: Vec<_> = members.iter().enumerate().map(member).collect();
        shell::parse_document(&format!("{{_id: 'rs', members: [{}]}}", members.join(", "))).expect("a document")
    }

    #[test]
    fn a_client_sees_the_horizon_whose_name_it_used() {
        let whole = configuration(&["{out: 'a.example:1', in: 'a.local:2'}", "{out: 'b.example:1', in: 'b.local:2'}"]);
        let member = Member::with_id(whole, 0);
        let seen = |name: Option<&str>| {
            let horizon = member.horizon(name);
            member.listed.iter().map(|listed| listed.host_in(horizon).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(seen(Some("A.example")), ["a.example:1", "b.example:1"]);
        assert_eq!(seen(Some("a.local")), ["a.local:2", "b.local:2"]);
        for other in [None, Some("m0"), Some("b.example"), Some("elsewhere")] {
            assert_eq!(seen(other), ["m0:27017", "m1:27017"], "{other:?}");
        }
    }

    #[test]
    fn horizons_are_checked() {
        for (horizons, words) in [
            (["{out: 'a:1'}", "{out: 'b:1'}"], ""),
            (["{out: 'a:1'}", "{in: 'b:1'}"], "a different horizon view"),
            (["{out: 'a:1'}", "{out: 'a:1'}"], "Duplicate horizon member found \"a:1\"."),
            (["{out: 'm1:27017'}", "{out: 'b:1'}"], "Duplicate horizon member found \"m1:27017\"."),
            (["{out: 'a:1', in: 'a:2'}", "{out: 'b:1', in: 'b:2'}"], "Duplicate horizon member found \"a\"."),
            (["{}", "{}"], "horizons field cannot be empty"),
            (["{out: 'a'}", "{out: 'b:1'}"], "must be a host with a port"),
            (["{out: '10.0.0.1:1'}", "{out: 'b:1'}"], "using IP \"10.0.0.1:1\""),
            (["{__default: 'a:1'}", "{__default: 'b:1'}"], "is reserved"),
            (["{out: 1}", "{out: 'b:1'}"], "wrong type"),
        ] {
            let whole = configuration(&horizons);
            let members = whole.as_ref().get("members").and_then(ValueRef::as_array).expect("members");
            let horizons_of = |member: ValueRef<'_>| {
                check_field("horizons", member.as_document().and_then(|it| it.get("horizons")).expect("horizons"))
            };
            let checked = members.iter().try_for_each(horizons_of);
            let checked = checked.and_then(|()| check_horizons(&Listed::all(whole.as_ref()).expect("members")));
            match checked {
                Ok(()) => assert_eq!(words, "", "{horizons:?}"),
                Err(failure) => {
                    let message = failure.message();
                    assert!(!words.is_empty() && message.contains(words), "{horizons:?}: {message}");
                }
            }
        }
    }
}
