//! The change of the machine between A and B.
//!
//! Two runs on a shared machine, one after the other, have different neighbours. The generator is the same program and
//! does the same work per request in both, so its processor time per request shows the machine's speed.

use super::metric::GENERATOR_COST;
use super::{Direction, MetricComparison, StepComparison};
use bunko_statistics::Ratio;

/// A larger change of the generator's cost is due to the machine; a smaller one is noise.
const NOTABLE: f64 = 1.05;

/// The generator's cost in B over that in A, the median of all steps; `None` where it is unknown.
pub(super) fn of_machine(steps: &[StepComparison]) -> Option<f64> {
    let cost = |metric: &&MetricComparison| metric.metric == GENERATOR_COST;
    let metrics = steps.iter().flat_map(|step| &step.metrics).filter(cost);
    let mut ratios: Vec<f64> = metrics.map(|metric| metric.b.median / metric.a.median).collect();
    ratios.sort_by(f64::total_cmp);
    let upper = ratios.get(ratios.len() / 2)?;
    let lower = ratios.get((ratios.len() - 1) / 2)?;
    Some((lower * upper).sqrt())
}

/// The caution about the change, if it is notable.
pub(super) fn caution(drift: f64) -> Option<String> {
    let (factor, speed) = if drift > 1.0 { (drift, "slower") } else { (1.0 / drift, "faster") };
    (factor > NOTABLE).then(|| {
        format!(
            "the machine was {factor:.2}x {speed} in B by the generator's own cost per request: a difference that this \
             may explain counts only beyond that factor"
        )
    })
}

/// Whether a difference exceeds the one that the machine's change may explain. A slower machine explains a worse B,
/// never a better one.
pub(crate) fn exceeded(direction: Direction, ratio: &Ratio, drift: Option<f64>) -> bool {
    let Some(drift) = drift.filter(|drift| drift.max(drift.recip()) > NOTABLE) else { return true };
    let slower = match direction {
        Direction::LowerIsBetter => (ratio.low, ratio.high),
        Direction::HigherIsBetter => (ratio.high.recip(), ratio.low.recip()),
    };
    slower.0 > drift.max(1.0) || slower.1 < drift.min(1.0)
}
