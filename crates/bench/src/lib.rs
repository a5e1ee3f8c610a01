//! The performance lab: scenarios, load generators, verdicts.
