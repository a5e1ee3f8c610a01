//! The hash with which YCSB scatters neighbouring numbers.

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// FNV-1a of the number's eight bytes, low byte first; the absolute value of the signed result, at most 2^63.
/// Source: YCSB, `Utils.fnvhash64`. The absolute value is kept so that the keys are YCSB's own.
pub(crate) fn scatter(number: u64) -> u64 {
    let hash =
        number.to_le_bytes().iter().fold(OFFSET_BASIS, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    (hash as i64).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::scatter;

    #[test]
    fn the_first_keys_are_the_ones_that_every_ycsb_table_has() {
        assert_eq!(scatter(0), 6_284_781_860_667_377_211);
        assert_eq!(scatter(1), 8_517_097_267_634_966_620);
        assert_eq!(scatter(2), 1_820_151_046_732_198_393);
    }
}
