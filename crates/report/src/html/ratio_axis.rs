//! Ratios on a logarithmic axis around 1, so that twice and half are equally far from it.

use super::markup::Markup;
use super::steps::line;
use bunko_statistics::{Ratio, Significance};

/// Width and height of one row, in CSS pixels.
const STRIP: (f64, f64) = (240.0, 20.0);
/// Ratios beyond are drawn at the end of the axis.
const FARTHEST: f64 = 20.0;
/// The axis ends at least at this ratio, so that noise does not look like a large difference.
const NEAREST: f64 = 1.25;
/// Ratios above 1 that may be marked; those below are their inverses.
const MARKS: [f64; 8] = [1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0];
/// Minimum distance of two marks, in CSS pixels.
const MARK_DISTANCE_MIN: f64 = 32.0;

/// A logarithmic axis from one over `reach` to `reach`.
pub(super) struct RatioAxis {
    reach: f64,
}

impl RatioAxis {
    /// The axis that is long enough for all the ratios.
    pub(super) fn of<'a>(ratios: impl Iterator<Item = &'a Ratio>) -> Self {
        let ends = ratios.flat_map(|ratio| [1.0 / ratio.low, ratio.high]).filter(|end| end.is_finite());
        Self { reach: (ends.fold(NEAREST, f64::max) * 1.03).min(FARTHEST) }
    }

    /// Distance of a ratio's place from the axis's middle, in CSS pixels; negative below 1.
    fn distance(&self, ratio: f64) -> f64 {
        STRIP.0 / 2.0 * ratio.clamp(1.0 / self.reach, self.reach).ln() / self.reach.ln()
    }

    fn at(&self, ratio: f64) -> String {
        format!("{:.1}", STRIP.0 / 2.0 + self.distance(ratio))
    }

    /// The marks: 1, and outwards from it as many marks as have room.
    fn marks(&self) -> Vec<f64> {
        let mut marks = vec![1.0];
        let mut outermost = 0.0;
        for mark in MARKS.into_iter().filter(|mark| *mark <= self.reach) {
            if self.distance(mark) - outermost >= MARK_DISTANCE_MIN {
                outermost = self.distance(mark);
                marks.extend([1.0 / mark, mark]);
            }
        }
        marks
    }

    /// Appends the axis's labels, for the column's heading.
    pub(super) fn ticks(&self, cell: &mut Markup) {
        svg(cell, ("aria-label", "ratio, logarithmic"), |svg| {
            for mark in self.marks() {
                let attributes = [("class", "tick"), ("x", &self.at(mark)), ("y", "16"), ("text-anchor", "middle")];
                svg.element("text", &attributes, format!("{mark:.2}").trim_end_matches('0').trim_end_matches('.'));
            }
        });
    }

    /// Draws the ratio as a dot, and its interval as a line.
    pub(super) fn whisker(&self, cell: &mut Markup, ratio: &Ratio, class: &str) {
        svg(cell, ("aria-hidden", "true"), |svg| {
            for mark in self.marks() {
                let class = if mark == 1.0 { "middle" } else { "tick-line" };
                let (x, below) = (self.at(mark), (STRIP.1 + 8.0).to_string());
                line(svg, class, &[("x1", x.clone()), ("x2", x), ("y1", "-8".to_owned()), ("y2", below)]);
            }
            let middle = (STRIP.1 / 2.0).to_string();
            if ratio.significance != Significance::TooFewSamples {
                let (low, high) = (self.at(ratio.low), self.at(ratio.high));
                let ends = [("x1", low), ("x2", high), ("y1", middle.clone()), ("y2", middle.clone())];
                line(svg, &format!("reach {class}"), &ends);
            }
            let dot = [("class", class), ("cx", &self.at(ratio.ratio)), ("cy", &middle), ("r", "4.5")];
            svg.element("circle", &dot, "");
        });
    }
}

fn svg(cell: &mut Markup, role: (&'static str, &str), fill: impl FnOnce(&mut Markup)) {
    let (width, height) = (STRIP.0.to_string(), STRIP.1.to_string());
    cell.within("svg", &[("width", &width), ("height", &height), role], fill);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(low: f64, high: f64) -> RatioAxis {
        let significance = Significance::NoDifference;
        let ratio = Ratio::of(&[1.0, 1.01, 0.99], &[1.0, 1.01, 0.99]).unwrap();
        RatioAxis::of([&Ratio { low, high, significance, ..ratio }].into_iter())
    }

    #[test]
    fn one_is_in_the_middle_and_both_sides_are_alike() {
        let axis = axis(0.5, 1.1);
        assert_eq!(axis.at(1.0), "120.0");
        assert!((axis.distance(1.5) + axis.distance(1.0 / 1.5)).abs() < 1e-9);
        assert_eq!(axis.marks(), [1.0, 1.0 / 1.5, 1.5, 0.5, 2.0]);
    }

    #[test]
    fn noise_does_not_fill_the_axis_and_outliers_do_not_squeeze_it() {
        assert_eq!(axis(0.99, 1.01).marks(), [1.0, 1.0 / 1.1, 1.1, 1.0 / 1.2, 1.2]);
        assert_eq!(axis(0.001, 1.0).at(0.001), "0.0");
    }
}
