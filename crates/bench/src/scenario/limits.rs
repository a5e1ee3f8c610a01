//! What a phase's figures must keep.

use super::Bytes;
use serde::{Deserialize, Serialize};

/// Nothing that deserves to be called a limit is larger.
const FACTOR_MAX: f64 = 1_000_000.0;

/// Limits on a phase's figures. One that is exceeded leaves the figures valid, and fails the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Limits {
    /// By which share of itself p99.9 may rise from the phase's beginning to its end.
    pub p999_rise: Option<f64>,
    /// The data directory at the end, over what the documents come to at the ratio by which they compress.
    pub disk_over_live: Option<f64>,
    /// The server's resident memory in any second.
    pub resident: Option<Bytes>,
}

impl Limits {
    /// # Errors
    /// A limit that nothing or everything would keep.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(share) = self.p999_rise.filter(|share| !(0.0..=FACTOR_MAX).contains(share)) {
            return Err(format!("limits: p999-rise: {share} is not in 0..{FACTOR_MAX}"));
        }
        if let Some(factor) = self.disk_over_live.filter(|factor| !(f64::MIN_POSITIVE..=FACTOR_MAX).contains(factor)) {
            return Err(format!("limits: disk-over-live: {factor} is not above 0 and up to {FACTOR_MAX}"));
        }
        match self.resident {
            Some(Bytes(0)) => Err("limits: resident: it is no memory at all".into()),
            _ => Ok(()),
        }
    }
}
