//! Histograms as text: HdrHistogram's V2 encoding, deflated, in base64, as every HdrHistogram library reads it.

use super::{DIGITS, HIGHEST_NS, LOWEST_NS, LatencyHistogram};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use std::fmt;
use std::io::Read;

/// Why a text is not a histogram of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistogramError {
    /// A character that base64 does not have, or an incomplete group.
    NotBase64,
    /// Cookie, length, compression or counts are not those of HdrHistogram's V2 encoding.
    Corrupt,
    /// Of other bounds, so that merging would not be exact.
    OtherBounds {
        /// Lowest value that it tells from 0; ours: 1,000.
        lowest: u64,
        /// Highest value; ours: 3.6e12.
        highest: u64,
        /// Significant decimal digits; ours: 3.
        digits: u32,
    },
}

/// First bytes of the deflated encoding.
const DEFLATED_COOKIE: u32 = 0x1c84_9314;
/// First bytes of what is deflated.
const COOKIE: u32 = 0x1c84_9313;
/// Cookie, payload's length, normalising offset, digits (4 bytes each), lowest, highest, ratio (8 bytes each), all big-endian.
const HEADER_BYTES: usize = 40;
/// Our 24,576 buckets with nine bytes each and the header fit; a hostile text may claim, or inflate to, gigabytes.
const INFLATED_BYTES_MAX: u64 = 256 * 1_024;
/// The decoder computes with such a count, the lowest 64-bit integer, without a check. No run has 2^56 requests, so
/// that nine such bytes in a row are no count of ours.
const OVERFLOWING_COUNT: [u8; 9] = [0xff; 9];
/// Above it sums could overflow when histograms are merged.
const SAMPLES_MAX: u64 = 1 << 53;

impl LatencyHistogram {
    /// HdrHistogram's V2 encoding, deflated, in base64.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.0, &mut bytes).expect("a Vec takes it, counts stay below 2^63");
        STANDARD.encode(bytes)
    }

    /// What [`Self::encode`] wrote, here or elsewhere.
    /// # Errors
    /// Anything else, of whatever kind, is a [`HistogramError`].
    pub fn decode(text: &str) -> Result<Self, HistogramError> {
        let frame = STANDARD.decode(text).map_err(|_| HistogramError::NotBase64)?;
        let inflated = inflate(&frame).ok_or(HistogramError::Corrupt)?;
        check_bounds(&inflated)?;
        if inflated[HEADER_BYTES..].windows(OVERFLOWING_COUNT.len()).any(|bytes| bytes == OVERFLOWING_COUNT) {
            return Err(HistogramError::Corrupt);
        }
        let histogram =
            Deserializer::new().deserialize(&mut inflated.as_slice()).map_err(|_| HistogramError::Corrupt)?;
        if histogram.len() > SAMPLES_MAX {
            return Err(HistogramError::Corrupt);
        }
        Ok(Self(histogram))
    }
}

/// The V2 encoding within the frame.
fn inflate(frame: &[u8]) -> Option<Vec<u8>> {
    let (cookie, rest) = frame.split_first_chunk()?;
    let (length, deflated) = rest.split_first_chunk()?;
    if u32::from_be_bytes(*cookie) != DEFLATED_COOKIE || u32::from_be_bytes(*length) as usize != deflated.len() {
        return None;
    }
    let mut inflated = Vec::new();
    ZlibDecoder::new(deflated).take(INFLATED_BYTES_MAX + 1).read_to_end(&mut inflated).ok()?;
    let word =
        |at: usize| inflated.get(at..at + 4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    let payload_bytes = inflated.len().checked_sub(HEADER_BYTES)?;
    let complete = inflated.len() as u64 <= INFLATED_BYTES_MAX && word(4)? as usize == payload_bytes;
    (complete && word(0)? == COOKIE).then_some(inflated)
}

fn check_bounds(inflated: &[u8]) -> Result<(), HistogramError> {
    let number =
        |from: usize, to: usize| inflated[from..to].iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
    let (digits, lowest, highest) = (number(12, 16) as u32, number(16, 24), number(24, 32));
    if (digits, lowest, highest) == (u32::from(DIGITS), LOWEST_NS, HIGHEST_NS) {
        Ok(())
    } else {
        Err(HistogramError::OtherBounds { lowest, highest, digits })
    }
}

impl fmt::Display for HistogramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBase64 => f.write_str("the histogram is not base64"),
            Self::Corrupt => f.write_str("not a deflated V2 HdrHistogram, or a damaged one"),
            Self::OtherBounds { lowest, highest, digits } => write!(
                f,
                "the histogram reaches from {lowest} to {highest} with {digits} digits, ours from {LOWEST_NS} to \
                 {HIGHEST_NS} ns with {DIGITS}"
            ),
        }
    }
}

impl std::error::Error for HistogramError {}
