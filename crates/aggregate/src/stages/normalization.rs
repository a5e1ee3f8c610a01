//! Makes scores of different origin comparable.

use crate::stage_fields::StageFields;
use bunko_errors::{Failure, Result};

/// The normalization of a score.
/// Source: MongoDB manual, "$scoreFusion", "normalization".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Normalization {
    /// No change.
    None,
    /// The logistic function of the score.
    Sigmoid,
    /// The position between the lowest and the highest score.
    MinMaxScaler,
}

impl Normalization {
    /// The value of the field `normalization`.
    /// # Errors
    /// `TypeMismatch`, `BadValue`.
    pub(super) fn asked(stage: &str, fields: &StageFields<'_>) -> Result<Option<Self>> {
        Ok(Some(match fields.string("normalization")? {
            None => return Ok(None),
            Some("none") => Self::None,
            Some("sigmoid") => Self::Sigmoid,
            Some("minMaxScaler") => Self::MinMaxScaler,
            Some(other) => {
                let message =
                    format!("Enumeration value '{other}' for field '{stage}.normalization' is not a valid value.");
                return Err(Failure::bad_value(message));
            }
        }))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sigmoid => "sigmoid",
            Self::MinMaxScaler => "minMaxScaler",
        }
    }

    /// Normalizes a score; `range` is that of all scores.
    pub(super) fn apply(self, score: f64, range: Range) -> f64 {
        match self {
            Self::None => score,
            Self::Sigmoid => 1.0 / (1.0 + (-score).exp()),
            // If all scores are equal, the range is empty and the position is undefined.
            Self::MinMaxScaler if range.least >= range.greatest => 0.0,
            Self::MinMaxScaler => (score - range.least) / (range.greatest - range.least),
        }
    }
}

/// The lowest and the highest score.
#[derive(Clone, Copy)]
pub(super) struct Range {
    least: f64,
    greatest: f64,
}

impl Range {
    pub(super) fn of(scores: impl Iterator<Item = f64>) -> Self {
        let none = Self { least: f64::INFINITY, greatest: f64::NEG_INFINITY };
        scores.fold(none, |range, score| Self { least: range.least.min(score), greatest: range.greatest.max(score) })
    }
}
