//! DER, the encoding of certificates: only as much as is needed to find names, dates and usages in a certificate.
//! Rejected: `x509-parser`, see `docs/decisions/060-supply-chain-checks.md`.
//!
//! Source: ITU-T X.690.

pub const BOOLEAN: u8 = 0x01;
pub const INTEGER: u8 = 0x02;
pub const BIT_STRING: u8 = 0x03;
pub const OCTET_STRING: u8 = 0x04;
pub const OBJECT_IDENTIFIER: u8 = 0x06;
pub const UTF8_STRING: u8 = 0x0c;
pub const NUMERIC_STRING: u8 = 0x12;
pub const PRINTABLE_STRING: u8 = 0x13;
pub const TELETEX_STRING: u8 = 0x14;
pub const IA5_STRING: u8 = 0x16;
pub const UTC_TIME: u8 = 0x17;
pub const GENERALIZED_TIME: u8 = 0x18;
pub const VISIBLE_STRING: u8 = 0x1a;
pub const UNIVERSAL_STRING: u8 = 0x1c;
pub const BMP_STRING: u8 = 0x1e;
pub const SEQUENCE: u8 = 0x30;
pub const SET: u8 = 0x31;
/// The version field of a certificate. Certificates of version 1 lack it.
pub const VERSION: u8 = 0xa0;
/// The extensions field of a certificate.
pub const EXTENSIONS: u8 = 0xa3;

/// One encoded value.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    pub tag: u8,
    pub content: &'a [u8],
    /// The value with its tag and length.
    pub whole: &'a [u8],
}

/// Encoded values, one after the other.
#[derive(Clone, Debug)]
pub struct Items<'a>(pub &'a [u8]);

impl<'a> Items<'a> {
    /// Takes the next value if it has this tag.
    pub fn next_of(&mut self, tag: u8) -> Option<Items<'a>> {
        let mut ahead = self.clone();
        let item = ahead.next().filter(|item| item.tag == tag)?;
        *self = ahead;
        Some(Items(item.content))
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    /// The next value; `None` at the end, and if the value is cut short.
    fn next(&mut self) -> Option<Item<'a>> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..0x80 => (usize::from(first), rest),
            // Four bytes of length are enough for any certificate.
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            0x80 | 0x85.. => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        let whole = &self.0[..self.0.len() - rest.len()];
        self.0 = rest;
        Some(Item { tag, content, whole })
    }
}
