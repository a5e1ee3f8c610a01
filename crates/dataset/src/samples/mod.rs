//! Small data sets to try things with, made from words and a seed in the code. Nothing in them is copied from elsewhere.

mod library;
mod weather;

use crate::random::Random;
use bunko_bson::DocumentBuf;

/// The seed of all data sets: everyone who loads one sees the same documents.
const SEED: u64 = 2_026;
const MS_PER_HOUR: i64 = 3_600_000;
const MS_PER_DAY: i64 = 24 * MS_PER_HOUR;

/// All data sets.
pub static SAMPLES: &[Sample] = &[library::SAMPLE, weather::SAMPLE];

/// A data set.
pub struct Sample {
    /// Name of the data set, and of its database.
    pub name: &'static str,
    /// Description in a sentence.
    pub about: &'static str,
    /// Collections, in the order in which they are loaded.
    pub collections: &'static [SampleCollection],
}

/// A collection of a data set.
pub struct SampleCollection {
    /// Name of the collection.
    pub name: &'static str,
    /// Number of documents.
    pub count: u64,
    /// Fields of the command `create`, beside the name.
    pub options: fn() -> Vec<(&'static str, DocumentBuf)>,
    /// Indexes as `createIndexes` takes them.
    pub indexes: fn() -> Vec<DocumentBuf>,
    /// The documents.
    pub documents: fn() -> Box<dyn Iterator<Item = DocumentBuf>>,
}

/// The specification of an index; each field of `key` is ascending (1), descending (-1) or of another kind.
fn index(name: &str, key: &DocumentBuf) -> DocumentBuf {
    DocumentBuf::new().with("key", key).with("name", name)
}

/// A random one of the words.
fn one_of<T: Copy>(random: &mut Random, words: &[T]) -> T {
    words[random.below(words.len() as u64) as usize]
}

/// A random whole number from `first` to `last`.
fn between(random: &mut Random, first: i64, last: i64) -> i64 {
    first + random.below((last - first + 1) as u64) as i64
}

/// As `number`, with one digit after the point.
fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fnv::scatter;

    #[test]
    fn every_machine_makes_the_same_documents() {
        let digests: Vec<_> = SAMPLES
            .iter()
            .flat_map(|sample| sample.collections)
            .map(|collection| {
                let documents: Vec<_> = (collection.documents)().collect();
                assert_eq!(documents.len() as u64, collection.count, "{}", collection.name);
                let bytes = documents.iter().flat_map(|document| document.as_ref().as_bytes().to_vec());
                (collection.name, bytes.fold(0, |digest: u64, byte| scatter(digest ^ u64::from(byte))))
            })
            .collect();
        let expected = [
            ("books", 20_037_349_333_961_550),
            ("members", 2_232_274_940_712_910_295),
            ("loans", 5_154_114_347_762_032_803),
            ("stations", 7_332_859_514_101_410_534),
            ("readings", 4_586_417_354_661_078_825),
        ];
        assert_eq!(digests, expected);
    }
}
