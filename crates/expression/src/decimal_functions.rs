//! Trigonometric and hyperbolic functions of decimals.
//!
//! Each function is computed with 90 digits and rounded once. Arguments are reduced first so that the series converge.
//! Where MongoDB's library only rounds argument and value to binary128, so does this code, and the last digit agrees.

mod large_angle;

use crate::decimal::{DIGITS, EXPONENT_MAX, EXPONENT_MIN};
use bunko_bson::Decimal128;
use dec::{Context, Decimal, Rounding};

/// Room for 90 digits.
pub(crate) type Long = Decimal<30>;

const WORKING_DIGITS: usize = 90;
/// Bits of an IEEE 754 binary128.
const BINARY_DIGITS: i32 = 113;
const PI: &str =
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651";
/// An angle with more digits before its point would leave less than 34 of 90 digits after the reduction by pi.
const ANGLE_DIGITS_MAX: i32 = 50;

/// A function of one decimal within its domain; neither NaN nor infinite.
pub(crate) type Function = fn(&mut Working, Long) -> Long;

/// Arithmetic with 90 digits.
pub(crate) struct Working(Context<Long>);

/// The value of `function` at `number`, rounded to 34 digits.
pub(crate) fn apply(number: Decimal128, function: Function) -> Decimal128 {
    let mut working = Working::new();
    let argument = working.number(number);
    let value = function(&mut working, argument);
    Working::narrow(value)
}

/// The value of `function`, with argument and value rounded to binary128.
fn in_binary(working: &mut Working, number: Long, function: Function) -> Long {
    let argument = working.binary(number);
    let value = function(working, argument);
    working.binary(value)
}

/// The angle of the point `(x, y)`.
pub(crate) fn atan2(y: Decimal128, x: Decimal128) -> Decimal128 {
    let mut working = Working::new();
    let (y, x) = (working.number(y), working.number(x));
    let value = working.angle(y, x);
    Working::narrow(value)
}

pub(crate) fn sin(working: &mut Working, number: Long) -> Long {
    let (quarter, rest) = working.reduced(number);
    working.sine_in_quarter(quarter, rest)
}

pub(crate) fn cos(working: &mut Working, number: Long) -> Long {
    let (quarter, rest) = working.reduced(number);
    working.sine_in_quarter(quarter + 1, rest)
}

pub(crate) fn tan(working: &mut Working, number: Long) -> Long {
    let (sine, cosine) = (sin(working, number), cos(working, number));
    working.over(sine, cosine)
}

pub(crate) fn asin(working: &mut Working, number: Long) -> Long {
    let cosine = working.pythagorean(number);
    working.angle(number, cosine)
}

pub(crate) fn acos(working: &mut Working, number: Long) -> Long {
    let sine = working.pythagorean(number);
    working.angle(sine, number)
}

pub(crate) fn atan(working: &mut Working, number: Long) -> Long {
    in_binary(working, number, |working, number| working.angle(number, Long::from(1)))
}

pub(crate) fn sinh(working: &mut Working, number: Long) -> Long {
    if Working::is_small(number) {
        return working.series(number, |n| (2 * n) * (2 * n + 1), Signs::Same);
    }
    let (grown, shrunk) = working.exponentials(number);
    let difference = working.minus(grown, shrunk);
    working.over(difference, Long::from(2))
}

pub(crate) fn cosh(working: &mut Working, number: Long) -> Long {
    let (grown, shrunk) = working.exponentials(number);
    let sum = working.plus(grown, shrunk);
    working.over(sum, Long::from(2))
}

pub(crate) fn tanh(working: &mut Working, number: Long) -> Long {
    in_binary(working, number, exact_tanh)
}

fn exact_tanh(working: &mut Working, number: Long) -> Long {
    // From there on the value is 1 to 34 digits, long before the exponentials overflow.
    if number.is_infinite() || number.exponent() + number.digits() as i32 > 3 {
        return if number.is_negative() { Long::from(-1) } else { Long::from(1) };
    }
    let (sine, cosine) = (sinh(working, number), cosh(working, number));
    working.over(sine, cosine)
}

pub(crate) fn asinh(working: &mut Working, number: Long) -> Long {
    in_binary(working, number, exact_asinh)
}

fn exact_asinh(working: &mut Working, number: Long) -> Long {
    let square = working.times(number, number);
    let below_root = working.plus(square, Long::from(1));
    let root = working.root(below_root);
    // For small numbers the logarithm of 1 + x is the inverse tangent hyperbolic of x / root.
    if Working::is_small(number) {
        let ratio = working.over(number, root);
        return atanh(working, ratio);
    }
    let size = working.size(number);
    let sum = working.plus(size, root);
    let logarithm = working.logarithm(sum);
    if number.is_negative() { working.minus(Long::from(0), logarithm) } else { logarithm }
}

pub(crate) fn acosh(working: &mut Working, number: Long) -> Long {
    in_binary(working, number, exact_acosh)
}

fn exact_acosh(working: &mut Working, number: Long) -> Long {
    let square = working.times(number, number);
    let below_root = working.minus(square, Long::from(1));
    let root = working.root(below_root);
    let sum = working.plus(number, root);
    working.logarithm(sum)
}

pub(crate) fn atanh(working: &mut Working, number: Long) -> Long {
    if Working::is_small(number) {
        return working.odd_reciprocals(number, Signs::Same);
    }
    let (above, below) = (working.plus(Long::from(1), number), working.minus(Long::from(1), number));
    let ratio = working.over(above, below);
    let logarithm = working.logarithm(ratio);
    working.over(logarithm, Long::from(2))
}

/// The signs of a series' terms.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signs {
    Same,
    Alternate,
}

impl Working {
    pub(crate) fn new() -> Self {
        let mut context = Context::<Long>::default();
        context.set_rounding(Rounding::HalfEven);
        // All three are within the limits of the library.
        context.set_precision(WORKING_DIGITS).expect("90 digits fit");
        context.set_max_exponent(99_999).expect("in range");
        context.set_min_exponent(-99_999).expect("in range");
        Self(context)
    }

    pub(crate) fn parse(&mut self, text: &str) -> Long {
        self.0.parse(text).unwrap_or_else(|_| Long::nan())
    }

    pub(crate) fn narrow(mut number: Long) -> Decimal128 {
        let mut context = Context::<Long>::default();
        context.set_rounding(Rounding::HalfEven);
        context.set_precision(DIGITS).expect("34 digits fit");
        context.set_max_exponent(EXPONENT_MAX).expect("in range");
        context.set_min_exponent(EXPONENT_MIN).expect("in range");
        context.plus(&mut number);
        Decimal128::parse(&number.to_string()).unwrap_or(Decimal128::NAN)
    }

    pub(crate) fn number(&mut self, number: Decimal128) -> Long {
        self.parse(&number.to_string())
    }

    fn pi(&mut self) -> Long {
        self.parse(PI)
    }

    /// Half of pi: the angle of a quarter of a circle.
    pub(crate) fn quarter(&mut self) -> Long {
        let pi = self.pi();
        self.over(pi, Long::from(2))
    }

    pub(crate) fn plus(&mut self, mut left: Long, right: Long) -> Long {
        self.0.add(&mut left, &right);
        left
    }

    pub(crate) fn minus(&mut self, mut left: Long, right: Long) -> Long {
        self.0.sub(&mut left, &right);
        left
    }

    pub(crate) fn times(&mut self, mut left: Long, right: Long) -> Long {
        self.0.mul(&mut left, &right);
        left
    }

    pub(crate) fn over(&mut self, mut left: Long, right: Long) -> Long {
        self.0.div(&mut left, &right);
        left
    }

    fn root(&mut self, mut number: Long) -> Long {
        self.0.sqrt(&mut number);
        number
    }

    pub(crate) fn logarithm(&mut self, mut number: Long) -> Long {
        self.0.ln(&mut number);
        number
    }

    pub(crate) fn size(&mut self, mut number: Long) -> Long {
        self.0.abs(&mut number);
        number
    }

    /// `e^x` and `e^-x`.
    fn exponentials(&mut self, number: Long) -> (Long, Long) {
        let grown = self.grown(number);
        (grown, self.over(Long::from(1), grown))
    }

    /// `e^x`.
    pub(crate) fn grown(&mut self, mut number: Long) -> Long {
        self.0.exp(&mut number);
        number
    }

    /// The next integer in the direction of `rounding`.
    pub(crate) fn integer(&mut self, mut number: Long, rounding: Rounding) -> Long {
        self.0.set_rounding(rounding);
        self.0.round(&mut number);
        self.0.set_rounding(Rounding::HalfEven);
        number
    }

    /// The nearest IEEE 754 binary128 number; the range of exponents is not limited.
    pub(crate) fn binary(&mut self, number: Long) -> Long {
        self.binary_towards(number, Rounding::HalfEven)
    }

    /// As `binary`, rounded as `rounding` says.
    pub(crate) fn binary_towards(&mut self, number: Long, rounding: Rounding) -> Long {
        if number.is_zero() || !number.is_finite() {
            return number;
        }
        // The power of ten below gives the power of two to within 4 bits.
        let magnitude = number.exponent() + number.digits() as i32 - 1;
        let mut shift = BINARY_DIGITS - 1 - (f64::from(magnitude) * std::f64::consts::LOG2_10).floor() as i32;
        let limit = self.power_of_two(BINARY_DIGITS);
        let mut factor = self.power_of_two(shift);
        let mut scaled = self.times(number, factor);
        while self.size(scaled) >= limit {
            shift -= 1;
            factor = self.power_of_two(shift);
            scaled = self.times(number, factor);
        }
        let integer = self.integer(scaled, rounding);
        self.over(integer, factor)
    }

    fn power_of_two(&mut self, exponent: i32) -> Long {
        let mut power = Long::from(2);
        self.0.pow(&mut power, &Long::from(exponent));
        power
    }

    /// Whether a power series converges fast, and a difference of nearby numbers would lose digits.
    fn is_small(number: Long) -> bool {
        number.is_zero() || number.exponent() + (number.digits() as i32) < 0
    }

    /// `sqrt(1 - x^2)`, without loss of digits near 1.
    fn pythagorean(&mut self, number: Long) -> Long {
        let (above, below) = (self.plus(Long::from(1), number), self.minus(Long::from(1), number));
        let product = self.times(above, below);
        self.root(product)
    }

    /// The quarter of the circle that contains an angle, counted around zero, and the angle from the quarter's middle.
    fn reduced(&mut self, number: Long) -> (i64, Long) {
        if number.exponent().saturating_add(i32::try_from(number.digits()).unwrap_or(0)) > ANGLE_DIGITS_MAX {
            return large_angle::reduced(self, number);
        }
        let quarter = self.quarter();
        let mut count = self.over(number, quarter);
        self.0.round(&mut count);
        let turned = self.times(count, quarter);
        let mut in_turn = count;
        self.0.rem(&mut in_turn, &Long::from(4));
        let in_turn = in_turn.to_string().parse::<f64>().map_or(0, |quarter| quarter as i64);
        (in_turn.rem_euclid(4), self.minus(number, turned))
    }

    /// The sine of an angle that is `rest` away from `quarter` quarters.
    fn sine_in_quarter(&mut self, quarter: i64, rest: Long) -> Long {
        let value = if quarter % 2 == 0 {
            self.series(rest, |n| (2 * n) * (2 * n + 1), Signs::Alternate)
        } else {
            let square = self.times(rest, rest);
            let mut term = Long::from(1);
            let mut sum = term;
            for n in 1_i32.. {
                term = self.next_term(term, square, (2 * n - 1) * (2 * n), Signs::Alternate);
                let next = self.plus(sum, term);
                if next == sum || next.is_nan() {
                    break;
                }
                sum = next;
            }
            sum
        };
        if quarter % 4 >= 2 { self.minus(Long::from(0), value) } else { value }
    }

    /// `x + x^3/(d1) + x^5/(d1 d2) + ...`
    fn series(&mut self, number: Long, divisor: fn(i32) -> i32, signs: Signs) -> Long {
        let square = self.times(number, number);
        let (mut term, mut sum) = (number, number);
        for n in 1_i32.. {
            term = self.next_term(term, square, divisor(n), signs);
            let next = self.plus(sum, term);
            if next == sum || next.is_nan() {
                break;
            }
            sum = next;
        }
        sum
    }

    fn next_term(&mut self, term: Long, square: Long, divisor: i32, signs: Signs) -> Long {
        let product = self.times(term, square);
        let divisor = if signs == Signs::Alternate { -divisor } else { divisor };
        self.over(product, Long::from(divisor))
    }

    /// `x + x^3/3 + x^5/5 + ...`
    fn odd_reciprocals(&mut self, number: Long, signs: Signs) -> Long {
        let square = self.times(number, number);
        let (mut power, mut sum) = (number, number);
        for n in 1_i32.. {
            power = self.next_term(power, square, 1, signs);
            let term = self.over(power, Long::from(2 * n + 1));
            let next = self.plus(sum, term);
            if next == sum || next.is_nan() {
                break;
            }
            sum = next;
        }
        sum
    }

    /// The angle of the point `(x, y)`.
    fn angle(&mut self, y: Long, x: Long) -> Long {
        let pi = self.pi();
        let half = self.over(pi, Long::from(2));
        let signed = |angle: Long| if y.is_negative() { -angle } else { angle };
        if y.is_zero() && x.is_zero() || x.is_infinite() && y.is_infinite() {
            let diagonal = if y.is_zero() { Long::from(0) } else { self.over(half, Long::from(2)) };
            return signed(if x.is_negative() { self.minus(pi, diagonal) } else { diagonal });
        }
        if x.is_zero() || y.is_infinite() {
            return signed(half);
        }
        let ratio = if x.is_infinite() { Long::from(0) } else { self.over(y, x) };
        let size = self.size(ratio);
        let angle = self.angle_of_ratio(size, half);
        signed(if x.is_negative() { self.minus(pi, angle) } else { angle })
    }

    /// The angle whose tangent is `ratio`, which is not negative.
    fn angle_of_ratio(&mut self, ratio: Long, half: Long) -> Long {
        if ratio.exponent() + ratio.digits() as i32 > 1 {
            let inverse = self.over(Long::from(1), ratio);
            let complement = self.angle_of_ratio(inverse, half);
            return self.minus(half, complement);
        }
        let (mut small, mut doublings) = (ratio, 0);
        while !Self::is_small(small) {
            let square = self.times(small, small);
            let below_root = self.plus(square, Long::from(1));
            let root = self.root(below_root);
            let divisor = self.plus(root, Long::from(1));
            small = self.over(small, divisor);
            doublings += 1;
        }
        let angle = self.odd_reciprocals(small, Signs::Alternate);
        self.times(angle, Long::from(1 << doublings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Binary = fn(f64) -> f64;

    fn at(function: Function, number: &str) -> String {
        apply(Decimal128::parse(number).expect("a decimal"), function).to_string()
    }

    #[test]
    fn inverses_lead_back() {
        let there_and_back: [(Function, Function); 6] =
            [(sin, asin), (cos, acos), (tan, atan), (sinh, asinh), (cosh, acosh), (tanh, atanh)];
        for (there, back) in there_and_back {
            for number in ["0.3", "0.000000000000000000001234", "1.25"] {
                // The cosine of such a small number is 1 to 34 digits.
                if number.len() > 10 && [cos as Function, cosh as Function].contains(&there) {
                    continue;
                }
                let mut working = Working::new();
                let argument = working.parse(number);
                let image = there(&mut working, argument);
                let preimage = back(&mut working, image);
                let narrow: f64 = Working::narrow(preimage).to_string().parse().expect("a number");
                let expected: f64 = number.parse().expect("a number");
                assert!((narrow - expected).abs() <= expected * 1e-15, "{number}: {narrow}");
            }
        }
    }

    #[test]
    fn doubles_agree() {
        for number in ["-7.5", "-1", "-0.01", "0", "0.5", "1", "3.14159", "22", "100000"] {
            let double: f64 = number.parse().expect("a number");
            let functions: [(Function, Binary); 6] = [
                (sin, f64::sin),
                (cos, f64::cos),
                (tan, f64::tan),
                (atan, f64::atan),
                (asinh, f64::asinh),
                (tanh, f64::tanh),
            ];
            for (position, (decimal, binary)) in functions.into_iter().enumerate() {
                let found: f64 = at(decimal, number).parse().expect("a number");
                let expected = binary(double);
                assert!(
                    (found - expected).abs() <= 1e-13 * expected.abs().max(1.0),
                    "{position} {number}: {found} {expected}"
                );
            }
        }
    }
}
