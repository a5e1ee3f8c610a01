//! Computed scores: from constants, numbers in the document, and the score of the operator itself. Source: MongoDB
//! Atlas Search manual, "Modify the Score", "function".

use crate::Reader;
use crate::unit::Unit;
use bunko_bson::{ValueRef, number};
use bunko_errors::Result;

/// A formula that computes a score.
#[derive(Debug)]
pub(crate) enum Function {
    Add(Vec<Function>),
    Multiply(Vec<Function>),
    Constant(f64),
    /// The score as it was.
    Relevance,
    Path {
        path: String,
        undefined: f64,
    },
    Log(Box<Function>),
    Log1p(Box<Function>),
    /// A Gaussian decay around `origin`.
    Gauss {
        path: String,
        undefined: f64,
        origin: f64,
        scale: f64,
        offset: f64,
        decay: f64,
    },
}

const WAYS: [&str; 8] = ["add", "constant", "gauss", "log", "log1p", "multiply", "path", "score"];

impl Function {
    pub fn parse(reader: &Reader<'_>) -> Result<Self> {
        if WAYS.iter().filter(|way| reader.value(way).is_some()).count() != 1 {
            return Err(reader.failure(&format!("must have one of [{}]", WAYS.join(", "))));
        }
        let parsed = if let Some(parts) = several(reader, "add")? {
            Self::Add(parts)
        } else if let Some(parts) = several(reader, "multiply")? {
            Self::Multiply(parts)
        } else if reader.value("constant").is_some() {
            Self::Constant(reader.required(reader.number("constant")?, "constant")?)
        } else if reader.value("score").is_some() {
            reader.one_of("score", &[("relevance", ())])?;
            Self::Relevance
        } else if reader.value("path").is_some() {
            let (path, undefined) = path(reader)?;
            Self::Path { path, undefined }
        } else if let Some(inner) = reader.inner("log")? {
            Self::Log(Box::new(Self::parse(&inner)?))
        } else if let Some(inner) = reader.inner("log1p")? {
            Self::Log1p(Box::new(Self::parse(&inner)?))
        } else {
            gauss(&reader.required(reader.inner("gauss")?, "gauss")?)?
        };
        reader.done()?;
        Ok(parsed)
    }

    pub fn evaluate(&self, score: f64, unit: &Unit<'_>) -> f64 {
        match self {
            Self::Add(parts) => parts.iter().map(|part| part.evaluate(score, unit)).sum(),
            Self::Multiply(parts) => parts.iter().map(|part| part.evaluate(score, unit)).product(),
            Self::Constant(constant) => *constant,
            Self::Relevance => score,
            Self::Path { path, undefined } => number_at(unit, path).unwrap_or(*undefined),
            Self::Log(inner) => inner.evaluate(score, unit).log10(),
            Self::Log1p(inner) => (inner.evaluate(score, unit) + 1.0).log10(),
            Self::Gauss { path, undefined, origin, scale, offset, decay } => {
                let value = number_at(unit, path).unwrap_or(*undefined);
                let distance = ((value - origin).abs() - offset).max(0.0);
                let variance = -(scale * scale) / (2.0 * decay.ln());
                (-(distance * distance) / (2.0 * variance)).exp()
            }
        }
    }
}

fn several(reader: &Reader<'_>, name: &str) -> Result<Option<Vec<Function>>> {
    let Some(parts) = reader.inners(name)? else { return Ok(None) };
    if parts.len() < 2 {
        return Err(reader.wrong(name, "must have at least 2 expressions"));
    }
    parts.iter().map(Function::parse).collect::<Result<_>>().map(Some)
}

/// A path, by its name or with a value for documents that lack it.
fn path(reader: &Reader<'_>) -> Result<(String, f64)> {
    match reader.required(reader.value("path"), "path")? {
        ValueRef::String(path) => Ok((path.to_owned(), 0.0)),
        _ => {
            let inner = reader.required(reader.inner("path")?, "path")?;
            let path = inner.required(inner.word("value")?, "value")?.to_owned();
            let undefined = inner.number("undefined")?.unwrap_or(0.0);
            inner.done()?;
            Ok((path, undefined))
        }
    }
}

fn gauss(reader: &Reader<'_>) -> Result<Function> {
    let (path, undefined) = path(reader)?;
    let origin = reader.required(reader.number("origin")?, "origin")?;
    let scale = reader.required(reader.number("scale")?, "scale")?;
    let offset = reader.number("offset")?.unwrap_or(0.0);
    let decay = reader.number("decay")?.unwrap_or(0.5);
    reader.done()?;
    if scale.is_nan() || scale <= 0.0 {
        return Err(reader.wrong("scale", "must be positive"));
    }
    if decay.is_nan() || decay <= 0.0 || decay >= 1.0 {
        return Err(reader.wrong("decay", "must be within bounds (0, 1)"));
    }
    Ok(Function::Gauss { path, undefined, origin, scale, offset, decay })
}

/// The first number of a document at a path.
pub(crate) fn number_at(unit: &Unit<'_>, path: &str) -> Option<f64> {
    unit.values(path).find(|field| field.value.is_number()).and_then(|field| number::as_f64(field.value))
}
