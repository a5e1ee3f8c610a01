//! Histograms as text: HdrHistogram's V2 encoding, deflated, in base64, which every HdrHistogram library can read.

use super::{DIGITS, HIGHEST_NS, LOWEST_NS, LatencyHistogram};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use std::fmt;
use std::io::Read;

/// The reason why a text is not a valid histogram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistogramError {
    /// A character outside base64, or an incomplete group.
    NotBase64,
    /// Cookie, length, compression or counts do not follow HdrHistogram's V2 encoding.
    Corrupt,
    /// The bounds differ, so merging would not be exact.
    OtherBounds {
        /// Lowest value that is distinguished from 0; here 1,000.
        lowest: u64,
        /// Highest value; here 3.6e12.
        highest: u64,
        /// Significant decimal digits; here 3.
        digits: u32,
    },
}

/// First bytes of the deflated encoding.
const DEFLATED_COOKIE: u32 = 0x1c84_9314;
/// First bytes of the inflated encoding.
const COOKIE: u32 = 0x1c84_9313;
/// Cookie, payload's length, normalising offset and digits (4 bytes each); lowest, highest and ratio (8 bytes each);
/// all big-endian.
const HEADER_BYTES: usize = 40;
/// Enough for the 24,576 buckets with nine bytes each, and the header. A hostile text may claim, or inflate to,
/// gigabytes.
const INFLATED_BYTES_MAX: u64 = 256 * 1_024;
/// The lowest 64-bit integer as a count: the decoder calculates with it unchecked. No run has 2^56 requests, so a valid
/// count never has nine such bytes in a row.
const OVERFLOWING_COUNT: [u8; 9] = [0xff; 9];
/// Maximum number of samples; with more, sums could overflow when histograms are merged.
const SAMPLES_MAX: u64 = 1 << 53;

impl LatencyHistogram {
    /// The histogram in HdrHistogram's V2 encoding, deflated, in base64.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.0, &mut bytes).expect("a Vec takes it, counts stay below 2^63");
        STANDARD.encode(bytes)
    }

    /// Reads a text from [`Self::encode`], of this or another version or library.
    /// # Errors
    /// [`HistogramError`] for any other text.
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

/// Inflates the V2 encoding within the frame.
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
