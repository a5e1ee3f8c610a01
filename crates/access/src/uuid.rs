//! Random UUIDs, for connections, users and sessions.

/// A new UUID of random bytes.
pub fn random_uuid(random: &dyn Fn() -> u64) -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&random().to_le_bytes());
    id[8..].copy_from_slice(&random().to_le_bytes());
    // Version 4, variant 1. Source: RFC 9562, section 5.4.
    id[6] = (id[6] & 0x0f) | 0x40;
    id[8] = (id[8] & 0x3f) | 0x80;
    id
}
