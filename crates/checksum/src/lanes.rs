//! Three lanes at once, on x86-64.

use std::arch::x86_64::{
    _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u16, _mm_crc32_u32, _mm_crc32_u64, _mm_cvtsi128_si64, _mm_set_epi64x,
    _mm_xor_si128,
};

const WORD_BYTES: usize = 8;
/// Length of the longest lanes, in words. Longer texts are processed as several such runs.
const LANE_WORDS_MAX: usize = 128;
/// Length of the shortest lanes: below, joining costs more than it saves.
const LANE_WORDS_MIN: usize = 3;

/// The polynomial without its highest term, lowest bit first.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Factors that shift a checksum over one lane, and over two, for each lane length in words.
static FACTORS: [[u32; 2]; LANE_WORDS_MAX + 1] = factors();

/// The product of a polynomial and `x`.
const fn times_x(polynomial: u32) -> u32 {
    (polynomial >> 1) ^ if polynomial & 1 == 1 { POLYNOMIAL } else { 0 }
}

const fn factors() -> [[u32; 2]; LANE_WORDS_MAX + 1] {
    // The product of two bit-reversed polynomials in registers has an additional factor x, and the CRC instruction
    // multiplies by x to the 32nd. So the power is 33 less than the number of bits in the lanes; the smallest, for one
    // word, is 31.
    let mut powers = [0; 2 * LANE_WORDS_MAX + 1];
    let mut power: u32 = 1;
    let mut words = 1;
    while words < powers.len() {
        powers[words] = power;
        let mut bit = 0;
        while bit < u64::BITS {
            power = times_x(power);
            bit += 1;
        }
        words += 1;
    }
    let mut factors = [[0; 2]; LANE_WORDS_MAX + 1];
    let mut words = 1;
    while words < factors.len() {
        factors[words] = [powers[words], powers[2 * words]];
        words += 1;
    }
    factors
}

/// The checksum of a text that follows another text with checksum `before`.
#[target_feature(enable = "sse4.2,pclmulqdq")]
pub(super) fn append(before: u32, text: &[u8]) -> u32 {
    let mut state = u64::from(!before);
    let (words, rest) = text.as_chunks::<WORD_BYTES>();
    let mut words = words;
    while words.len() >= 3 * LANE_WORDS_MIN {
        let lane = (words.len() / 3).min(LANE_WORDS_MAX);
        let (lanes, behind) = words.split_at(3 * lane);
        state = three_lanes(state, lanes, lane);
        words = behind;
    }
    for word in words {
        state = _mm_crc32_u64(state, u64::from_le_bytes(*word));
    }
    !append_rest(state as u32, rest)
}

#[inline]
#[target_feature(enable = "sse4.2,pclmulqdq")]
fn three_lanes(state: u64, words: &[[u8; WORD_BYTES]], lane: usize) -> u64 {
    let (first, others) = words.split_at(lane);
    let (second, third) = others.split_at(lane);
    let (mut one, mut two, mut three) = (state, 0, 0);
    for ((first, second), third) in first.iter().zip(second).zip(third) {
        one = _mm_crc32_u64(one, u64::from_le_bytes(*first));
        two = _mm_crc32_u64(two, u64::from_le_bytes(*second));
        three = _mm_crc32_u64(three, u64::from_le_bytes(*third));
    }
    let [over_one, over_two] = FACTORS[lane];
    let checksums = _mm_set_epi64x(two as i64, one as i64);
    let factors = _mm_set_epi64x(i64::from(over_one), i64::from(over_two));
    let one = _mm_clmulepi64_si128::<0x00>(checksums, factors);
    let two = _mm_clmulepi64_si128::<0x11>(checksums, factors);
    let product = _mm_cvtsi128_si64(_mm_xor_si128(one, two)) as u64;
    _mm_crc32_u64(0, product) ^ three
}

/// Processes the last bytes, fewer than a word.
#[inline]
#[target_feature(enable = "sse4.2")]
fn append_rest(mut state: u32, mut rest: &[u8]) -> u32 {
    if let Some((four, behind)) = rest.split_first_chunk::<4>() {
        state = _mm_crc32_u32(state, u32::from_le_bytes(*four));
        rest = behind;
    }
    if let Some((two, behind)) = rest.split_first_chunk::<2>() {
        state = _mm_crc32_u16(state, u16::from_le_bytes(*two));
        rest = behind;
    }
    if let Some(byte) = rest.first() {
        state = _mm_crc32_u8(state, *byte);
    }
    state
}
