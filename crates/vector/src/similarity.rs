//! How near two vectors are.

use crate::kernels;

/// The function that an index compares its vectors by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Similarity {
    /// The cosine of the angle between two vectors.
    Cosine,
    /// The distance of two vectors.
    Euclidean,
    /// The dot product of two vectors, which should have length 1.
    DotProduct,
}

impl Similarity {
    /// Finds a function by its name in index definitions.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "cosine" => Some(Self::Cosine),
            "euclidean" => Some(Self::Euclidean),
            "dotProduct" => Some(Self::DotProduct),
            _ => None,
        }
    }

    /// How near two vectors of numbers are: more is nearer. For [`Self::Cosine`] both must have length 1.
    #[inline]
    pub(crate) fn closeness(self, one: &[f32], other: &[f32]) -> f32 {
        match self {
            Self::Cosine | Self::DotProduct => kernels::dot(one, other),
            Self::Euclidean => -kernels::squared_distance(one, other),
        }
    }

    /// Converts a closeness to the score that `$vectorSearch` shows.
    /// Source: MongoDB Vector Search, "Vector Search Scoring".
    pub(crate) fn score(self, closeness: f32) -> f32 {
        match self {
            Self::Cosine | Self::DotProduct => f32::midpoint(1.0, closeness).max(0.0),
            Self::Euclidean => 1.0 / (1.0 - closeness),
        }
    }

    /// The score of two vectors of bytes.
    pub(crate) fn score_of_bytes(self, one: &[i8], other: &[i8]) -> f32 {
        match self {
            Self::Euclidean => 1.0 / (1.0 + kernels::squared_distance_of_bytes(one, other) as f32),
            Self::Cosine => {
                let product = |one, other| kernels::dot_of_bytes(one, other) as f32;
                let lengths = (product(one, one) * product(other, other)).sqrt();
                if lengths == 0.0 { 0.0 } else { f32::midpoint(1.0, product(one, other) / lengths).max(0.0) }
            }
            // The division keeps the score between 0 and 1 for all bytes.
            Self::DotProduct => {
                let most = one.len() as f32 * 32_768.0;
                0.5 + kernels::dot_of_bytes(one, other) as f32 / most
            }
        }
    }

    /// The score of two vectors of bits. Their distance is the number of bits that differ.
    pub(crate) fn score_of_bits(one: &[u8], other: &[u8]) -> f32 {
        1.0 / (1.0 + kernels::differing_bits(one, other) as f32)
    }
}

/// Scales a vector to length 1. Returns false, and changes nothing, if its length is 0 or not finite.
pub(crate) fn normalize(vector: &mut [f32]) -> bool {
    // Computed in 64 bits, in which the squares of the largest 32-bit numbers are finite.
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if length == 0.0 || !length.is_finite() {
        return false;
    }
    for x in vector {
        *x = (f64::from(*x) / length) as f32;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_those_of_the_documentation() {
        let (one, other) = ([1.0, 0.0, 0.0], [0.8, 0.2, 0.0]);
        let near =
            |score: f32, expected: f64| assert!((f64::from(score) - expected).abs() < 1e-6, "{score} {expected}");
        near(Similarity::Euclidean.score(Similarity::Euclidean.closeness(&one, &other)), 1.0 / (1.0 + 0.08));
        near(Similarity::DotProduct.score(Similarity::DotProduct.closeness(&one, &other)), 0.9);
        let mut unit = other;
        assert!(normalize(&mut unit));
        near(Similarity::Cosine.score(Similarity::Cosine.closeness(&one, &unit)), 0.985_071_24);
        assert!(!normalize(&mut [0.0, -0.0]));
        assert!(normalize(&mut [f32::MAX, 1.0]) && normalize(&mut [f32::MIN_POSITIVE / 2.0]));
    }

    #[test]
    fn scores_of_bytes_and_bits() {
        assert_eq!(Similarity::Euclidean.score_of_bytes(&[1, -2], &[1, 1]), 0.1);
        assert_eq!(Similarity::Cosine.score_of_bytes(&[1, 0], &[-5, 0]), 0.0);
        assert_eq!(Similarity::Cosine.score_of_bytes(&[0, 0], &[5, 0]), 0.0);
        assert_eq!(Similarity::DotProduct.score_of_bytes(&[-128, -128], &[-128, -128]), 1.0);
        assert_eq!(Similarity::score_of_bits(&[0b1100], &[0b1010]), 1.0 / 3.0);
    }
}
