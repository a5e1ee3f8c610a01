//! Limits of a phase's figures.

use super::Bytes;
use serde::{Deserialize, Serialize};

/// Largest limit that is accepted.
const FACTOR_MAX: f64 = 1_000_000.0;

/// Limits of a phase's figures. Exceeding one leaves the figures valid, and fails the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Limits {
    /// Share by which p99.9 may rise from the phase's beginning to its end.
    pub p999_rise: Option<f64>,
    /// Maximum number of bytes of the data directory at the end, as a factor of the documents' size divided by their
    /// compression ratio.
    pub disk_over_live: Option<f64>,
    /// Maximum resident memory of the server in any second.
    pub resident: Option<Bytes>,
}

impl Limits {
    /// # Errors
    /// A limit that could never be kept, or never be exceeded.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(share) = self.p999_rise.filter(|share| !(0.0..=FACTOR_MAX).contains(share)) {
            return Err(format!("limits: p999-rise: {share} is not in 0..{FACTOR_MAX}"));
        }
        if let Some(factor) = self.disk_over_live.filter(|factor| !(f64::MIN_POSITIVE..=FACTOR_MAX).contains(factor)) {
            return Err(format!("limits: disk-over-live: {factor} is not above 0 and up to {FACTOR_MAX}"));
        }
        match self.resident {
            Some(Bytes(0)) => Err("limits: resident: it is zero".into()),
            _ => Ok(()),
        }
    }
}
