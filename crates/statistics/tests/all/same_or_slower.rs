//! Simulations of comparisons: two runs of the same build must not differ, and a slowdown must be found.

use crate::noise::{Noise, Source};
use bunko_statistics::{Estimate, Ratio, Significance};

const COMPARISONS: u32 = 600;

/// The order of runs in an A/B comparison.
#[derive(Clone, Copy, Debug)]
enum Design {
    /// All runs of A, then all of B.
    Independent,
    /// A B A B, while the machine slows down and recovers for both.
    Interleaved,
}

/// Percentage of comparisons that end with `expected`; B is `speed` times as fast as A.
fn percent(design: Design, repetitions: usize, speed: f64, noise: Noise, expected: Significance) -> f64 {
    let mut source = Source::new(repetitions as u64);
    let hits = (0..COMPARISONS).filter(|_| {
        let (mut machine, mut a, mut b) = (1_000.0, Vec::new(), Vec::new());
        for _ in 0..repetitions {
            if matches!(design, Design::Interleaved) {
                machine *= (0.1 * source.normal()).exp();
            }
            a.push(source.disturb(machine, noise));
            b.push(source.disturb(machine * speed, noise));
        }
        let ratio = match design {
            Design::Independent => Ratio::of(&a, &b),
            Design::Interleaved => Ratio::paired(&a, &b),
        };
        ratio.unwrap().significance == expected
    });
    hits.count() as f64 * 100.0 / f64::from(COMPARISONS)
}

#[test]
fn the_same_build_does_not_differ_from_itself() {
    for design in [Design::Independent, Design::Interleaved] {
        for repetitions in [3, 5, 7, 10, 30] {
            for noise in [Noise::Normal, Noise::HeavyTailed, Noise::Stalling] {
                for noise in [noise(0.03), noise(0.15)] {
                    let same = percent(design, repetitions, 1.0, noise, Significance::NoDifference);
                    assert!(same >= 92.0, "{design:?} {repetitions} {noise:?}: {same} of 100");
                }
            }
        }
    }
}

/// Repetitions, slowdown, noise, and the percentages of comparisons that must find it: independent, interleaved.
const POWER: [(usize, f64, Noise, f64, f64); 10] = [
    (3, 0.9, Noise::Normal(0.03), 75.0, 55.0),
    (5, 0.9, Noise::Normal(0.03), 98.0, 96.0),
    (5, 0.9, Noise::HeavyTailed(0.03), 95.0, 94.0),
    (5, 0.9, Noise::Stalling(0.03), 45.0, 45.0),
    (5, 0.8, Noise::Normal(0.08), 90.0, 85.0),
    (7, 0.9, Noise::Normal(0.03), 99.0, 98.0),
    (7, 0.9, Noise::Stalling(0.03), 75.0, 75.0),
    (10, 0.9, Noise::Stalling(0.03), 85.0, 85.0),
    (10, 0.95, Noise::Normal(0.03), 80.0, 75.0),
    (30, 0.97, Noise::HeavyTailed(0.03), 95.0, 95.0),
];

#[test]
fn a_slowdown_is_found() {
    for (repetitions, speed, noise, independent, interleaved) in POWER {
        for (design, expected) in [(Design::Independent, independent), (Design::Interleaved, interleaved)] {
            let found = percent(design, repetitions, speed, noise, Significance::Lower);
            assert!(found >= expected, "{design:?} {repetitions} {speed} {noise:?}: {found} of 100");
            let wrong = percent(design, repetitions, speed, noise, Significance::Higher);
            assert!(wrong <= 0.5, "{design:?} {repetitions} {speed} {noise:?}: {wrong} of 100 are higher");
        }
    }
}

#[test]
fn an_interval_covers_the_true_figure() {
    for repetitions in [3, 5, 7, 10, 30] {
        for noise in [Noise::Normal(0.1), Noise::HeavyTailed(0.1)] {
            let mut source = Source::new(7);
            let covered = (0..COMPARISONS).filter(|_| {
                let samples: Vec<f64> = (0..repetitions).map(|_| source.disturb(1_000.0, noise)).collect();
                let (low, high) = Estimate::of(&samples).unwrap().interval.unwrap();
                low <= 1_000.0 && 1_000.0 <= high
            });
            let percent = covered.count() as f64 * 100.0 / f64::from(COMPARISONS);
            assert!((92.0..=99.0).contains(&percent), "{repetitions} {noise:?}: {percent} of 100");
        }
    }
}
