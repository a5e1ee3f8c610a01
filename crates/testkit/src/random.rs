//! Numbers that follow from a seed, so that a failure can be repeated.
//!
//! Source: G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number Generators" (SplitMix64). Seeds that
//! failures have named stay valid only as long as these numbers stay the same.

const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number that looks random, derived from another. No two numbers have the same result.
pub fn scramble(number: u64) -> u64 {
    let mixed = number.wrapping_add(STRIDE);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A sequence of numbers, given by its seed.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        let number = scramble(self.0);
        self.0 = self.0.wrapping_add(STRIDE);
        number
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    /// True with a probability of one in `chances`.
    pub fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    /// A random element of a slice that is not empty.
    pub fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len() as u64) as usize]
    }

    /// Text of that many bytes, in an alphabet of 64 characters: it cannot be compressed to less than three quarters.
    pub fn text(&mut self, length: usize) -> String {
        let mut text = String::with_capacity(length + 10);
        while text.len() < length {
            let number = self.number();
            text.extend((0..10).map(|place| char::from(b'0' + (number >> (6 * place) & 63) as u8)));
        }
        text.truncate(length);
        text
    }

    /// A fraction, uniform in 0..1.
    pub fn fraction(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn texts_have_their_length_and_differ() {
        for length in [0, 9, 10, 11, 1000] {
            let text = Random(7).text(length);
            assert_eq!(text.len(), length);
            assert_eq!(text, Random(7).text(length));
            assert!(length == 0 || text != Random(8).text(length));
        }
    }

    /// Source: the reference implementation's first numbers for this seed, as in its author's examples.
    #[test]
    fn a_seed_names_its_numbers() {
        let mut random = Random(1_234_567);
        let numbers = [(); 5].map(|()| random.number());
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
    }
}
