//! Decides whether a run was in a steady state.

use crate::centre::{mean, median, squared_deviations};
use crate::student;
use serde::{Deserialize, Serialize};

/// Whether a rate kept its level during a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Steadiness {
    /// The rate kept its level, apart from noise, single stalls and cycles.
    Steady,
    /// The rate changed from one level to another by a step or a slope: a server that warms up, fills its memory or
    /// falls behind.
    Drifting {
        /// Median level before the change.
        from: f64,
        /// Median level after it.
        to: f64,
    },
    /// Fewer than six intervals.
    TooShort,
}

/// Fewer intervals cannot be distinguished from noise.
const INTERVALS_MIN: usize = 6;
/// Minimum number of blocks in a level, so that its median withstands one stall.
const LEVEL_BLOCKS_MIN: usize = 3;
/// Longer series are averaged to at most this many blocks. A change shorter than a twentieth of a run does not affect
/// its result, and the test assumes independent values, which neighbouring seconds are not.
const BLOCKS_MAX: usize = 60;
/// Levels that differ by less, relative to the higher one, count as the same.
const RELEVANT_CHANGE: f64 = 0.1;
/// Probability of taking noise for a change at any of the possible places.
const FALSE_ALARMS_MAX: f64 = 0.02;

impl Steadiness {
    /// The steadiness of the rates of consecutive intervals of equal length.
    ///
    /// Every place is tried as a change of level. It counts if the levels before and after differ by more than 10 %, if
    /// that is significant (Student's t, with Bonferroni's correction for the number of places), and if the run does
    /// not return to the level elsewhere. The most significant place is chosen. A slope has such a place near its
    /// middle. Rejected: a trend test (Mann and Kendall) with Theil and Sen's slope, which would find a slope, but not
    /// a short warm-up, and a step not reliably.
    pub fn of(per_interval: &[f64]) -> Self {
        if per_interval.len() < INTERVALS_MIN {
            return Self::TooShort;
        }
        let block = per_interval.len().div_ceil(BLOCKS_MAX);
        let blocks: Vec<f64> = per_interval.chunks(block).map(mean).collect();
        let places = LEVEL_BLOCKS_MIN..=blocks.len() - LEVEL_BLOCKS_MIN;
        let false_alarms_max = FALSE_ALARMS_MAX / places.clone().count() as f64;
        places
            .map(|place| Change::at(&blocks, place))
            .filter(|change| change.is_relevant() && change.false_alarms() < false_alarms_max && !change.returns())
            .max_by(|a, b| a.t.total_cmp(&b.t))
            .map_or(Self::Steady, |change| Self::Drifting { from: change.from, to: change.to })
    }
}

/// A place where the level may have changed.
struct Change<'a> {
    before: &'a [f64],
    after: &'a [f64],
    from: f64,
    to: f64,
    /// Difference of the means, divided by its standard deviation.
    t: f64,
}

impl<'a> Change<'a> {
    fn at(blocks: &'a [f64], place: usize) -> Self {
        let (before, after) = blocks.split_at(place);
        let variance = (squared_deviations(before) + squared_deviations(after)) / (blocks.len() - 2) as f64;
        let of_difference = variance * (1.0 / before.len() as f64 + 1.0 / after.len() as f64);
        let difference = (mean(after) - mean(before)).abs();
        // Without any noise the quotient is NaN for equal levels and infinite for others.
        let t = if difference == 0.0 { 0.0 } else { difference / of_difference.sqrt() };
        Self { before, after, from: median(before), to: median(after), t }
    }

    fn is_relevant(&self) -> bool {
        (self.to - self.from).abs() > RELEVANT_CHANGE * self.from.max(self.to)
    }

    /// The probability that noise alone looks like this.
    fn false_alarms(&self) -> f64 {
        student::two_sided_probability(self.t, (self.before.len() + self.after.len() - 2) as f64)
    }

    /// Whether the longer part has a stretch as long as the shorter part, whose level is closer to the shorter part's
    /// than to its own. Then the level comes and goes, as with checkpoints.
    fn returns(&self) -> bool {
        let (short, long, level, other) = if self.before.len() < self.after.len() {
            (self.before, self.after, self.from, self.to)
        } else {
            (self.after, self.before, self.to, self.from)
        };
        long.windows(short.len()).map(median).any(|there| (there - level).abs() < (there - other).abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_series_is_too_short() {
        assert_eq!(Steadiness::of(&[]), Steadiness::TooShort);
        assert_eq!(Steadiness::of(&[1.0, 2.0, 3.0, 4.0, 5.0]), Steadiness::TooShort);
    }

    #[test]
    fn a_series_without_noise_is_judged_too() {
        assert_eq!(Steadiness::of(&[0.0; 6]), Steadiness::Steady);
        assert_eq!(Steadiness::of(&[5.0; 100]), Steadiness::Steady);
        let step: Vec<f64> = (0..20).map(|second| if second < 10 { 100.0 } else { 80.0 }).collect();
        assert_eq!(Steadiness::of(&step), Steadiness::Drifting { from: 100.0, to: 80.0 });
        let small_step: Vec<f64> = step.iter().map(|rate| rate + 200.0).collect();
        assert_eq!(Steadiness::of(&small_step), Steadiness::Steady);
    }

    #[test]
    fn one_stall_is_no_drift_wherever_it_is() {
        for stalled in 0..30 {
            let mut rates: Vec<f64> = (0..30).map(|second| 100.0 + f64::from(second % 3)).collect();
            rates[stalled] = 0.0;
            assert_eq!(Steadiness::of(&rates), Steadiness::Steady, "at {stalled}");
        }
    }

    #[test]
    fn checkpoints_every_minute_are_no_drift() {
        let rates: Vec<f64> = (0..180).map(|second| if second % 60 >= 50 { 30.0 } else { 100.0 }).collect();
        assert_eq!(Steadiness::of(&rates), Steadiness::Steady);
    }
}
