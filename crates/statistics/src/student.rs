//! Student's t distribution.

/// The probability that `|T|` exceeds `t`. The number of degrees of freedom is positive and may be fractional.
///
/// Source: Abramowitz & Stegun, Handbook of Mathematical Functions, 26.7.1 and 26.5.27:
/// `P(|T| > t) = I_x(df / 2, 1 / 2)` with `x = df / (df + t^2)`.
pub fn two_sided_probability(t: f64, degrees_of_freedom: f64) -> f64 {
    let x = degrees_of_freedom / (degrees_of_freedom + t * t);
    incomplete_beta(x, degrees_of_freedom / 2.0, 0.5)
}

/// The `t` that `|T|` exceeds with a probability of `1 - confidence`.
pub fn critical_value(confidence: f64, degrees_of_freedom: f64) -> f64 {
    let probability = 1.0 - confidence;
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided_probability(high, degrees_of_freedom) > probability {
        high *= 2.0;
    }
    // After 60 halvings, an `f64` cannot resolve further differences.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if two_sided_probability(middle, degrees_of_freedom) > probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The regularised incomplete beta function `I_x(a, b)`.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The continued fraction converges fast only on this side; 26.5.2 maps the other one to it.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let ln_beta = ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
    let factor = (a * x.ln() + b * (-x).ln_1p() - ln_beta).exp() / a;
    factor / beta_fraction(x, a, b)
}

/// Abramowitz & Stegun 26.5.8, evaluated from its last term to its first.
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TERM_PAIRS: u32 = 50;
    (0..TERM_PAIRS).rev().fold(1.0, |rest, pair| {
        let m = f64::from(pair);
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let m = m + 1.0;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        1.0 + odd / (1.0 + even / rest)
    })
}

/// Stirling's series (Abramowitz & Stegun 6.1.41) for a positive argument. 6.1.15 first raises the argument to where
/// four terms give twelve digits.
fn ln_gamma(argument: f64) -> f64 {
    let (mut x, mut lifted) = (argument, 0.0);
    while x < 12.0 {
        lifted += x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series = (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1_260.0 - 1.0 / (1_680.0 * square)) / square) / square) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - lifted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values_are_those_of_the_printed_table() {
        // Abramowitz & Stegun, table 26.10: degrees of freedom, t for 0.95 and 0.99.
        let table = [
            (1.0, 12.706, 63.657),
            (2.0, 4.303, 9.925),
            (3.0, 3.182, 5.841),
            (4.0, 2.776, 4.604),
            (8.0, 2.306, 3.355),
            (10.0, 2.228, 3.169),
            (30.0, 2.042, 2.750),
            (120.0, 1.980, 2.617),
        ];
        for (degrees_of_freedom, t95, t99) in table {
            assert!((critical_value(0.95, degrees_of_freedom) - t95).abs() < 0.000_6, "{degrees_of_freedom}");
            assert!((critical_value(0.99, degrees_of_freedom) - t99).abs() < 0.000_6, "{degrees_of_freedom}");
        }
    }

    #[test]
    fn one_degree_of_freedom_is_the_cauchy_distribution() {
        for t in [0.0_f64, 0.1, 1.0, 10.0, 1_000.0] {
            let exact = 1.0 - t.atan() * std::f64::consts::FRAC_2_PI;
            assert!((two_sided_probability(t, 1.0) - exact).abs() < 1e-10, "{t}");
        }
        assert_eq!(two_sided_probability(f64::INFINITY, 5.0), 0.0);
    }

    #[test]
    fn small_probabilities_keep_their_digits() {
        // For 4 degrees of freedom 26.7.4 gives P(|T| < t) in closed form: with u = t / sqrt(4 + t^2), 1.5 u - 0.5 u^3.
        for t in [0.5_f64, 3.0, 20.0, 200.0] {
            let rest = 4.0 / (t * t + 4.0) / (1.0 + t / (4.0 + t * t).sqrt());
            let exact = 1.5 * rest * rest - 0.5 * rest.powi(3);
            assert!((two_sided_probability(t, 4.0) / exact - 1.0).abs() < 1e-9, "{t}");
        }
        // With many degrees of freedom it approaches the normal distribution.
        assert!((two_sided_probability(1.959_964, 1e6) - 0.05).abs() < 1e-5);
    }

    #[test]
    fn fractional_degrees_of_freedom_lie_between_whole_ones() {
        let (low, middle, high) = (critical_value(0.95, 5.0), critical_value(0.95, 4.5), critical_value(0.95, 4.0));
        assert!(low < middle && middle < high, "{low} {middle} {high}");
    }
}
