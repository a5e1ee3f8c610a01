//! Scores of different origin, made comparable.

use crate::stage_fields::StageFields;
use bunko_errors::{Failure, Result};

/// What becomes of a score.
/// Source: MongoDB manual, "$scoreFusion", "normalization".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Normalization {
    /// Nothing.
    None,
    /// The logistic function of it.
    Sigmoid,
    /// Its place between the least and the greatest of all.
    MinMaxScaler,
}

impl Normalization {
    /// What the field `normalization` asks for.
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

    /// A score among all whose range is known.
    pub(super) fn apply(self, score: f64, range: Range) -> f64 {
        match self {
            Self::None => score,
            Self::Sigmoid => 1.0 / (1.0 + (-score).exp()),
            // Of one value there is no place between the ends.
            Self::MinMaxScaler if range.least >= range.greatest => 0.0,
            Self::MinMaxScaler => (score - range.least) / (range.greatest - range.least),
        }
    }
}

/// The least and the greatest of scores.
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
