//! Fixed-width integers. They are wide enough that nothing is rounded and nothing allocates.

use std::cmp::Ordering;

/// An unsigned integer of `64 * N` bits, least significant limb first.
/// Callers bound their operands. Exceeding the width is a bug and asserted in debug builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limbs<const N: usize>([u64; N]);

impl<const N: usize> Limbs<N> {
    pub(super) fn from_u128(number: u128) -> Self {
        let mut limbs = [0; N];
        limbs[0] = number as u64;
        limbs[1] = (number >> 64) as u64;
        Self(limbs)
    }

    pub(super) fn product(a: u128, b: u128) -> Self {
        let mut low = Self::from_u128(a);
        low.multiply(b as u64);
        let mut high = Self::from_u128(a);
        high.multiply((b >> 64) as u64);
        high.shift_left(64);
        low.add(&high);
        low
    }

    /// The number, if 128 bits hold it.
    pub(super) fn to_u128(self) -> Option<u128> {
        let fits = self.0[2..].iter().all(|&limb| limb == 0);
        fits.then_some(u128::from(self.0[1]) << 64 | u128::from(self.0[0]))
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0 == [0; N]
    }

    pub(super) fn bit_length(&self) -> u32 {
        let top = self.0.iter().rposition(|&limb| limb != 0);
        top.map_or(0, |index| index as u32 * 64 + (64 - self.0[index].leading_zeros()))
    }

    pub(super) fn multiply(&mut self, factor: u64) {
        let mut carry = 0_u128;
        for limb in &mut self.0 {
            carry += u128::from(*limb) * u128::from(factor);
            *limb = carry as u64;
            carry >>= 64;
        }
        debug_assert_eq!(carry, 0, "product wider than the limbs");
    }

    /// Multiplies by `base` raised to `exponent`; `base` is 5 or 10.
    pub(super) fn multiply_power(&mut self, base: u64, mut exponent: u32) {
        // 10^19 is the largest power of ten in 64 bits.
        while exponent > 0 {
            let step = exponent.min(19);
            self.multiply(base.pow(step));
            exponent -= step;
        }
    }

    /// Divides in place and returns the remainder.
    pub(super) fn divide(&mut self, divisor: u64) -> u64 {
        let mut remainder = 0_u128;
        for limb in self.0.iter_mut().rev() {
            let dividend = remainder << 64 | u128::from(*limb);
            *limb = (dividend / u128::from(divisor)) as u64;
            remainder = dividend % u128::from(divisor);
        }
        remainder as u64
    }

    /// Quotient and remainder by a divisor below 2^127. The division goes bit by bit, because the divisor spans limbs.
    pub(super) fn divide_wide(&self, divisor: u128) -> (Self, u128) {
        let mut quotient = Self([0; N]);
        let mut remainder = 0_u128;
        for bit in (0..self.bit_length()).rev() {
            let (limb, shift) = ((bit / 64) as usize, bit % 64);
            remainder = remainder << 1 | u128::from(self.0[limb] >> shift & 1);
            if remainder >= divisor {
                remainder -= divisor;
                quotient.0[limb] |= 1 << shift;
            }
        }
        (quotient, remainder)
    }

    pub(super) fn shift_left(&mut self, bits: u32) {
        debug_assert!(self.bit_length() + bits <= N as u32 * 64 || self.is_zero(), "shifted out of the limbs");
        let (limbs, bits) = ((bits / 64) as usize, bits % 64);
        for index in (0..N).rev() {
            let limb_at = |offset: usize| index.checked_sub(offset).map_or(0, |source| self.0[source]);
            // A shift by 64 would be undefined; the two-step shift of the lower limb yields 0 there.
            self.0[index] = limb_at(limbs) << bits | limb_at(limbs + 1) >> 1 >> (63 - bits);
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        let mut carry = false;
        for (limb, &addend) in self.0.iter_mut().zip(&other.0) {
            let (sum, first) = limb.overflowing_add(addend);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*limb, carry) = (sum, first || second);
        }
        debug_assert!(!carry, "sum wider than the limbs");
    }

    /// Subtracts a number that is not larger.
    pub(super) fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        for (limb, &subtrahend) in self.0.iter_mut().zip(&other.0) {
            let (difference, first) = limb.overflowing_sub(subtrahend);
            let (difference, second) = difference.overflowing_sub(u64::from(borrow));
            (*limb, borrow) = (difference, first || second);
        }
        debug_assert!(!borrow, "difference below zero");
    }
}

impl<const N: usize> Ord for Limbs<N> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

impl<const N: usize> PartialOrd for Limbs<N> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_divide_back() {
        let (a, b) = (u128::MAX / 7, 10_u128.pow(34) - 1);
        let product = Limbs::<6>::product(a, b);
        assert_eq!(product.divide_wide(b), (Limbs::from_u128(a), 0));
        let mut scaled = Limbs::<6>::from_u128(b);
        scaled.multiply_power(10, 40);
        for _ in 0..4 {
            assert_eq!(scaled.divide(10_u64.pow(10)), 0);
        }
        assert_eq!(scaled.to_u128(), Some(b));
    }

    #[test]
    fn shifts_cross_limbs() {
        for bits in [0, 1, 63, 64, 65, 128, 200] {
            let mut number = Limbs::<6>::from_u128(0x8000_0000_0000_0001_8000_0000_0000_0001);
            number.shift_left(bits);
            assert_eq!(number.bit_length(), 128 + bits);
        }
    }
}
