//! Simulations of changes of level: which are found, and how often noise passes for one.

use crate::noise::{Noise, Source};
use bunko_statistics::ChangePoint;
use bunko_testkit::cpu_time::CpuTime;
use std::time::Duration;

const SERIES: usize = 1_000;
const FALSE_ALARMS_MAX: f64 = 0.05;

/// Places of change points in a series; `level` gets the index.
fn places(source: &mut Source, count: usize, noise: Noise, level: impl Fn(usize) -> f64) -> Vec<usize> {
    let series: Vec<f64> = (0..count).map(|index| source.disturb(1_000.0 * level(index), noise)).collect();
    ChangePoint::all(&series, FALSE_ALARMS_MAX).iter().map(|change| change.place).collect()
}

/// Percentage of series whose places `wanted` accepts.
fn percent(count: usize, noise: Noise, level: impl Fn(usize) -> f64, wanted: impl Fn(&[usize]) -> bool) -> f64 {
    let mut source = Source::new(count as u64);
    let found = (0..SERIES).filter(|_| wanted(&places(&mut source, count, noise, &level))).count();
    found as f64 * 100.0 / SERIES as f64
}

fn some(places: &[usize]) -> bool {
    !places.is_empty()
}

fn near(place: usize, wanted: usize) -> bool {
    place.abs_diff(wanted) <= 1
}

#[test]
fn a_level_that_stays_has_no_change() {
    for count in [3, 6, 7, 8, 10, 20, 40, 100] {
        for deviation in [0.02, 0.05] {
            // Consecutive stalls look like a level.
            let limits = [(Noise::Normal(deviation), 6.0), (Noise::HeavyTailed(deviation), 6.0)];
            for (noise, limit) in limits.into_iter().chain([(Noise::Stalling(deviation), 14.0)]) {
                let percent = percent(count, noise, |_| 1.0, some);
                assert!(percent <= limit, "{count} {noise:?}: {percent} of 100 change");
            }
        }
    }
}

#[test]
fn a_tenth_slower_is_found() {
    let level = |index: usize| if index < 10 { 1.0 } else { 0.9 };
    let found = percent(20, Noise::Normal(0.05), level, some);
    assert!(found >= 90.0, "found: {found} of 100");
    // With 5 % noise, even a method that knew the size of the step would be this close in only 89 of 100 series.
    let beside = |places: &[usize]| places.iter().any(|&place| near(place, 10));
    for (noise, least) in [(Noise::Normal(0.05), 75.0), (Noise::Normal(0.04), 90.0), (Noise::HeavyTailed(0.05), 88.0)] {
        let found = percent(20, noise, level, beside);
        assert!(found >= least, "{noise:?}: {found} of 100 in place");
    }
}

#[test]
fn two_steps_are_found() {
    let repaired = |index: usize| if (10..20).contains(&index) { 0.9 } else { 1.0 };
    let stairs = |index: usize| [1.0, 0.9, 0.8][index / 10];
    let both = |places: &[usize]| places.len() == 2 && near(places[0], 10) && near(places[1], 20);
    for (name, level) in [("repaired", &repaired as &dyn Fn(usize) -> f64), ("stairs", &stairs)] {
        let found = percent(30, Noise::Normal(0.03), level, both);
        assert!(found >= 90.0, "{name}: {found} of 100");
    }
}

#[test]
fn three_reports_show_a_fresh_slowdown() {
    let found = percent(
        33,
        Noise::Normal(0.02),
        |index| if index < 30 { 1.0 } else { 0.9 },
        |places| places.last().is_some_and(|&place| near(place, 30)),
    );
    assert!(found >= 95.0, "{found} of 100");
}

#[test]
fn one_outlier_is_no_change() {
    for count in [8, 20, 50] {
        for outlier in [0, 1, count / 2, count - 2, count - 1] {
            let level = |index: usize| if index == outlier { 0.5 } else { 1.0 };
            let found = percent(count, Noise::Normal(0.05), level, some);
            assert!(found <= 9.0, "{outlier} of {count}: {found} of 100");
        }
    }
}

#[test]
fn a_slow_drift_is_a_change() {
    let found = percent(40, Noise::Normal(0.05), |index| 1.0 - 0.2 * index as f64 / 40.0, some);
    assert!(found >= 99.0, "{found} of 100");
}

#[test]
fn a_thousand_figures_take_no_time() {
    let mut source = Source::new(1);
    let began = CpuTime::now();
    let found = places(&mut source, 1_000, Noise::Normal(0.05), |index| if index < 700 { 1.0 } else { 0.85 });
    // The search takes some milliseconds; without optimisation, some hundred.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(found.len() == 1 && near(found[0], 700), "{found:?}");
}
