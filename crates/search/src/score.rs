//! Changes of an operator's score: `boost`, `constant`, `function`, `embedded`.

use crate::Reader;
use crate::details::Details;
use crate::function::{Function, number_at};
use crate::unit::Unit;
use bunko_errors::{Failure, Result};

/// The aggregation of the scores of embedded documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Aggregate {
    #[default]
    Sum,
    Maximum,
    Minimum,
    Mean,
}

/// The change of a score.
#[derive(Debug, Default)]
pub(crate) enum Score {
    /// The score stays as it is.
    #[default]
    Kept,
    /// Multiplied by a constant.
    Boost(f32),
    /// Multiplied by a number of the document.
    BoostBy { path: String, undefined: f32 },
    /// Replaced by a constant.
    Constant(f32),
    /// Replaced by the value of a function.
    Function(Function),
    /// Aggregates the scores of embedded documents, then changes the result.
    Embedded { aggregate: Aggregate, outer: Box<Score> },
}

impl Score {
    /// Parses `score`.
    /// # Errors
    /// If it is malformed; `CommandNotSupported` for unsupported options.
    pub fn parse(reader: &Reader<'_>) -> Result<Self> {
        let Some(score) = reader.inner("score")? else { return Ok(Self::Kept) };
        Self::read(&score)
    }

    fn read(score: &Reader<'_>) -> Result<Self> {
        let ways = ["boost", "constant", "function", "embedded", "dismax"];
        if ways.iter().filter(|way| score.value(way).is_some()).count() != 1 {
            return Err(score.failure("must have one of [boost, constant, embedded, function]"));
        }
        let parsed = if let Some(boost) = score.inner("boost")? {
            let (value, path) = (boost.number("value")?, boost.word("path")?);
            let undefined = boost.number("undefined")?;
            boost.done()?;
            match (value, path) {
                (Some(value), None) if value > 0.0 && value.is_finite() => Self::Boost(value as f32),
                (Some(_), None) => return Err(boost.wrong("value", "must be positive")),
                (None, Some(path)) => {
                    Self::BoostBy { path: path.to_owned(), undefined: undefined.unwrap_or(0.0) as f32 }
                }
                _ => return Err(boost.failure("must have one of [path, value]")),
            }
        } else if let Some(constant) = score.inner("constant")? {
            let value = constant.required(constant.number("value")?, "value")?;
            constant.done()?;
            if !(0.0..f64::from(f32::MAX)).contains(&value) {
                return Err(constant.wrong("value", "cannot be negative"));
            }
            Self::Constant(value as f32)
        } else if let Some(function) = score.inner("function")? {
            Self::Function(Function::parse(&function)?)
        } else if let Some(embedded) = score.inner("embedded")? {
            let ways = &[
                ("sum", Aggregate::Sum),
                ("maximum", Aggregate::Maximum),
                ("minimum", Aggregate::Minimum),
                ("mean", Aggregate::Mean),
            ];
            let aggregate = embedded.one_of("aggregate", ways)?.unwrap_or_default();
            let outer = embedded.inner("outerScore")?.map(|outer| Self::read(&outer)).transpose()?.unwrap_or_default();
            embedded.done()?;
            Self::Embedded { aggregate, outer: Box::new(outer) }
        } else {
            return Err(Failure::not_supported_yet(&score.at("dismax")));
        };
        score.done()?;
        Ok(parsed)
    }

    /// The aggregation of the scores of embedded documents.
    pub fn aggregate(&self) -> Aggregate {
        match self {
            Self::Embedded { aggregate, .. } => *aggregate,
            _ => Aggregate::Sum,
        }
    }

    /// Changes an operator's score of a document.
    pub fn apply(&self, score: f32, unit: &Unit<'_>) -> f32 {
        match self {
            Self::Kept => score,
            Self::Boost(by) => score * by,
            Self::BoostBy { path, undefined } => score * number_at(unit, path).map_or(*undefined, |by| by as f32),
            Self::Constant(score) => *score,
            Self::Function(function) => (function.evaluate(f64::from(score), unit) as f32).max(0.0),
            Self::Embedded { outer, .. } => outer.apply(score, unit),
        }
    }

    /// Adds the change to the parts of a score, for `searchScoreDetails`.
    pub fn explain(&self, made: Details, unit: &Unit<'_>) -> Details {
        let way = match self {
            Self::Kept => return made,
            Self::Boost(_) | Self::BoostBy { .. } => "boost",
            Self::Constant(_) => "constant",
            Self::Function(_) => "function",
            Self::Embedded { .. } => "embedded",
        };
        let value = self.apply(made.value, unit);
        Details { value, description: format!("{way}, computed of:"), parts: vec![made] }
    }
}
