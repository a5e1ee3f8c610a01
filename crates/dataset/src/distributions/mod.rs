//! Distributions that choose the next key to access: one file for each.

mod latest;
mod scrambled_zipfian;
mod sequential;
mod uniform;
mod zipfian;

use crate::random::Random;
use crate::text_form::text_form;
use latest::Latest;
use scrambled_zipfian::ScrambledZipfian;
use sequential::Sequential;
use serde::{Deserialize, Serialize};
use zipfian::Zipfian;

/// Distribution of accesses over the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Distribution {
    /// One key after the other; the first again after the last.
    Sequential,
    /// All keys are equally likely.
    #[default]
    Uniform,
    /// Lower keys are hotter, so the hot keys are neighbours.
    Zipfian,
    /// As zipfian, but the hot keys are scattered over all.
    ScrambledZipfian,
    /// As zipfian, but the newest key is the hottest.
    Latest,
}

text_form!(Distribution, "key distribution", [
    Sequential => "sequential",
    Uniform => "uniform",
    Zipfian => "zipfian",
    ScrambledZipfian => "scrambled-zipfian",
    Latest => "latest",
]);

/// An endless sequence of keys.
#[derive(Clone, Debug)]
pub struct KeyStream {
    random: Random,
    generator: Generator,
}

#[derive(Clone, Debug)]
enum Generator {
    Sequential(Sequential),
    Uniform,
    Zipfian(Zipfian),
    ScrambledZipfian(ScrambledZipfian),
    Latest(Latest),
}

impl KeyStream {
    /// Stream `stream` of a seed; streams are independent of each other. Sequential streams all begin at key 0, so a
    /// caller with several of them must give each its own range.
    pub fn new(distribution: Distribution, seed: u64, stream: u64) -> Self {
        let generator = match distribution {
            Distribution::Sequential => Generator::Sequential(Sequential::default()),
            Distribution::Uniform => Generator::Uniform,
            Distribution::Zipfian => Generator::Zipfian(Zipfian::over(1)),
            Distribution::ScrambledZipfian => Generator::ScrambledZipfian(ScrambledZipfian::default()),
            Distribution::Latest => Generator::Latest(Latest::default()),
        };
        Self { random: Random::of_keys(seed, stream), generator }
    }

    /// The next key: the index of a document in 0..`keys`, where 0 keys count as one. The number of keys may change
    /// with each call.
    #[inline]
    pub fn next(&mut self, keys: u64) -> u64 {
        let keys = keys.max(1);
        let random = &mut self.random;
        match &mut self.generator {
            Generator::Sequential(sequential) => sequential.next(keys),
            Generator::Uniform => uniform::next(random, keys),
            Generator::Zipfian(zipfian) => zipfian.next(random, keys),
            Generator::ScrambledZipfian(scrambled) => scrambled.next(random, keys),
            Generator::Latest(latest) => latest.next(random, keys),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Draws keys, and counts how often each was drawn.
    pub(crate) fn counts(distribution: Distribution, keys: u64, draws: usize) -> Vec<f64> {
        let mut stream = KeyStream::new(distribution, 11, 0);
        let mut counts = vec![0.0; keys as usize];
        for _ in 0..draws {
            counts[stream.next(keys) as usize] += 1.0;
        }
        counts
    }

    #[test]
    fn keys_stay_in_range_whatever_happens_to_their_number() {
        for &distribution in Distribution::ALL {
            let mut stream = KeyStream::new(distribution, 1, 1);
            assert_eq!(stream.next(0), 0);
            let growing = (1..200).chain([1_000_000, 1 << 40, u64::MAX]);
            for keys in growing.chain([5, 3, 2, 1]).flat_map(|keys| [keys; 50]) {
                let key = stream.next(keys);
                assert!(key < keys, "{distribution}: {key} of {keys}");
            }
        }
    }

    #[test]
    fn small_numbers_of_keys_are_all_met() {
        for &distribution in Distribution::ALL {
            for keys in 1..=20 {
                let mut stream = KeyStream::new(distribution, keys, 0);
                let met: HashSet<_> = (0..5_000).map(|_| stream.next(keys)).collect();
                // Scrambling hashes 10^10 ranks, which also reaches every key.
                assert_eq!(met.len() as u64, keys, "{distribution}");
            }
        }
    }

    #[test]
    fn streams_and_seeds_are_independent() {
        let draws = |distribution, seed, stream| {
            let mut keys = KeyStream::new(distribution, seed, stream);
            (0..1_000).map(|_| keys.next(1_000_000)).collect::<Vec<_>>()
        };
        for &distribution in Distribution::ALL.iter().filter(|&&choice| choice != Distribution::Sequential) {
            let first = draws(distribution, 1, 0);
            assert_eq!(first, draws(distribution, 1, 0));
            for other in [draws(distribution, 1, 1), draws(distribution, 2, 0), draws(distribution, 0, 1)] {
                let alike = first.iter().zip(&other).filter(|(a, b)| a == b).count();
                // Two zipfian streams coincide if both draw the same hot key: 0.7 % of the time.
                assert!(alike < 30, "{distribution}: {alike} of 1,000 are alike");
            }
        }
    }
}
