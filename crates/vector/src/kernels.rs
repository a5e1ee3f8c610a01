//! The loops that take most of the time, written so that compilers make vector instructions of them: sums in
//! independent lanes. On x86-64 each is also compiled for processors with AVX2, and chosen at each call.
//!
//! The vectors may differ in length; elements without a partner are ignored.

const LANES: usize = 16;

/// Defines a function, and a version of it that is compiled for AVX2 and used if the processor has that.
macro_rules! kernel {
    ($(#[$documentation:meta])* $name:ident, $wide:ident, $body:ident, $element:ty, $sum:ty) => {
        $(#[$documentation])*
        #[inline]
        pub(crate) fn $name(one: &[$element], other: &[$element]) -> $sum {
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2, for which the function was compiled.
                return unsafe { $wide(one, other) };
            }
            $body(one, other)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn $wide(one: &[$element], other: &[$element]) -> $sum {
            $body(one, other)
        }
    };
}

kernel!(
    /// The dot product of two vectors.
    dot, dot_wide, dot_body, f32, f32
);
kernel!(
    /// The squared distance of two vectors.
    squared_distance, squared_distance_wide, squared_distance_body, f32, f32
);
kernel!(
    /// The dot product of two vectors of bytes, which must not be longer than 65,536.
    dot_of_bytes, dot_of_bytes_wide, dot_of_bytes_body, i8, i32
);
kernel!(
    /// The squared distance of two vectors of bytes, which must not be longer than 32,768.
    squared_distance_of_bytes, squared_distance_of_bytes_wide, squared_distance_of_bytes_body, i8, i32
);
kernel!(
    /// Number of bits that differ.
    differing_bits, differing_bits_wide, differing_bits_body, u8, u32
);

#[allow(clippy::inline_always, reason = "so that it is compiled for what the caller is compiled for")]
#[inline(always)]
fn in_lanes<E: Copy, S: Copy + Default + std::ops::AddAssign + std::iter::Sum>(
    one: &[E],
    other: &[E],
    term: impl Fn(E, E) -> S,
) -> S {
    let length = one.len().min(other.len());
    let (one, one_rest) = one[..length].as_chunks::<LANES>();
    let (other, other_rest) = other[..length].as_chunks::<LANES>();
    let mut sums = [S::default(); LANES];
    for (one, other) in one.iter().zip(other) {
        for lane in 0..LANES {
            sums[lane] += term(one[lane], other[lane]);
        }
    }
    let rest: S = one_rest.iter().zip(other_rest).map(|(one, other)| term(*one, *other)).sum();
    let mut sum: S = sums.into_iter().sum();
    sum += rest;
    sum
}

#[allow(clippy::inline_always, reason = "so that it is compiled for what the caller is compiled for")]
#[inline(always)]
fn dot_body(one: &[f32], other: &[f32]) -> f32 {
    in_lanes(one, other, |one, other| one * other)
}

#[allow(clippy::inline_always, reason = "so that it is compiled for what the caller is compiled for")]
#[inline(always)]
fn squared_distance_body(one: &[f32], other: &[f32]) -> f32 {
    in_lanes(one, other, |one, other| (one - other) * (one - other))
}

#[allow(clippy::inline_always, reason = "so that it is compiled for what the caller is compiled for")]
#[inline(always)]
fn dot_of_bytes_body(one: &[i8], other: &[i8]) -> i32 {
    in_lanes(one, other, |one, other| i32::from(one) * i32::from(other))
}

#[allow(clippy::inline_always, reason = "so that it is compiled for what the caller is compiled for")]
#[inline(always)]
fn squared_distance_of_bytes_body(one: &[i8], other: &[i8]) -> i32 {
    in_lanes(one, other, |one, other| {
        let apart = i32::from(one) - i32::from(other);
        apart * apart
    })
}

#[allow(clippy::inline_always, reason = "so that it is compiled for what the caller is compiled for")]
#[inline(always)]
fn differing_bits_body(one: &[u8], other: &[u8]) -> u32 {
    in_lanes(one, other, |one, other| (one ^ other).count_ones())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_agree_with_plain_sums_at_every_length() {
        for length in 0..70_usize {
            let one: Vec<f32> = (0..length).map(|i| (i as f32 * 0.37).sin()).collect();
            let other: Vec<f32> = (0..length).map(|i| (i as f32 * 0.11).cos()).collect();
            let plain: f32 = one.iter().zip(&other).map(|(a, b)| a * b).sum();
            assert!((dot(&one, &other) - plain).abs() < 1e-4, "{length}");
            let plain: f32 = one.iter().zip(&other).map(|(a, b)| (a - b) * (a - b)).sum();
            assert!((squared_distance(&one, &other) - plain).abs() < 1e-4, "{length}");
            let one: Vec<i8> = (0..length).map(|i| (i * 37 % 256) as u8 as i8).collect();
            let other: Vec<i8> = (0..length).map(|i| (i * 91 % 256) as u8 as i8).collect();
            let plain: i32 = one.iter().zip(&other).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
            assert_eq!(dot_of_bytes(&one, &other), plain);
            let plain: i32 = one.iter().zip(&other).map(|(a, b)| (i32::from(*a) - i32::from(*b)).pow(2)).sum();
            assert_eq!(squared_distance_of_bytes(&one, &other), plain);
            let bits = |bytes: &[i8]| bytes.iter().map(|byte| *byte as u8).collect::<Vec<_>>();
            let plain: u32 = one.iter().zip(&other).map(|(a, b)| ((a ^ b) as u8).count_ones()).sum();
            assert_eq!(differing_bits(&bits(&one), &bits(&other)), plain);
        }
        assert_eq!(dot(&[1.0, 2.0], &[3.0]), 3.0);
    }
}
