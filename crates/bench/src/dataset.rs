//! Seeded documents of an exact size and a declared compressibility.

use crate::BenchError;
use bunko_bson::{DocumentBuf, ObjectId};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How far a byte-oriented LZ compressor (snappy, lz4) shrinks the data.
///
/// The random part is text of 64 different characters, so that a shell can show it: an entropy coder (zstd, zlib)
/// gains up to a third on top.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Compressible {
    /// A pad of zeros, as in the original E1: flatters every storage engine.
    Constant,
    /// Encoded size over compressed size, from 1 (incompressible).
    Ratio(f64),
}

/// Snappy's cost of a long run: a copy of at most 64 bytes takes 3.
const RUN_COST: f64 = 3.0 / 64.0;

impl Default for Compressible {
    /// Incompressible: a storage engine can gain nothing from what is only padding.
    fn default() -> Self {
        Self::Ratio(1.0)
    }
}

impl FromStr for Compressible {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<f64>() {
            _ if text == "constant" => Ok(Self::Constant),
            Ok(ratio) if (1.0..=20.0).contains(&ratio) => Ok(Self::Ratio(ratio)),
            _ => Err(format!("'{text}' is neither a ratio in 1..20 nor 'constant'")),
        }
    }
}

impl TryFrom<String> for Compressible {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Compressible> for String {
    fn from(compressible: Compressible) -> Self {
        compressible.to_string()
    }
}

impl fmt::Display for Compressible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("constant"),
            Self::Ratio(ratio) => ratio.fmt(f),
        }
    }
}

/// The fields of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `{_id: ObjectId, d: string}`
    Plain,
    /// `{_id: ObjectId, n: 0 (int64), d: string}`: with a number to update that does not change the size.
    Counter,
}

/// An endless row of documents; the same seed and index give the same bytes on every machine.
#[derive(Debug)]
pub struct Dataset {
    seed: u64,
    process: [u8; 5],
    /// Everything before the pad's text, with a zero `_id`.
    head: Vec<u8>,
    random_bytes: usize,
    zero_bytes: usize,
}

/// Length, type, `_id` and its closing zero.
const ID_OFFSET: usize = 4 + 1 + 4;
/// The first id's time: ids must not depend on the clock.
const ID_SECONDS: u32 = 1_577_836_800;

impl Dataset {
    /// Documents of exactly `document_bytes` encoded bytes.
    /// # Errors
    /// A size that does not hold the shape's fields.
    pub fn new(seed: u64, shape: Shape, document_bytes: usize, compressible: Compressible) -> Result<Self, BenchError> {
        let mut document = DocumentBuf::new().with("_id", ObjectId([0; 12]));
        if shape == Shape::Counter {
            document.append("n", 0_i64);
        }
        document.append("d", "");
        let mut head = document.into_bytes();
        let least = head.len();
        let pad_bytes = document_bytes.checked_sub(least).ok_or_else(|| BenchError::Option {
            name: "document-bytes",
            detail: format!("{document_bytes} bytes do not hold the fields, which take {least}"),
        })?;
        // The pad goes before the string's and the document's closing zeros.
        head.truncate(least - 2);
        head[..4].copy_from_slice(&(document_bytes as u32).to_le_bytes());
        let text_length_at = head.len() - 4;
        head[text_length_at..].copy_from_slice(&(pad_bytes as u32 + 1).to_le_bytes());
        let random_bytes = match compressible {
            Compressible::Constant => 0,
            Compressible::Ratio(ratio) => random_bytes(document_bytes, pad_bytes, ratio),
        };
        let mut process = [0; 5];
        process.copy_from_slice(&Xoshiro256PlusPlus::seed_from_u64(seed).next_u64().to_le_bytes()[..5]);
        Ok(Self { seed, process, head, random_bytes, zero_bytes: pad_bytes - random_bytes })
    }

    /// The `_id` of document `index`; ascending, unique below 2^56.
    pub fn id(&self, index: u64) -> ObjectId {
        ObjectId::from_parts(ID_SECONDS.wrapping_add((index >> 24) as u32), self.process, index as u32 & 0x00ff_ffff)
    }

    /// Appends document `index`.
    pub fn write(&self, index: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.head);
        out[start + ID_OFFSET..start + ID_OFFSET + 12].copy_from_slice(&self.id(index).0);
        self.write_random_text(index, out);
        let end = out.len() + self.zero_bytes;
        out.resize(end, b'0');
        out.extend_from_slice(&[0, 0]);
    }

    fn write_random_text(&self, index: u64, out: &mut Vec<u8>) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let end = out.len() + self.random_bytes;
        while out.len() < end {
            // Eight characters at once, each of the 64 from space to underscore.
            let text = (random.next_u64() & 0x3f3f_3f3f_3f3f_3f3f) + 0x2020_2020_2020_2020;
            out.extend_from_slice(&text.to_le_bytes());
        }
        out.truncate(end);
    }
}

/// How much of the pad must be random: `document / ratio` is what names, random text and the run of zeros cost.
fn random_bytes(document_bytes: usize, pad_bytes: usize, ratio: f64) -> usize {
    if ratio <= 1.0 {
        return pad_bytes;
    }
    let fields_bytes = (document_bytes - pad_bytes) as f64;
    let run_bytes = pad_bytes as f64 * RUN_COST;
    let wanted = (document_bytes as f64 / ratio - fields_bytes - run_bytes) / (1.0 - RUN_COST);
    (wanted.max(0.0) as usize).min(pad_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::{DocumentRef, ValueRef};
    use std::collections::HashSet;

    fn documents(seed: u64, shape: Shape, bytes: usize, compressible: Compressible, count: u64) -> Vec<u8> {
        let dataset = Dataset::new(seed, shape, bytes, compressible).expect("large enough");
        let mut out = Vec::new();
        (0..count).for_each(|index| dataset.write(index, &mut out));
        out
    }

    #[test]
    fn documents_have_the_size_that_was_asked_for_and_the_shape() {
        for (shape, least) in [(Shape::Plain, 30), (Shape::Counter, 41)] {
            for bytes in [least, least + 1, 400, 1_000, 4_097, 1 << 20] {
                let encoded = documents(1, shape, bytes, Compressible::Ratio(2.0), 2);
                assert_eq!(encoded.len(), 2 * bytes);
                let document = DocumentRef::parse(&encoded[..bytes]).expect("well formed");
                assert_eq!(document.get("d").and_then(ValueRef::as_str).map(str::len), Some(bytes - least));
                assert_eq!(document.get("n").is_some(), shape == Shape::Counter);
            }
            assert!(Dataset::new(1, shape, least - 1, Compressible::Constant).is_err());
        }
    }

    #[test]
    fn the_original_experiment_has_970_zeros() {
        let encoded = documents(1, Shape::Plain, 1_000, Compressible::Constant, 1);
        let document = DocumentRef::parse(&encoded).expect("well formed");
        assert_eq!(document.get("d").and_then(ValueRef::as_str), Some("0".repeat(970).as_str()));
    }

    #[test]
    fn a_seed_means_the_same_bytes_everywhere() {
        let encoded = |seed| documents(seed, Shape::Plain, 60, Compressible::default(), 3);
        assert_eq!(encoded(7), encoded(7));
        assert_ne!(encoded(7), encoded(8));
        // Pinned: a change here makes figures of different versions incomparable.
        let encoded = encoded(7);
        let document = DocumentRef::parse(&encoded[60..120]).expect("well formed");
        assert_eq!(format!("{:?}", document.get("_id")), "Some(ObjectId(ObjectId(5e0be1003d91ae2a00000001)))");
        let text = document.get("d").and_then(ValueRef::as_str);
        assert_eq!(text, Some(r#",(!$8VQ(U%O^;\R""&NSI 74EWFH&N"#));
    }

    #[test]
    fn ids_are_unique_and_ascending_across_the_counters_end() {
        let dataset = Dataset::new(3, Shape::Plain, 100, Compressible::Constant).expect("large enough");
        let edge = (1 << 24) - 500;
        let ids: Vec<_> = (edge..edge + 1_000).chain(0..500).map(|index| dataset.id(index)).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 1_500);
        assert!(ids[..1_000].is_sorted());
    }

    #[test]
    fn declared_ratios_are_what_snappy_reaches() {
        let ratio = |compressible| {
            let encoded = documents(5, Shape::Plain, 1_000, compressible, 32);
            let compressed = snap::raw::Encoder::new().compress_vec(&encoded).expect("compressible");
            encoded.len() as f64 / compressed.len() as f64
        };
        for declared in [1.0, 1.5, 2.6, 6.8] {
            let reached = ratio(Compressible::Ratio(declared));
            assert!((reached / declared - 1.0).abs() < 0.2, "declared {declared}, reached {reached}");
        }
        assert!(ratio(Compressible::Constant) > 6.8);
    }

    #[test]
    fn ratios_are_read_from_text() {
        assert_eq!("constant".parse(), Ok(Compressible::Constant));
        assert_eq!("2.5".parse(), Ok(Compressible::Ratio(2.5)));
        assert!("0.5".parse::<Compressible>().is_err_and(|error| error.contains("1..20")));
        assert!("NaN".parse::<Compressible>().is_err());
    }
}
