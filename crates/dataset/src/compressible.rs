//! Compressibility of the data by a storage engine.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How far a byte-oriented LZ compressor (snappy, lz4) shrinks the data.
///
/// The random part is text of 64 different characters, so that a shell can show it. An entropy coder (zstd, zlib)
/// shrinks it by up to a third more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "NumberOrText", into = "String")]
pub enum Compressible {
    /// A pad of zeros, as in the original E1, which favours every storage engine that compresses.
    Constant,
    /// Encoded size over compressed size, from 1 (incompressible).
    Ratio(f64),
}

/// Bytes that snappy needs to repeat earlier data.
pub(crate) const COPY_COST: usize = 3;
/// Maximum number of bytes that one such copy repeats; a long run takes many copies.
pub(crate) const COPIED_BYTES: usize = 64;
/// Bytes that snappy needs to announce new data.
pub(crate) const LITERAL_COST: usize = 2;
const RUN_COST: f64 = COPY_COST as f64 / COPIED_BYTES as f64;

impl Default for Compressible {
    /// Incompressible, so that padding gives a storage engine no advantage.
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

/// Form in files.
#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(f64),
    Text(String),
}

impl TryFrom<NumberOrText> for Compressible {
    type Error = String;
    fn try_from(written: NumberOrText) -> Result<Self, String> {
        match written {
            NumberOrText::Number(ratio) => ratio.to_string().parse(),
            NumberOrText::Text(text) => text.parse(),
        }
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

impl Compressible {
    /// Number of random characters in each text of documents of `document_bytes`; a run of zeros follows them.
    /// `structure_cost` is the size of everything else after compression, in bytes.
    pub(crate) fn random_bytes(self, document_bytes: usize, structure_cost: usize, texts: &[usize]) -> Vec<usize> {
        let all: usize = texts.iter().sum();
        let random = match self {
            Self::Constant => 0,
            Self::Ratio(ratio) => random_bytes(document_bytes, structure_cost, all, ratio),
        };
        // In proportion to the texts' lengths, rounded so that the sum is exact.
        let (mut seen, mut given) = (0, 0);
        let shares = texts.iter().map(|text| {
            seen += text;
            let share = (random * seen).checked_div(all).unwrap_or(0) - given;
            given += share;
            share
        });
        shares.collect()
    }
}

/// Number of random characters in all texts: `document / ratio` is the cost of structure, random text and the runs of
/// zeros.
///
/// An estimate, good to 12 % from a kilobyte on. Measuring with snappy itself would be exact, but its next version
/// would change the documents.
fn random_bytes(document_bytes: usize, structure_cost: usize, text_bytes: usize, ratio: f64) -> usize {
    if ratio <= 1.0 {
        return text_bytes;
    }
    let run_bytes = text_bytes as f64 * RUN_COST;
    let wanted = (document_bytes as f64 / ratio - structure_cost as f64 - run_bytes) / (1.0 - RUN_COST);
    (wanted.max(0.0) as usize).min(text_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::tests::options;
    use crate::{Dataset, DatasetOptions, SHAPES, Shape};

    fn ratio(shape: &Shape, document_bytes: usize, compressible: Compressible) -> f64 {
        let documents = (64_000 / document_bytes).clamp(1, 32) as u64;
        let document_bytes = Some(document_bytes);
        let options = DatasetOptions { documents, document_bytes, compressible, ..options(shape.name) };
        let dataset = Dataset::new(&options).expect("large enough");
        let mut encoded = Vec::new();
        (0..documents).for_each(|index| dataset.write(index, &mut encoded));
        let compressed = snap::raw::Encoder::new().compress_vec(&encoded).expect("compressible");
        encoded.len() as f64 / compressed.len() as f64
    }

    #[test]
    fn declared_ratios_are_what_snappy_reaches() {
        for shape in SHAPES.iter().filter(|shape| shape.is_padded()) {
            for document_bytes in [1_000, 4_096, 100_000, 1 << 20, 16 << 20] {
                for declared in [1.0, 1.5, 2.6, 6.8] {
                    // A kilobyte in a dozen short fields: names and numbers alone take as much as the ratio allows, or
                    // shrink the whole by a fifth even if the text is random.
                    if [("nested", 1_000, 6.8), ("events", 1_000, 6.8), ("events", 1_000, 1.0)].contains(&(
                        shape.name,
                        document_bytes,
                        declared,
                    )) {
                        continue;
                    }
                    let reached = ratio(shape, document_bytes, Compressible::Ratio(declared));
                    let error = (reached / declared - 1.0).abs();
                    let name = shape.name;
                    assert!(error < 0.12, "{name} of {document_bytes} bytes: declared {declared}, reached {reached}");
                }
                assert!(ratio(shape, document_bytes, Compressible::Constant) > 6.8, "{}", shape.name);
            }
        }
    }

    #[test]
    fn shares_add_up() {
        assert_eq!(Compressible::default().random_bytes(1_000, 30, &[30, 100, 700]), [30, 100, 700]);
        assert_eq!(Compressible::Constant.random_bytes(1_000, 30, &[30, 100, 700]), [0, 0, 0]);
        assert_eq!(Compressible::Ratio(2.0).random_bytes(1_000, 30, &[]), [0; 0]);
        let shares = Compressible::Ratio(2.0).random_bytes(1_000, 30, &[300, 300, 300]);
        assert_eq!(shares.iter().sum::<usize>(), random_bytes(1_000, 30, 900, 2.0));
        assert!(shares.iter().max().zip(shares.iter().min()).is_some_and(|(most, least)| most - least <= 1));
    }

    #[test]
    fn ratios_are_read_from_text() {
        assert_eq!("constant".parse(), Ok(Compressible::Constant));
        assert_eq!("2.5".parse(), Ok(Compressible::Ratio(2.5)));
        assert!("0.5".parse::<Compressible>().is_err_and(|error| error.contains("1..20")));
        assert!("NaN".parse::<Compressible>().is_err());
    }
}
