//! A server's own description of itself.

use crate::uri::{Host, ReadPreference, Uri};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use std::fmt;

/// A server's role towards clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Belongs to no replica set.
    Standalone,
    /// Routes to shards.
    Router,
    /// Takes the set's writes.
    Primary,
    /// Holds the set's data.
    Secondary,
    /// Only votes.
    Arbiter,
    /// A member that is starting, rolling back, or hidden from clients.
    Other,
    /// Is meant for a replica set that has not been initiated.
    Uninitiated,
}

/// How well a server suits a read preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// No other role would suit better.
    Best,
    /// The server suits only if no better role is found.
    SecondBest,
    /// The server does not suit.
    None,
}

/// Whether the reply to `hello` is a router's of a sharded cluster (mongos).
pub fn is_router(hello: DocumentRef<'_>) -> bool {
    hello.get("msg").and_then(ValueRef::as_str) == Some("isdbgrid")
}

impl Role {
    /// Reads the reply to a handshake.
    pub fn of(hello: DocumentRef<'_>) -> Self {
        let is = |name| matches!(hello.get(name), Some(ValueRef::Boolean(true)));
        if is_router(hello) {
            return Self::Router;
        }
        if is("isreplicaset") {
            return Self::Uninitiated;
        }
        if set_name(hello).is_none() {
            return Self::Standalone;
        }
        match () {
            () if is("hidden") => Self::Other,
            () if is("isWritablePrimary") || is("ismaster") => Self::Primary,
            () if is("secondary") => Self::Secondary,
            () if is("arbiterOnly") => Self::Arbiter,
            () => Self::Other,
        }
    }

    /// Whether clients authenticate to a server of this role. Arbiters know no users.
    pub fn authenticates(self) -> bool {
        self != Self::Arbiter
    }

    /// How well a server of this role serves a preference.
    pub(super) fn fit(self, preference: ReadPreference) -> Fit {
        use ReadPreference::{Nearest, Primary, PrimaryPreferred, Secondary, SecondaryPreferred};
        match (self, preference) {
            // There is no choice: a standalone has no set, and a router chooses by itself.
            (Self::Standalone | Self::Router, _) => Fit::Best,
            (Self::Primary, Primary | PrimaryPreferred | Nearest) => Fit::Best,
            (Self::Secondary, Secondary | SecondaryPreferred | Nearest) => Fit::Best,
            (Self::Primary, SecondaryPreferred) | (Self::Secondary, PrimaryPreferred) => Fit::SecondBest,
            _ => Fit::None,
        }
    }

    /// The `$readPreference` that reads on a connection to such a server have to carry, if any.
    ///
    /// Source: MongoDB server selection specification, "Passing read preference to mongos and load balancers" and
    /// "Topology type: Single".
    pub fn read_preference(self, uri: &Uri) -> Option<DocumentBuf> {
        match (self, uri.read_preference) {
            (Self::Standalone, _) => None,
            // A secondary with a direct connection serves reads only if they allow it.
            (Self::Secondary | Self::Other | Self::Arbiter, ReadPreference::Primary) if uri.direct_connection => {
                Some(ReadPreference::PrimaryPreferred.to_document())
            }
            (_, ReadPreference::Primary) => None,
            (_, other) => Some(other.to_document()),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standalone => "a standalone server",
            Self::Router => "a router",
            Self::Primary => "the primary",
            Self::Secondary => "a secondary",
            Self::Arbiter => "an arbiter",
            Self::Other => "no member that serves clients",
            Self::Uninitiated => "of a replica set that is not initiated",
        })
    }
}

/// The replica set that the server belongs to.
pub(super) fn set_name(hello: DocumentRef<'_>) -> Option<&str> {
    hello.get("setName").and_then(ValueRef::as_str)
}

/// All members that a server knows of, including itself. Entries that are not addresses are skipped.
pub(super) fn listed_hosts(hello: DocumentRef<'_>) -> Vec<Host> {
    let lists = ["hosts", "passives"].into_iter().filter_map(|name| hello.get(name)?.as_array());
    let listed = lists.flat_map(|list| list.iter().filter_map(ValueRef::as_str));
    let primary = hello.get("primary").and_then(ValueRef::as_str);
    listed.chain(primary).filter_map(|address| Host::from_address(address).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::ArrayBuf;

    fn member() -> DocumentBuf {
        DocumentBuf::new().with("setName", "rs0")
    }

    #[test]
    fn roles_are_read() {
        let role = |hello: DocumentBuf| Role::of(hello.as_ref());
        assert_eq!(role(DocumentBuf::new().with("ismaster", true)), Role::Standalone);
        assert_eq!(role(DocumentBuf::new().with("ismaster", true).with("msg", "isdbgrid")), Role::Router);
        assert_eq!(role(DocumentBuf::new().with("isreplicaset", true)), Role::Uninitiated);
        assert_eq!(role(member().with("isWritablePrimary", true)), Role::Primary);
        assert_eq!(role(member().with("ismaster", true)), Role::Primary);
        assert_eq!(role(member().with("secondary", true)), Role::Secondary);
        assert_eq!(role(member().with("secondary", true).with("hidden", true)), Role::Other);
        assert_eq!(role(member().with("arbiterOnly", true)), Role::Arbiter);
        assert_eq!(role(member()), Role::Other);
    }

    #[test]
    fn members_are_read() {
        let hosts: ArrayBuf = ["A:1", "b:2", "b:x"].into_iter().collect();
        let passives: ArrayBuf = ["c"].into_iter().collect();
        let hello = member().with("hosts", &hosts).with("passives", &passives).with("primary", "b:2");
        let listed: Vec<_> = listed_hosts(hello.as_ref()).iter().map(Host::to_string).collect();
        assert_eq!(listed, ["a:1", "b:2", "c:27017", "b:2"]);
    }

    #[test]
    fn reads_say_what_servers_need() {
        let said = |role: Role, options: &str| {
            let uri: Uri = format!("mongodb://h/?{options}").parse().expect("valid");
            let document = role.read_preference(&uri)?;
            document.as_ref().get("mode")?.as_str().map(str::to_owned)
        };
        assert_eq!(said(Role::Standalone, "readPreference=nearest"), None);
        assert_eq!(said(Role::Primary, "directConnection=true"), None);
        assert_eq!(said(Role::Secondary, "directConnection=true").as_deref(), Some("primaryPreferred"));
        assert_eq!(said(Role::Secondary, "readPreference=nearest").as_deref(), Some("nearest"));
        assert_eq!(said(Role::Router, "readPreference=secondary").as_deref(), Some("secondary"));
    }
}
