//! The checksum of a namespace's documents, stored at the namespace's end in an archive.
//!
//! CRC-64 with ECMA-182's polynomial, bits reflected, all ones before and after: "CRC-64/XZ", and Go's `crc64.ECMA`.
//! Source: ECMA-182, annex B; the catalogue of parametrised CRC algorithms, "CRC-64/XZ".

/// ECMA-182's polynomial with its bits reflected: the coefficient of x^63 is the lowest bit.
const POLYNOMIAL: u64 = 0xc96c_5795_d787_0f42;
/// The polynomial 1 in the reflected order.
const ONE: u64 = 1 << 63;
/// The polynomial x^8: a byte's worth of shift.
const BYTE: u64 = ONE >> 8;

/// A checksum in progress.
#[derive(Clone, Default)]
pub struct Crc64 {
    /// The checksum of the bytes before `digest`, and the number of bytes in `digest`.
    before: u64,
    digest: crc64fast::Digest,
    digest_bytes: u64,
}

impl Crc64 {
    /// A checksum of no bytes: 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Continues from a checksum whose value is `value`.
    pub fn resume(value: u64) -> Self {
        Self { before: value, ..Self::default() }
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.digest.write(bytes);
        self.digest_bytes += bytes.len() as u64;
    }

    /// The checksum of all bytes so far.
    pub fn value(&self) -> u64 {
        combine(self.before, self.digest.sum64(), self.digest_bytes)
    }
}

/// The checksum of `bytes` alone.
pub fn checksum(bytes: &[u8]) -> u64 {
    let mut digest = crc64fast::Digest::new();
    digest.write(bytes);
    digest.sum64()
}

/// The checksum of two pieces one after another, from the checksum of each and the length of the second. Threads can
/// sum pieces before their order is known.
pub fn combine(first: u64, second: u64, second_bytes: u64) -> u64 {
    multiply(first, power_of_byte(second_bytes)) ^ second
}

/// The product of two polynomials over GF(2), modulo the checksum's.
fn multiply(left: u64, mut right: u64) -> u64 {
    let mut product = 0;
    let mut coefficient = ONE;
    while coefficient != 0 {
        if left & coefficient != 0 {
            product ^= right;
        }
        right = if right & 1 == 1 { (right >> 1) ^ POLYNOMIAL } else { right >> 1 };
        coefficient >>= 1;
    }
    product
}

/// Computes x^(8·bytes) by squaring.
fn power_of_byte(mut bytes: u64) -> u64 {
    let (mut power, mut square) = (ONE, BYTE);
    while bytes != 0 {
        if bytes & 1 == 1 {
            power = multiply(power, square);
        }
        square = multiply(square, square);
        bytes >>= 1;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_catalogues_check_value() {
        assert_eq!(checksum(b"123456789"), 0x995d_c9bb_df19_39fa);
        assert_eq!(checksum(b""), 0);
    }

    proptest! {
        #[test]
        fn however_it_is_cut(bytes in proptest::collection::vec(any::<u8>(), 0..3000), cut in any::<prop::sample::Index>()) {
            let (first, second) = bytes.split_at(cut.index(bytes.len() + 1));
            let whole = checksum(&bytes);
            prop_assert_eq!(combine(checksum(first), checksum(second), second.len() as u64), whole);
            let mut crc = Crc64::resume(checksum(first));
            crc.update(second);
            prop_assert_eq!(crc.value(), whole);
        }
    }
}
