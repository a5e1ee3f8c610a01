//! Limits for computations over many vertices.

/// Counts steps, and tells a computation when to stop.
pub trait Effort {
    /// Counts `steps` comparisons of two edges, or of a point and an edge. Returns false if the computation has to
    /// stop. Its answer is then meaningless.
    fn goes_on(&mut self, steps: usize) -> bool;
}

/// No limit, for shapes whose size is bounded in another way.
pub struct Unlimited;

impl Effort for Unlimited {
    fn goes_on(&mut self, _steps: usize) -> bool {
        true
    }
}

/// A limited number of steps.
pub(crate) struct Budget(pub usize);

impl Effort for Budget {
    fn goes_on(&mut self, steps: usize) -> bool {
        let goes_on = self.0 >= steps;
        self.0 = self.0.saturating_sub(steps);
        goes_on
    }
}
