//! The 12-byte identifier that drivers and servers make without coordination.

use std::fmt;

/// Twelve bytes: seconds since 1970 (big endian), five bytes of process, three of counter.
/// Source: MongoDB manual, "ObjectId".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub [u8; 12]);

impl ObjectId {
    /// Assembles an id from its parts; only the low 24 bits of `counter` are used.
    pub fn from_parts(seconds: u32, process: [u8; 5], counter: u32) -> Self {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&seconds.to_be_bytes());
        bytes[4..9].copy_from_slice(&process);
        bytes[9..].copy_from_slice(&counter.to_be_bytes()[1..]);
        Self(bytes)
    }

    /// Reads 24 hexadecimal digits; `None` for anything else.
    pub fn parse_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 24 {
            return None;
        }
        let mut bytes = [0; 12];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            *byte = (high * 16 + low) as u8;
        }
        Some(Self(bytes))
    }

    /// Time at which the id was made, in seconds since 1970.
    pub fn seconds(self) -> u32 {
        u32::from_be_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_round_trips() {
        let id = ObjectId::from_parts(0x5f00_0001, [1, 2, 3, 4, 5], 0x00ab_cdef);
        assert_eq!(id.to_string(), "5f0000010102030405abcdef");
        assert_eq!(ObjectId::parse_hex(&id.to_string()), Some(id));
        assert_eq!(id.seconds(), 0x5f00_0001);
        assert_eq!(ObjectId::parse_hex("xyz"), None);
        assert_eq!(ObjectId::parse_hex("5f0000010102030405abcdeg"), None);
    }
}
