//! Authentication restrictions: addresses from which users may log in.
//! Source: MongoDB manual 8.2, "createUser", "Authentication Restrictions".

use bunko_bson::{ArrayRef, DocumentRef, ValueRef};
use std::net::IpAddr;

/// Number of bits before the IPv4 address in an IPv4-mapped IPv6 address, such as `::ffff:127.0.0.1`.
const MAPPED_BITS: u8 = 96;

/// A range of addresses: `127.0.0.1` or `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    network: IpAddr,
    prefix_bits: u8,
}

impl AddressRange {
    /// Parses a range; `None` for other text.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let network: IpAddr = address.parse().ok()?;
        let most = if network.is_ipv4() { 32 } else { 128 };
        let number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?;
        let prefix_bits = prefix.map_or(Some(most), number).filter(|bits| *bits <= most)?;
        // A client's IPv4 address is compared as an IPv4 address, even if the socket reports it as mapped into IPv6.
        match network.to_canonical() {
            IpAddr::V4(mapped) if network.is_ipv6() && prefix_bits >= MAPPED_BITS => {
                Some(Self { network: mapped.into(), prefix_bits: prefix_bits - MAPPED_BITS })
            }
            _ => Some(Self { network, prefix_bits }),
        }
    }

    /// Whether the range contains an address.
    pub fn has(self, address: IpAddr) -> bool {
        // Shifts out the bits after the prefix, or all bits if the prefix is empty.
        let is_same = |one: u128, other: u128, width: u32| {
            let differing = (one ^ other).checked_shr(width - u32::from(self.prefix_bits));
            differing.unwrap_or(0) == 0
        };
        match (self.network, address.to_canonical()) {
            (IpAddr::V4(one), IpAddr::V4(other)) => is_same(one.to_bits().into(), other.to_bits().into(), 32),
            (IpAddr::V6(one), IpAddr::V6(other)) => is_same(one.to_bits(), other.to_bits(), 128),
            _ => false,
        }
    }
}

/// One alternative. Without sources it allows all addresses.
#[derive(Clone, Debug)]
struct Alternative {
    sources: Option<Vec<AddressRange>>,
    /// Whether the alternative names a server address. It is unknown here which address a client reached, so such an
    /// alternative is never met.
    names_server: bool,
}

/// The `authenticationRestrictions` of a user or a role: alternatives, one of which must be met.
#[derive(Clone, Debug, Default)]
pub struct Restrictions(Vec<Alternative>);

impl Restrictions {
    /// Parses the argument of a command.
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse(restrictions: ArrayRef<'_>) -> Result<Self, String> {
        restrictions.iter().map(alternative).collect::<Result<_, _>>().map(Self)
    }

    /// Reads stored restrictions. Malformed ones are never met.
    pub fn of(document: DocumentRef<'_>) -> Self {
        let Some(kept) = document.get("authenticationRestrictions") else { return Self::default() };
        let parsed = kept.as_array().and_then(|restrictions| Self::parse(restrictions).ok());
        parsed.unwrap_or_else(|| Self(vec![Alternative { sources: Some(Vec::new()), names_server: true }]))
    }

    /// Whether there are no restrictions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a client at that address meets the restrictions. A client of the Unix domain socket has no address.
    pub fn are_met_by(&self, source: Option<IpAddr>) -> bool {
        let meets = |alternative: &Alternative| {
            let is_source = |sources: &Vec<AddressRange>| {
                source.is_some_and(|source| sources.iter().any(|range| range.has(source)))
            };
            !alternative.names_server && alternative.sources.as_ref().is_none_or(is_source)
        };
        self.is_empty() || self.0.iter().any(meets)
    }

    /// Whether an alternative names a server address.
    pub fn name_server(&self) -> bool {
        self.0.iter().any(|alternative| alternative.names_server)
    }
}

fn alternative(value: ValueRef<'_>) -> Result<Alternative, String> {
    let document = value
        .as_document()
        .ok_or_else(|| format!("'authenticationRestrictions' holds objects, but got {}", value.kind().alias()))?;
    if document.is_empty() {
        return Err("a restriction must have 'clientSource' or 'serverAddress'".to_owned());
    }
    let mut alternative = Alternative { sources: None, names_server: false };
    for field in document {
        match field.name {
            "clientSource" => alternative.sources = Some(ranges(field.name, field.value)?),
            "serverAddress" => {
                ranges(field.name, field.value)?;
                alternative.names_server = true;
            }
            other => return Err(format!("'{other}' is an unknown restriction")),
        }
    }
    Ok(alternative)
}

/// Parses one address or range, or an array of them.
fn ranges(name: &str, value: ValueRef<'_>) -> Result<Vec<AddressRange>, String> {
    let range = |value: ValueRef<'_>| {
        let text = value.as_str().unwrap_or_default();
        AddressRange::parse(text)
            .ok_or_else(|| format!("'{name}' holds addresses and ranges in CIDR notation, but got '{text}'"))
    };
    match value {
        ValueRef::Array(values) => values.iter().map(range).collect(),
        value => Ok(vec![range(value)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::{ArrayBuf, DocumentBuf};

    #[test]
    fn ranges_have_the_addresses_of_their_prefix() {
        for (range, address, expected) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("::ffff:127.0.0.0/104", "127.9.9.9", true),
            ("::ffff:127.0.0.1", "127.0.0.1", true),
            ("::ffff:127.0.0.1", "127.0.0.2", false),
            ("::/0", "fe80::1", true),
            ("::/0", "1.2.3.4", false),
            ("fe80::/10", "fe80::1", true),
            ("fe80::/10", "2001::1", false),
        ] {
            let has = AddressRange::parse(range).expect(range).has(address.parse().expect(address));
            assert_eq!(has, expected, "{range} {address}");
        }
        for malformed in ["", "host", "1.2.3.4/33", "1.2.3.4/-1", "1.2.3.4/+8", "1.2.3.4/", "1.2.3/8", "::/129"] {
            assert_eq!(AddressRange::parse(malformed), None, "{malformed}");
        }
    }

    #[test]
    fn one_alternative_has_to_be_met() {
        let source = |range: &str| DocumentBuf::new().with("clientSource", &ArrayBuf::from_iter([range]));
        let of = |documents: &[DocumentBuf]| {
            Restrictions::parse(documents.iter().collect::<ArrayBuf>().as_ref()).expect("sound")
        };
        let here: Option<IpAddr> = Some("127.0.0.1".parse().expect("an address"));
        assert!(of(&[]).are_met_by(here) && of(&[]).are_met_by(None));
        assert!(of(&[source("10.0.0.0/8"), source("127.0.0.1")]).are_met_by(here));
        assert!(!of(&[source("10.0.0.0/8")]).are_met_by(here));
        assert!(!of(&[source("127.0.0.1")]).are_met_by(None));
        assert!(!of(&[source("127.0.0.1").with("serverAddress", "127.0.0.1")]).are_met_by(here));
        let malformed = DocumentBuf::new().with("authenticationRestrictions", 5);
        assert!(!Restrictions::of(malformed.as_ref()).are_met_by(here));
    }
}
