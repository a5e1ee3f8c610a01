//! `vectorSearch` and `knnBeta` inside a search are refused: indexes of type `search` have no vectors here.

use super::{Operator, only_path};
use crate::evaluation::Evaluation;
use crate::schema::Schema;
use crate::unit::Unit;
use crate::{Reader, Refusal};
use bunko_errors::Result;

#[derive(Debug)]
struct Vector {
    path: String,
}

pub(super) fn parse(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    let path = only_path(reader)?;
    numbers(reader, "queryVector")?;
    let most = i64::from(i32::MAX);
    reader.required(reader.integer_within("limit", 1, most)?, "limit")?;
    let exact = reader.boolean("exact")?.unwrap_or(false);
    let candidates = reader.integer_within("numCandidates", 1, 10_000)?;
    if !exact {
        reader.required(candidates, "numCandidates")?;
    }
    if let Some(filter) = reader.inner("filter")? {
        super::Clause::parse_alone(&filter)?;
    }
    Ok(Box::new(Vector { path }))
}

pub(super) fn parse_knn(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    let path = only_path(reader)?;
    numbers(reader, "vector")?;
    reader.required(reader.integer_within("k", 1, 10_000)?, "k")?;
    if let Some(filter) = reader.inner("filter")? {
        super::Clause::parse_alone(&filter)?;
    }
    Ok(Box::new(Vector { path }))
}

fn numbers(reader: &Reader<'_>, name: &str) -> Result<()> {
    let vector = reader.required(reader.array(name)?, name)?;
    let mut count = 0;
    for value in vector.iter() {
        count += 1;
        if !value.is_number() {
            return Err(reader.wrong(name, "must be an array of numbers"));
        }
    }
    if count == 0 { Err(reader.wrong(name, "cannot be empty")) } else { Ok(()) }
}

impl Operator for Vector {
    fn check(&self, _: &Schema) -> Result<()> {
        Err(Refusal::Query.failure(format!("{} is not indexed as vector", self.path)))
    }

    fn score(&self, _: &Unit<'_>, _: &Evaluation) -> Result<Option<f32>> {
        Ok(None)
    }
}
