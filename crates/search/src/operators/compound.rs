//! `compound`: clauses `must`, `should`, `mustNot` and `filter`.

use super::{Clause, Operator, UseOfPostings};
use crate::Reader;
use crate::details::Details;
use crate::evaluation::{Cut, Evaluation};
use crate::paths::TextField;
use crate::postings::{Postings, Rows};
use crate::schema::Schema;
use crate::unit::Unit;
use bunko_errors::Result;

#[derive(Debug, Default)]
pub(super) struct Compound {
    pub must: Vec<Clause>,
    pub must_not: Vec<Clause>,
    pub should: Vec<Clause>,
    pub filter: Vec<Clause>,
    /// Number of `should` clauses that must match.
    pub should_least: usize,
    pub spares_facets: bool,
}

pub(super) fn parse(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    let clauses = |name: &str| {
        let Some(clauses) = reader.one_or_several(name)? else { return Ok(Vec::new()) };
        if clauses.is_empty() {
            return Err(reader.wrong(name, "cannot be empty"));
        }
        clauses.iter().map(Clause::parse_alone).collect::<Result<Vec<_>>>()
    };
    let (must, must_not, should, filter) =
        (clauses("must")?, clauses("mustNot")?, clauses("should")?, clauses("filter")?);
    if must.is_empty() && must_not.is_empty() && should.is_empty() && filter.is_empty() {
        return Err(reader.failure("must have at least one of [filter, must, mustNot, should]"));
    }
    let least = reader.integer("minimumShouldMatch")?;
    if least.is_some_and(|least| usize::try_from(least).map_or(true, |least| least > should.len())) {
        return Err(reader.wrong("minimumShouldMatch", "must be within the number of should clauses"));
    }
    let should_least = least.map_or_else(
        || usize::from(must.is_empty() && filter.is_empty() && !should.is_empty()),
        |least| least as usize,
    );
    let spares_facets = !super::does_not_affect(reader)?.is_empty();
    Ok(Box::new(Compound { must, must_not, should, filter, should_least, spares_facets }))
}

impl Compound {
    fn clauses(&self) -> impl Iterator<Item = &Clause> {
        self.must.iter().chain(&self.must_not).chain(&self.should).chain(&self.filter)
    }
}

impl Operator for Compound {
    fn spares_facets(&self) -> bool {
        self.spares_facets || self.clauses().any(|clause| clause.operator.spares_facets())
    }

    fn check(&self, schema: &Schema) -> Result<()> {
        self.clauses().try_for_each(|clause| clause.operator.check(schema))
    }

    fn count(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<()> {
        self.clauses().try_for_each(|clause| clause.operator.count(unit, evaluation))
    }

    fn use_of_postings(&self) -> UseOfPostings {
        self.clauses().map(|clause| clause.operator.use_of_postings()).max().unwrap_or(UseOfPostings::Unneeded)
    }

    fn candidates(&self, postings: &Postings, evaluation: &Evaluation) -> Result<Rows> {
        let mut rows = Rows::All;
        for clause in self.must.iter().chain(&self.filter) {
            rows = rows.and(clause.operator.candidates(postings, evaluation)?);
        }
        let mut any = Rows::NONE;
        for clause in &self.should {
            any = any.or(clause.operator.candidates(postings, evaluation)?);
        }
        if self.should_least > 0 {
            rows = rows.and(any);
        }
        // The `mustNot` clauses exclude documents only in `score`, but the evaluation needs the statistics of the
        // clauses' words.
        for clause in &self.must_not {
            clause.operator.candidates(postings, evaluation)?;
        }
        Ok(rows)
    }

    fn score(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<f32>> {
        for clause in &self.filter {
            if clause.score(unit, evaluation)?.is_none() {
                return Ok(None);
            }
        }
        for clause in &self.must_not {
            if clause.score(unit, evaluation)?.is_some() {
                return Ok(None);
            }
        }
        let mut total = 0.0;
        for clause in &self.must {
            let Some(score) = clause.score(unit, evaluation)? else { return Ok(None) };
            total += score;
        }
        let mut count = 0;
        for clause in &self.should {
            if let Some(score) = clause.score(unit, evaluation)? {
                total += score;
                count += 1;
            }
        }
        Ok((count >= self.should_least).then_some(total))
    }

    fn mark(&self, field: &TextField<'_>, cut: &Cut, evaluation: &Evaluation, marks: &mut [bool]) -> Result<()> {
        let positive = self.must.iter().chain(&self.should).chain(&self.filter);
        positive.into_iter().try_for_each(|clause| clause.operator.mark(field, cut, evaluation, marks))
    }

    fn details(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Vec<Details>> {
        let scoring = self.must.iter().chain(&self.should);
        scoring.filter_map(|clause| clause.details(unit, evaluation).transpose()).collect()
    }

    fn embedded_path(&self) -> Option<&str> {
        self.clauses().find_map(|clause| clause.operator.embedded_path())
    }
}
