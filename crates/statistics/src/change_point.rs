//! Finds places where the level of a series changed.

use crate::centre::{mean, median};
use crate::ratio::RELEVANT_DIFFERENCE;
use crate::student;
use serde::{Deserialize, Serialize};

/// A place where a series of figures, one per run of the same thing, changed to another level and stayed there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangePoint {
    /// Index of the first figure on the new level.
    pub place: usize,
    /// Median of the level before it. That level begins at the previous change point or with the series.
    pub before: f64,
    /// Median of the level after it. That level ends at the next change point or with the series.
    pub after: f64,
    /// The probability that noise alone makes a change this clear anywhere in such a series.
    pub chance: f64,
}

/// Minimum number of figures in the first and in the last level; fewer cannot be distinguished from outliers.
const END_LEVEL_MIN: usize = 3;
/// Minimum number of figures in other levels: on a machine with other users, short levels come and go.
const INNER_LEVEL_MIN: usize = 6;
/// Number of figures on either side of a figure that decide whether it is an outlier.
const NEIGHBOURS: usize = 4;
/// An outlier is moved to this many deviations from the median of its neighbourhood.
const OUTLIER_DEVIATIONS: f64 = 2.5;
/// Minimum saving in squared deviations, in units of the variance, for a level to be tested. It is low, because a test
/// follows.
const PENALTY: f64 = 6.0;
/// In longer series there are so many pairs of levels that chance finds one; see [`Levels::chance`].
const LONG_SERIES: f64 = 30.0;
/// For normal noise: the deviation divided by the median distance between neighbours.
const DEVIATION_OF_DISTANCE: f64 = 1.048_358;
/// Minimum deviation assumed for the logarithms; a change that this hides does not matter.
const DEVIATION_MIN: f64 = RELEVANT_DIFFERENCE / 10.0;

impl ChangePoint {
    /// Minimum number of figures in a series with two levels.
    pub const SERIES_MIN: usize = 2 * END_LEVEL_MIN;

    /// All change points of a series, in order. Noise alone gives one with a probability of at most `false_alarms_max`.
    /// None if a figure is not positive and finite. Takes quadratic time: some milliseconds for 1,000 figures.
    ///
    /// It works on the logarithms, see [`crate::Estimate::of`]. Outliers are moved towards their neighbours. Then it
    /// finds the division into levels with the least sum of squared deviations and a penalty per level (Jackson's
    /// optimal partitioning). Finally it removes the least significant change until every remaining one is significant
    /// (Student's t, with Bonferroni's correction for the number of places) and at least 2 %.
    ///
    /// In simulations with 20 figures, a deviation of 5 % and a step of 10 % in the middle, it finds the step in 92 of
    /// 100 series, and in 78 at most one place off. A method that knew the size of the step would be as close in 89.
    /// With a deviation of 4 % it finds 99 and is close in 91 (of 95).
    ///
    /// Rejected: binary segmentation, because no single place divides a series well if a slowdown was repaired again.
    /// E-divisive, because its permutations find nothing in fewer than 8 figures. The test of [`crate::Ratio::of`],
    /// because it trims a fifth of the figures at each end, which loses more places than it saves here.
    ///
    /// Source: B. Jackson et al., "An algorithm for optimal partitioning of data on an interval", IEEE Signal
    /// Processing Letters 12 (2005).
    pub fn all(series: &[f64], false_alarms_max: f64) -> Vec<Self> {
        let usable = |figure: &f64| *figure > 0.0 && figure.is_finite();
        if series.len() < Self::SERIES_MIN || !series.iter().all(usable) {
            return Vec::new();
        }
        let logarithms: Vec<f64> = series.iter().map(|figure| figure.ln()).collect();
        let deviation = deviation(&logarithms);
        let levels = Levels::new(&without_outliers(&logarithms, deviation));
        let places = levels.divide(PENALTY * deviation * deviation);
        let mut standing = levels.keep_significant(places, false_alarms_max);
        settle(&mut standing, &logarithms, OUTLIER_DEVIATIONS * deviation);
        let of_place = |(index, &(place, chance)): (usize, &(usize, f64))| {
            let begin = if index == 0 { 0 } else { standing[index - 1].0 };
            let end = standing.get(index + 1).map_or(series.len(), |next| next.0);
            Self { place, before: median(&series[begin..place]), after: median(&series[place..end]), chance }
        };
        standing.iter().enumerate().map(of_place).collect()
    }

    /// The new level divided by the old one.
    pub fn ratio(&self) -> f64 {
        self.after / self.before
    }
}

/// The standard deviation around all levels, derived from the distances of neighbours, which changes of level hardly
/// affect.
fn deviation(logarithms: &[f64]) -> f64 {
    let distances: Vec<f64> = logarithms.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    (median(&distances) * DEVIATION_OF_DISTANCE).max(DEVIATION_MIN)
}

/// Moves outliers towards the median of their neighbourhood. It extends equally far to the left and right of a figure,
/// so that next to a step, the median is that of the figure's own side.
fn without_outliers(logarithms: &[f64], deviation: f64) -> Vec<f64> {
    let last = logarithms.len() - 1;
    let reach = OUTLIER_DEVIATIONS * deviation;
    let drawn_in = |(index, logarithm): (usize, &f64)| {
        // At the ends, the neighbourhood must include more than the figure itself; a level has at least this many
        // figures there.
        let neighbours = index.min(last - index).clamp(END_LEVEL_MIN - 1, NEIGHBOURS);
        let middle = median(&logarithms[index.saturating_sub(neighbours)..=last.min(index + neighbours)]);
        logarithm.clamp(middle - reach, middle + reach)
    };
    logarithms.iter().enumerate().map(drawn_in).collect()
}

/// Moves each place to where the nearby figures are closest to the medians of the two levels. An outlier next to a step
/// blurs the step when it is moved. Here it counts the same on either side, because distances are limited to `reach`.
fn settle(standing: &mut [(usize, f64)], logarithms: &[f64], reach: f64) {
    for index in 0..standing.len() {
        let begin = if index == 0 { 0 } else { standing[index - 1].0 };
        let end = standing.get(index + 1).map_or(logarithms.len(), |next| next.0);
        let place = standing[index].0;
        let levels = [median(&logarithms[begin..place]), median(&logarithms[place..end])];
        let lowest = place.saturating_sub(NEIGHBOURS).max(begin + END_LEVEL_MIN);
        let highest = (place + NEIGHBOURS).min(end - END_LEVEL_MIN);
        let cost = |place: usize| {
            let of_figure = |at: usize| {
                let distance = logarithms[at] - levels[usize::from(at >= place)];
                distance.powi(2).min(reach.powi(2))
            };
            (lowest..highest).map(of_figure).sum::<f64>()
        };
        let nearest =
            |a: &usize, b: &usize| cost(*a).total_cmp(&cost(*b)).then(a.abs_diff(place).cmp(&b.abs_diff(place)));
        standing[index].0 = (lowest..=highest).min_by(nearest).unwrap_or(place);
    }
}

/// A series with its running sums, so that any part can be evaluated in constant time.
struct Levels {
    /// Sums of the first figures, from none to all.
    sums: Vec<f64>,
    /// Sums of their squares.
    squares: Vec<f64>,
}

impl Levels {
    fn new(series: &[f64]) -> Self {
        // Relative to the mean, because sums of squares far from 0 lose digits.
        let centre = mean(series);
        let (mut sums, mut squares) = (vec![0.0], vec![0.0]);
        let (mut sum, mut square) = (0.0, 0.0);
        for figure in series {
            sum += figure - centre;
            square += (figure - centre).powi(2);
            sums.push(sum);
            squares.push(square);
        }
        Self { sums, squares }
    }

    fn len(&self) -> usize {
        self.sums.len() - 1
    }

    fn mean(&self, begin: usize, end: usize) -> f64 {
        (self.sums[end] - self.sums[begin]) / (end - begin) as f64
    }

    fn squared_deviations(&self, begin: usize, end: usize) -> f64 {
        let sum = self.sums[end] - self.sums[begin];
        (self.squares[end] - self.squares[begin] - sum * sum / (end - begin) as f64).max(0.0)
    }

    /// The places between levels for which squared deviations, plus a penalty per level, are least.
    fn divide(&self, penalty: f64) -> Vec<usize> {
        let count = self.len();
        // For each end: the cost of the best division up to there, and the beginning of its last level.
        let mut best = vec![(f64::INFINITY, 0); count + 1];
        best[0].0 = 0.0;
        for end in END_LEVEL_MIN..=count {
            for begin in 0..=end - END_LEVEL_MIN {
                let is_inner = begin > 0 && end < count;
                if is_inner && end - begin < INNER_LEVEL_MIN {
                    break;
                }
                let cost = best[begin].0 + self.squared_deviations(begin, end) + penalty;
                if cost < best[end].0 {
                    best[end] = (cost, begin);
                }
            }
        }
        let last = best[count].1;
        let mut places: Vec<_> =
            std::iter::successors(Some(last), |&place| Some(best[place].1)).take_while(|&place| place > 0).collect();
        places.reverse();
        places
    }

    /// Removes the least significant place until all others are significant. Returns these with their chances.
    fn keep_significant(&self, mut places: Vec<usize>, false_alarms_max: f64) -> Vec<(usize, f64)> {
        loop {
            let chances = self.chances(&places);
            let least = chances.iter().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b));
            match least {
                Some((index, &chance)) if chance > false_alarms_max => _ = places.remove(index),
                _ => return places.into_iter().zip(chances).collect(),
            }
        }
    }

    fn chances(&self, places: &[usize]) -> Vec<f64> {
        let bounds: Vec<_> = [0].iter().chain(places).chain(&[self.len()]).copied().collect();
        bounds.windows(3).map(|bounds| self.chance(bounds[0], bounds[1], bounds[2])).collect()
    }

    /// The probability that noise makes such a difference somewhere in the series.
    ///
    /// The place and the ends of both levels were chosen among all places, and longer series have more choices. In
    /// simulations, the probability holds for normal and heavy-tailed noise (Student's t, 3 degrees of freedom). If one
    /// figure in ten stalls by 10 to 40 %, consecutive stalls can pass for a level: with a limit of 5 %, in 2 of 100
    /// series of 6 figures, and in 12 of 100 series of 100.
    fn chance(&self, begin: usize, place: usize, end: usize) -> f64 {
        let difference = (self.mean(place, end) - self.mean(begin, place)).abs();
        if difference < RELEVANT_DIFFERENCE.ln_1p() {
            return 1.0;
        }
        let degrees_of_freedom = (end - begin - 2) as f64;
        let variance = (self.squared_deviations(begin, place) + self.squared_deviations(place, end))
            / degrees_of_freedom
            * (1.0 / (place - begin) as f64 + 1.0 / (end - place) as f64);
        let probability = student::two_sided_probability(difference / variance.sqrt(), degrees_of_freedom);
        let places = (self.len() - Self::ENDS) as f64;
        (probability * places * (self.len() as f64 / LONG_SERIES).max(1.0)).min(1.0)
    }

    /// Number of places too close to an end.
    const ENDS: usize = 2 * END_LEVEL_MIN - 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(series: &[f64]) -> Vec<usize> {
        ChangePoint::all(series, 0.05).iter().map(|change| change.place).collect()
    }

    const NOWHERE: [usize; 0] = [];

    /// Varies by 1 % up and down.
    fn wobble(index: usize) -> f64 {
        [1.0, 1.01, 0.99, 1.004, 0.995][index % 5]
    }

    #[test]
    fn a_step_has_its_place_and_its_levels() {
        let series: Vec<f64> = (0..20).map(|index| if index < 12 { 100.0 } else { 80.0 } * wobble(index)).collect();
        let found = ChangePoint::all(&series, 0.05);
        assert_eq!(found.len(), 1, "{found:?}");
        let change = found[0];
        assert_eq!((change.place, change.before), (12, 100.0));
        assert!((change.ratio() - 0.8).abs() < 0.004 && change.chance < 1e-6, "{change:?}");
    }

    #[test]
    fn a_slowdown_that_was_repaired_is_two_changes() {
        let level = |index| if (10..20).contains(&index) { 90.0 } else { 100.0 };
        let series: Vec<f64> = (0..30).map(|index| level(index) * wobble(index)).collect();
        assert_eq!(places(&series), [10, 20]);
    }

    #[test]
    fn series_without_noise_are_judged_too() {
        assert_eq!(places(&[5.0; 100]), NOWHERE);
        let mut sizes = vec![5.0; 20];
        sizes[12..].fill(5.2);
        assert_eq!(places(&sizes), [12]);
        sizes[12..].fill(5.05);
        assert_eq!(places(&sizes), NOWHERE, "1 % does not matter");
        assert_eq!(places(&[5.0, 5.0, 5.0, 4.0, 4.0, 4.0]), [3]);
    }

    #[test]
    fn one_outlier_is_no_change_wherever_it_is() {
        for outlier in 0..20 {
            for factor in [0.1, 0.5, 3.0] {
                let mut series: Vec<f64> = (0..20).map(|index| 100.0 * wobble(index)).collect();
                series[outlier] *= factor;
                assert_eq!(places(&series), NOWHERE, "{factor} at {outlier}");
            }
        }
    }

    #[test]
    fn outliers_beside_a_step_do_not_hide_it() {
        for outliers in [(30.0, 200.0), (300.0, 20.0)] {
            let level = |index: usize| if index < 10 { 100.0 } else { 90.0 };
            let mut series: Vec<f64> = (0..20).map(|index| level(index) * wobble(index)).collect();
            (series[6], series[14]) = outliers;
            let found = places(&series);
            assert!(found.len() == 1 && found[0].abs_diff(10) <= 1, "{outliers:?}: {found:?}");
        }
    }

    #[test]
    fn a_series_without_two_levels_or_a_logarithm_has_no_change() {
        assert_eq!(places(&[]), NOWHERE);
        assert_eq!(places(&[1.0, 1.0, 1.0, 9.0, 9.0]), NOWHERE);
        assert_eq!(places(&[1.0, 1.0, 1.0, 0.0, 9.0, 9.0, 9.0]), NOWHERE);
        assert_eq!(places(&[1.0, 1.0, 1.0, f64::NAN, 9.0, 9.0, 9.0]), NOWHERE);
    }
}
