//! CRC-32C, the checksum of everything that the program stores.
//!
//! Processors have an instruction for it, which takes eight bytes at a time but needs three cycles until its result can
//! be used by the next one. So a text is processed in three lanes at once, and their checksums are joined. The crate
//! `crc32c` does this for texts of 768 bytes and more; most documents are shorter, and a collection scan spends much of
//! its time here.
//!
//! To join, the checksum of a lane, as a polynomial over two elements, is multiplied by `x` to the power of the number
//! of following bits, modulo the polynomial of CRC-32C. A carry-less product and the CRC instruction compute that; see
//! V. Gopal et al., "Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction" (Intel, 2011).
//!
//! **Invariant:** pure; the same on every processor.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod lanes;

/// The checksum of a text.
#[inline]
pub fn crc32c(text: &[u8]) -> u32 {
    crc32c_append(0, text)
}

/// The checksum of a text that follows another text with checksum `before`.
#[inline]
pub fn crc32c_append(before: u32, text: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("pclmulqdq") {
        // SAFETY: the processor has the features that the function was compiled for.
        return unsafe { lanes::append(before, text) };
    }
    crc32c::crc32c_append(before, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: usize, seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 56) as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    #[test]
    fn the_standard_checks() {
        // RFC 3720, B.4, and the check value of the catalogue of parametrised CRC algorithms.
        assert_eq!(crc32c(b""), 0);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn every_length_and_place_as_the_library_has_it() {
        let text = text(8300, 7);
        for bytes in (0..1100).chain(3000..3200).chain([6143, 6144, 6145, 8192, 8291]) {
            let start = bytes % 9;
            let part = &text[start..start + bytes];
            let before = (bytes as u32).wrapping_mul(0x9e37_79b9);
            assert_eq!(crc32c_append(before, part), crc32c::crc32c_append(before, part), "{bytes} bytes");
        }
    }

    #[test]
    fn parts_one_after_the_other_are_the_whole() {
        let text = text(2000, 3);
        for cut in 0..text.len() {
            let (one, other) = text.split_at(cut);
            assert_eq!(crc32c_append(crc32c(one), other), crc32c(&text), "cut at {cut}");
        }
    }
}
