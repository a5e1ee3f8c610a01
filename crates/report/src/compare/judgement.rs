//! Decides which of many differences are significant.
//!
//! A 95 % interval is wrong once in twenty times, so forty equal metrics would show two differences. The metrics are
//! judged together by the procedure of Benjamini and Hochberg: of the differences that it accepts, 5 % are expected to
//! be false, and if nothing differs, it accepts any in at most 5 % of comparisons. It needs tests that are independent
//! or positively dependent, as throughput and latency of one step are. Holm's procedure, which bounds the chance of
//! even one false difference, was rejected: with five repetitions it accepts hardly any.
//!
//! Headline metrics, details and controls are judged separately, so that details do not cost the headlines power.
//!
//! Source: Benjamini & Hochberg 1995, "Controlling the False Discovery Rate"; Benjamini & Yekutieli 2001 for
//! dependence.

use super::drift;
use super::{Direction, MetricComparison, Role, StepComparison, Verdict};
use bunko_statistics::Significance;

/// Expected share of false differences among the accepted ones.
pub(crate) const FALSE_DISCOVERY_RATE: f64 = 0.05;

/// The procedure's name where verdicts are shown.
pub(crate) const PROCEDURE: &str = "Benjamini-Hochberg at 5 % over documents/s and p99 of all steps";

/// Sets every metric's verdict.
pub(super) fn judge(steps: &mut [StepComparison], drift: Option<f64>) {
    for role in [Role::Headline, Role::Detail, Role::Control] {
        let of_role = |metric: &&mut MetricComparison| metric.role == role;
        let family: Vec<_> = steps.iter_mut().flat_map(|step| &mut step.metrics).filter(of_role).collect();
        let probabilities = family.iter().filter_map(|metric| chance(metric)).collect();
        let limit = benjamini_hochberg(probabilities);
        for metric in family {
            metric.verdict = verdict(metric, limit, drift);
        }
    }
}

/// The probability of such a difference by chance; `None` if the samples are too few or too short. 1 for a difference
/// too small to matter: if accepted, it would only help to accept larger differences that are due to chance.
fn chance(metric: &MetricComparison) -> Option<f64> {
    match metric.ratio.significance {
        _ if metric.verdict == Verdict::TooShort => None,
        Significance::TooFewSamples => None,
        Significance::NoDifference => Some(1.0),
        Significance::Higher | Significance::Lower => metric.ratio.p_value,
    }
}

/// The largest probability at which a difference is accepted; `None` if none is.
pub(crate) fn benjamini_hochberg(mut probabilities: Vec<f64>) -> Option<f64> {
    probabilities.sort_by(f64::total_cmp);
    let count = probabilities.len() as f64;
    let stands =
        |&(position, &probability): &(usize, &f64)| probability <= FALSE_DISCOVERY_RATE * (position + 1) as f64 / count;
    probabilities.iter().enumerate().rfind(stands).map(|(_, &probability)| probability)
}

fn verdict(metric: &MetricComparison, limit: Option<f64>, drift: Option<f64>) -> Verdict {
    let Some(probability) = chance(metric) else {
        return match metric.ratio.significance {
            Significance::TooFewSamples => Verdict::TooFewRepetitions,
            _ => Verdict::TooShort,
        };
    };
    let stands = limit.is_some_and(|limit| probability <= limit);
    let higher = metric.ratio.ratio > 1.0;
    match (metric.role, metric.direction) {
        _ if !stands => Verdict::NoDifference,
        (Role::Control, _) => Verdict::Differs,
        _ if !drift::exceeded(metric.direction, &metric.ratio, drift) => Verdict::WithinDrift,
        (_, Direction::HigherIsBetter) if higher => Verdict::Better,
        (_, Direction::LowerIsBetter) if !higher => Verdict::Better,
        _ => Verdict::Worse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_procedure_is_that_of_its_authors() {
        // Benjamini & Hochberg 1995, section 4.1: 15 hypotheses, of which four are rejected.
        let published = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
            0.7590, 1.000,
        ];
        assert_eq!(benjamini_hochberg(published.to_vec()), Some(0.0095));
        assert_eq!(benjamini_hochberg(vec![0.9, 0.051]), None);
        assert_eq!(benjamini_hochberg(vec![0.05, 0.04]), Some(0.05), "a later one carries an earlier one");
        assert_eq!(benjamini_hochberg(Vec::new()), None);
    }
}
