//! The search for the highest rate that meets an objective.

use std::cmp::Ordering;

/// The result of a trial at some rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// The rate was kept and the objective met.
    Met,
    /// The rate was not kept, or the objective not met.
    Missed,
}

/// The beginning of a search and its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSearchOptions {
    /// The first rate to try; positive, in any unit.
    pub start: f64,
    /// With 0.05, for example, the search ends when the lowest rate that missed the goal is less than 5 % above the
    /// highest rate that met it.
    pub resolution: f64,
    /// Maximum number of trials; the search ends after these, whatever it has found.
    pub trials_max: u32,
}

/// Doubles the rate until it misses the objective (or halves it until it meets it), then tries the geometric mean of
/// the two rates.
///
/// The rate at which a noisy system fails varies from trial to trial: a single stall can make it miss far below, and a
/// lucky second can make it meet above. So no conclusion depends on a single trial. The highest rate that met and the
/// lowest that missed are tried once more before the search ends. If two trials of a rate disagree, a third decides.
#[derive(Clone, Debug)]
pub struct RateSearch {
    options: RateSearchOptions,
    trials: Vec<(f64, Trial)>,
}

/// Factor from one rate to the next until a rate that meets and one that misses are known.
const GROWTH: f64 = 2.0;

impl RateSearch {
    /// A search without trials.
    pub fn new(options: RateSearchOptions) -> Self {
        Self { options, trials: Vec::new() }
    }

    /// The rate to try next; `None` when the search has ended.
    pub fn next(&self) -> Option<f64> {
        if self.trials.len() >= self.options.trials_max as usize {
            return None;
        }
        let undecided = self.trials.iter().map(|(rate, _)| *rate).find(|&rate| self.outcome(rate).is_none());
        if undecided.is_some() {
            return undecided;
        }
        match (self.best(), self.ceiling()) {
            (None, None) => Some(self.options.start),
            (Some(best), None) => Some(best * GROWTH),
            (None, Some(ceiling)) => Some(ceiling / GROWTH),
            (Some(best), Some(ceiling)) if ceiling / best >= 1.0 + self.options.resolution => {
                Some((best * ceiling).sqrt())
            }
            (Some(best), Some(ceiling)) => [ceiling, best].into_iter().find(|&rate| self.tried(rate) == 1),
        }
    }

    /// Adds the result of a trial; `rate` may differ from that of [`Self::next`].
    pub fn record(&mut self, rate: f64, trial: Trial) {
        self.trials.push((rate, trial));
    }

    /// The highest rate that met the objective in most of its trials.
    pub fn best(&self) -> Option<f64> {
        self.rates(Trial::Met).reduce(f64::max)
    }

    /// Whether more than one trial supports [`Self::best`]. A search that has used up its trials may end without a
    /// second one.
    pub fn is_confirmed(&self) -> bool {
        self.best().is_some_and(|best| self.tried(best) > 1)
    }

    /// The lowest rate above the best one that missed the objective.
    fn ceiling(&self) -> Option<f64> {
        let best = self.best().unwrap_or(0.0);
        self.rates(Trial::Missed).filter(|&rate| rate > best).reduce(f64::min)
    }

    fn rates(&self, wanted: Trial) -> impl Iterator<Item = f64> {
        self.trials.iter().map(|(rate, _)| *rate).filter(move |&rate| self.outcome(rate) == Some(wanted))
    }

    /// The result of most trials of a rate; `None` if as many met as missed.
    fn outcome(&self, rate: f64) -> Option<Trial> {
        let met = self.of_rate(rate).filter(|trial| *trial == Trial::Met).count();
        match met.cmp(&(self.tried(rate) - met)) {
            Ordering::Greater => Some(Trial::Met),
            Ordering::Less => Some(Trial::Missed),
            Ordering::Equal => None,
        }
    }

    fn tried(&self, rate: f64) -> usize {
        self.of_rate(rate).count()
    }

    fn of_rate(&self, wanted: f64) -> impl Iterator<Item = Trial> {
        self.trials.iter().filter(move |(rate, _)| *rate == wanted).map(|(_, trial)| *trial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    /// The rates tried, and the best one; `meets` gets a trial's number and rate.
    fn search(options: RateSearchOptions, mut meets: impl FnMut(usize, f64) -> bool) -> (Vec<f64>, Option<f64>) {
        let (mut search, mut rates) = (RateSearch::new(options), Vec::new());
        while let Some(rate) = search.next() {
            let trial = if meets(rates.len(), rate) { Trial::Met } else { Trial::Missed };
            search.record(rate, trial);
            rates.push(rate);
        }
        (rates, search.best())
    }

    const OPTIONS: RateSearchOptions = RateSearchOptions { start: 1_000.0, resolution: 0.05, trials_max: 40 };

    #[test]
    fn the_rate_doubles_and_then_closes_in() {
        let (rates, best) = search(RateSearchOptions { resolution: 0.5, ..OPTIONS }, |_, rate| rate <= 5_000.0);
        assert_eq!(rates[..4], [1_000.0, 2_000.0, 4_000.0, 8_000.0]);
        assert!((rates[4] - 5_656.9).abs() < 0.1, "{rates:?}");
        assert_eq!((rates[4], rates[6]), (rates[5], 4_000.0), "the ceiling and the best are confirmed");
        assert_eq!(rates.len(), 7);
        assert_eq!(best, Some(4_000.0));
    }

    #[test]
    fn one_stall_does_not_end_the_search_far_below() {
        let (rates, best) = search(OPTIONS, |trial, rate| rate <= 50_000.0 && trial != 2);
        assert!(best.is_some_and(|best| best > 50_000.0 / 1.05), "{best:?} {rates:?}");
    }

    #[test]
    fn one_lucky_trial_does_not_end_the_search_far_above() {
        let (rates, best) = search(OPTIONS, |trial, rate| rate <= 3_000.0 || trial == 2);
        assert_eq!(rates[2], 4_000.0, "met once, by luck");
        assert!(best.is_some_and(|best| best <= 3_000.0 && best > 3_000.0 / 1.05), "{best:?} {rates:?}");
        assert_eq!(rates.iter().filter(|rate| **rate == 4_000.0).count(), 3, "{rates:?}");
    }

    #[test]
    fn a_search_that_is_cut_off_says_that_nothing_confirms_it() {
        let mut search = RateSearch::new(RateSearchOptions { trials_max: 1, ..OPTIONS });
        search.record(1_000.0, Trial::Met);
        assert_eq!((search.next(), search.best(), search.is_confirmed()), (None, Some(1_000.0), false));
        search.record(1_000.0, Trial::Met);
        assert!(search.is_confirmed());
    }

    #[test]
    fn a_server_that_never_meets_ends_the_search_too() {
        let (rates, best) = search(OPTIONS, |_, _| false);
        assert_eq!((rates.len(), best), (40, None));
        let (rates, best) = search(RateSearchOptions { trials_max: 3, ..OPTIONS }, |_, _| true);
        assert_eq!((rates.len(), best), (3, Some(4_000.0)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_hidden_threshold_is_found(exponent in 0.0_f64..7.0, resolution in 0.01_f64..0.3) {
            let threshold = 10_f64.powf(exponent);
            let options = RateSearchOptions { resolution, ..OPTIONS };
            let (rates, best) = search(options, |_, rate| rate <= threshold);
            let best = best.unwrap();
            prop_assert!(best <= threshold && threshold < best * (1.0 + resolution), "{} {}", best, threshold);
            let doublings = (threshold / options.start).log2().abs() + 2.0;
            let halvings = (2_f64.ln() / resolution.ln_1p()).log2().max(0.0) + 1.0;
            prop_assert!(rates.len() as f64 <= doublings + halvings + 3.0, "{:?}", rates);
        }

        #[test]
        fn a_noisy_threshold_is_found_within_its_noise(exponent in 1.0_f64..6.0, seed: u64) {
            let threshold = 10_f64.powf(exponent);
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let (rates, best) = search(OPTIONS, |_, rate| rate <= threshold * random.random_range(0.9..1.1));
            let best = best.unwrap();
            prop_assert!(rates.len() < OPTIONS.trials_max as usize, "{:?}", rates);
            prop_assert!(best <= threshold * 1.1 && threshold * 0.9 < best * 1.05, "{} {}", best, threshold);
        }
    }
}
