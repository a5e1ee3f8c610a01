//! The logins of the other members of a set: by the key that all members share, or by certificate. Both make the connection
//! one of the user `__system` of `local`, who may do everything and has no document.
//! Source: MongoDB manual 8.2, "Internal/Membership Authentication".

use bunko_access::{Mechanism, Name, ScramCredential};
use std::fmt;

/// The mechanism by which members log in with a key.
pub const KEY_MECHANISM: Mechanism = Mechanism::ScramSha256;
/// The attributes of a certificate's subject that the certificates of all members have in common.
const COMMON_ATTRIBUTES: [&str; 3] = ["O", "OU", "DC"];
const NAME: &str = "__system";
const DATABASE: &str = "local";

/// Returns the subject of the server's present certificate.
pub type OwnSubject = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// The proofs that make a client a member.
pub struct Membership {
    /// The credentials of the keys; empty if members log in by certificate alone.
    keys: Vec<ScramCredential>,
    /// Returns the server's own subject; `None` if members cannot log in by certificate.
    certificate: Option<OwnSubject>,
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

impl Membership {
    /// Membership by one of `keys`, each hashed in `iterations` iterations, or by a certificate with the common
    /// attributes of the server's own. Takes milliseconds for each key.
    pub fn new(iterations: u32, keys: &[&str], certificate: Option<OwnSubject>, random: &dyn Fn() -> u64) -> Self {
        let salt: Vec<u8> =
            std::iter::repeat_with(|| random().to_le_bytes()).flatten().take(KEY_MECHANISM.salt_bytes()).collect();
        // A key has characters of base64 alone, which SASLprep leaves as they are.
        let credential = |key: &&str| ScramCredential::of_password(KEY_MECHANISM, key, salt.clone(), iterations);
        Self { keys: keys.iter().map(credential).collect(), certificate }
    }

    /// The credentials of the keys for a mechanism.
    pub(crate) fn credentials(&self, mechanism: Mechanism) -> &[ScramCredential] {
        if mechanism == KEY_MECHANISM { &self.keys } else { &[] }
    }

    /// Whether a client with such a certificate is a member.
    pub fn has_certificate_like(&self, subject: &str) -> bool {
        let own = self.certificate.as_ref().and_then(|certificate| certificate());
        own.is_some_and(|own| is_of_one_cluster(&own, subject))
    }
}

/// The user that members are logged in as.
pub fn member_name() -> Name {
    Name::new(NAME, DATABASE)
}

/// Whether two subjects, in the form of RFC 2253, have the same organizations, units and domain components, and at least one
/// of them. Their order does not matter.
fn is_of_one_cluster(one: &str, other: &str) -> bool {
    let one = common_attributes(one);
    !one.is_empty() && one == common_attributes(other)
}

fn common_attributes(subject: &str) -> Vec<&str> {
    let mut attributes = attributes(subject);
    attributes.retain(|attribute| attribute.split_once('=').is_some_and(|(kind, _)| COMMON_ATTRIBUTES.contains(&kind)));
    attributes.sort_unstable();
    attributes
}

/// The attributes of a subject, `KIND=VALUE`, as they are escaped.
fn attributes(subject: &str) -> Vec<&str> {
    let (mut found, mut begin, mut is_escaped) = (Vec::new(), 0, false);
    for (at, character) in subject.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            ',' | '+' => {
                found.push(&subject[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    found.push(&subject[begin..]);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_the_same_organizations_units_and_domains() {
        let own = "CN=a.example.com,OU=data,OU=sets,O=Example\\, Inc.";
        for member in [own, "CN=b,OU=sets,OU=data,O=Example\\, Inc.", "O=Example\\, Inc.,L=Rome,OU=data+OU=sets"] {
            assert!(is_of_one_cluster(own, member), "{member}");
        }
        for other in [
            "",
            "CN=a.example.com",
            "CN=b,OU=data,O=Example\\, Inc.",
            "CN=b,OU=data,OU=data,OU=sets,O=Example\\, Inc.",
            "CN=b,OU=data,OU=sets,O=Example",
            "CN=b,OU=data,OU=sets,O=Example\\, Inc.,DC=com",
            "CN=b\\,OU=data,OU=sets,O=Example\\, Inc.",
        ] {
            assert!(!is_of_one_cluster(own, other), "{other}");
        }
        assert!(!is_of_one_cluster("CN=a", "CN=a"), "a name alone makes no cluster");
        assert!(is_of_one_cluster("CN=a,DC=example,DC=com", "CN=b,DC=example,DC=com"));
    }
}
