//! Simulations of tail latencies: which series count as rising.

use crate::noise::{Noise, Source};
use bunko_statistics::Trend;

const SERIES: u32 = 300;
/// The rise that a scenario may allow, as a fraction.
const SHARE: f64 = 0.1;

/// Percentage of series that rise by more than [`SHARE`]. `level` gets a step and the number of steps; `memory` is the
/// fraction of a disturbance that remains at the next step.
fn rising(steps: usize, noise: Noise, memory: f64, level: impl Fn(usize, usize) -> f64) -> f64 {
    let mut source = Source::new(steps as u64);
    let rising = (0..SERIES).filter(|_| {
        let mut lasting = 0.0;
        let series: Vec<f64> = (0..steps)
            .map(|step| {
                lasting = memory * lasting + source.disturb(1.0, noise).ln();
                2_000.0 * level(step, steps) * f64::exp(lasting)
            })
            .collect();
        Trend::of(&series).is_some_and(|trend| trend.rises_by_more_than(SHARE))
    });
    rising.count() as f64 * 100.0 / f64::from(SERIES)
}

#[test]
fn a_level_tail_does_not_rise() {
    for steps in [10, 20, 30, 60] {
        for noise in [Noise::Normal(0.1), Noise::Normal(0.4), Noise::HeavyTailed(0.3), Noise::Stalling(0.2)] {
            let percent = rising(steps, noise, 0.0, |_, _| 1.0);
            assert!(percent <= 2.0, "{steps} steps {noise:?}: {percent} of 100 rise");
        }
    }
}

#[test]
fn noise_that_lasts_and_checkpoints_that_come_back_do_not_rise() {
    for steps in [30, 60] {
        let percent = rising(steps, Noise::Normal(0.15), 0.5, |_, _| 1.0);
        assert!(percent <= 4.0, "{steps} steps: {percent} of 100 rise");
        let saw_tooth = |step: usize, _: usize| if step % 6 < 2 { 3.0 } else { 1.0 };
        let percent = rising(steps, Noise::Normal(0.15), 0.0, saw_tooth);
        assert!(percent <= 2.0, "{steps} steps: {percent} of 100 rise");
    }
}

#[test]
fn a_tail_that_gets_worse_rises() {
    let slope = |to: f64| move |step: usize, steps: usize| 1.0 + (to - 1.0) * step as f64 / (steps - 1) as f64;
    for (to, noise) in [(1.5, Noise::Normal(0.15)), (2.0, Noise::HeavyTailed(0.3)), (2.0, Noise::Stalling(0.2))] {
        let percent = rising(60, noise, 0.0, slope(to));
        assert!(percent >= 95.0, "to {to} {noise:?}: {percent} of 100 rise");
    }
    let falling = rising(60, Noise::Normal(0.15), 0.0, slope(0.5));
    assert_eq!(falling, 0.0);
}
