//! What a computation over many vertices may cost.

/// Counts steps and says when to stop.
pub trait Effort {
    /// Counts `steps` comparisons of two edges, or of a point and an edge; false where the computation has to stop, after
    /// which any answer will do.
    fn goes_on(&mut self, steps: usize) -> bool;
}

/// No limit: for shapes whose size is bounded otherwise.
pub struct Unlimited;

impl Effort for Unlimited {
    fn goes_on(&mut self, _steps: usize) -> bool {
        true
    }
}

/// A number of steps.
pub(crate) struct Budget(pub usize);

impl Effort for Budget {
    fn goes_on(&mut self, steps: usize) -> bool {
        let goes_on = self.0 >= steps;
        self.0 = self.0.saturating_sub(steps);
        goes_on
    }
}
