//! Simulations of rates: which series count as steady.

use crate::noise::{Noise, Source};
use bunko_statistics::Steadiness;

const SERIES: u32 = 300;

/// Percentage of series that drift; `shape` gets a second and the number of seconds.
fn drifting(seconds: usize, noise: Noise, shape: impl Fn(usize, usize) -> f64) -> f64 {
    let mut source = Source::new(seconds as u64);
    let drifting = (0..SERIES).filter(|_| {
        let rates: Vec<f64> =
            (0..seconds).map(|second| source.disturb(1_000.0 * shape(second, seconds), noise)).collect();
        matches!(Steadiness::of(&rates), Steadiness::Drifting { .. })
    });
    drifting.count() as f64 * 100.0 / f64::from(SERIES)
}

#[test]
fn a_constant_rate_is_steady() {
    for seconds in [6, 10, 30, 60, 100, 600] {
        for noise in [Noise::Normal, Noise::HeavyTailed, Noise::Stalling] {
            for noise in [noise(0.02), noise(0.1)] {
                let percent = drifting(seconds, noise, |_, _| 1.0);
                assert!(percent <= 5.0, "{seconds} s {noise:?}: {percent} of 100 drift");
            }
        }
    }
}

#[test]
fn noise_that_lasts_some_seconds_is_steady() {
    for seconds in [10, 30, 60, 120, 600] {
        let mut source = Source::new(seconds);
        let drifting = (0..SERIES).filter(|_| {
            let mut lasting = 0.0;
            let rates: Vec<f64> = (0..seconds)
                .map(|_| {
                    lasting = 0.5 * lasting + 0.05 * source.normal();
                    1_000.0 * f64::exp(lasting)
                })
                .collect();
            matches!(Steadiness::of(&rates), Steadiness::Drifting { .. })
        });
        let percent = drifting.count() as f64 * 100.0 / f64::from(SERIES);
        assert!(percent <= 8.0, "{seconds} s: {percent} of 100 drift");
    }
}

#[test]
fn a_saw_tooth_is_steady() {
    for seconds in [12, 30, 60, 600] {
        for period in [2, 3, 5, 6] {
            let percent = drifting(seconds, Noise::Normal(0.05), |second, _| {
                0.7 + 0.6 * (second % period) as f64 / (period - 1) as f64
            });
            assert!(percent <= 5.0, "{seconds} s, period {period} s: {percent} of 100 drift");
        }
    }
}

#[test]
fn a_change_of_the_level_is_found() {
    let decline = |second: usize, seconds: usize| 1.0 - 0.3 * second as f64 / seconds as f64;
    let step = |second: usize, seconds: usize| if second < seconds / 2 { 1.0 } else { 0.8 };
    let warm_up = |second: usize, _: usize| if second < 4 { 0.5 } else { 1.0 };
    let gentle_warm_up = |second: usize, _: usize| 1.0 - 0.7 * (second as f64 / -3.0).exp();
    for seconds in [20, 30, 60] {
        let percent = |shape: fn(usize, usize) -> f64, deviation| drifting(seconds, Noise::Normal(deviation), shape);
        for (name, shape) in [("decline", decline as fn(usize, usize) -> f64), ("step", step)] {
            let found = percent(shape, 0.05);
            assert!(found >= 95.0, "{name} in {seconds} s: {found} of 100");
        }
        for (name, shape) in [("warm-up", warm_up as fn(usize, usize) -> f64), ("gentle warm-up", gentle_warm_up)] {
            let found = percent(shape, 0.1);
            assert!(found >= 95.0, "{name} in {seconds} s: {found} of 100");
        }
    }
    let found = drifting(600, Noise::Normal(0.1), decline);
    assert!(found >= 99.0, "decline in 600 s: {found} of 100");
    let found = drifting(6, Noise::Normal(0.02), |second, _| if second < 3 { 0.5 } else { 1.0 });
    assert!(found >= 95.0, "warm-up in 6 s: {found} of 100");
}
