//! `$score`: gives each document a score for `$meta` and `$scoreFusion`.
//! Source: MongoDB manual, "$score".

use super::fusion::{self, Details};
use super::normalization::{Normalization, Range};
use super::stage_memory::StageMemory;
use super::{Definition, Reads, Stage, Stages};
use crate::metadata::Carried;
use crate::stage_fields::StageFields;
use crate::{DocumentStream, Environment};
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayBuf, DocumentBuf, StringUse, ValueRef, number};
use bunko_errors::{Failure, Result};
use bunko_expression::{CurrentMetadata, Dependencies, Expression};
use bunko_operation::Gatherer;
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::SCORE, strings: StringUse::AsBytes, parse };

/// Source: MongoDB manual, "$score", "scoreDetails".
const DESCRIPTION: &str = "the score calculated from multiplying a weight in the range [0,1] with either a normalized or \
                           nonnormalized value:";

/// A document and its score before normalization; `None` if the score is not a number.
type Raw = (DocumentBuf, Option<f64>);

struct Score {
    expression: Expression,
    /// The expression as sent.
    text: String,
    normalization: Normalization,
    weight: f64,
    details: Details,
}

/// Errors: `FailedToParse` if it is not a document; IDL errors for fields; `BadValue` for a weight outside 0..=1;
/// errors of the expression.
fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let specification = fusion::specification(DEFINITION.facts.name, value)?;
    let fields = ["score", "normalization", "weight", "scoreDetails"];
    let fields = StageFields::new(DEFINITION.facts.name, specification, &fields)?;
    let details = Details::asked(&fields)?;
    let score = fields.required("score", specification.get("score"))?;
    let normalization = Normalization::asked(DEFINITION.facts.name, &fields)?.unwrap_or(Normalization::None);
    let weight = match fields.field("weight") {
        None => 1.0,
        Some(weight) => {
            let number = number::as_f64(weight).filter(|_| weight.is_number());
            let number = number.ok_or_else(|| fields.mismatch("weight", weight, "double"))?;
            if !(0.0..=1.0).contains(&number) {
                let message = format!("BSON field '$score.weight' must be from 0 to 1, but is {number}");
                return Err(Failure::bad_value(message));
            }
            number
        }
    };
    let text = ValueText(score).to_string();
    let expression = Expression::parse(score, &environment.scope.parse_scope())?;
    Ok(vec![Box::new(Score { expression, text, normalization, weight, details })])
}

impl Stage for Score {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        let at_hand = Arc::clone(&environment.scope.at_hand);
        Box::new(Scored { stage: self, input, environment: Arc::clone(environment), at_hand, gathered: None })
    }

    fn metadata(&self) -> Carried {
        self.details.made()
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        self.expression.add_dependencies(dependencies);
        Reads::OthersToo
    }
}

struct Scored {
    stage: Arc<Score>,
    input: Box<dyn DocumentStream>,
    environment: Arc<Environment>,
    at_hand: Arc<CurrentMetadata>,
    /// All documents with scores, if the lowest and highest score must be known first.
    gathered: Option<(std::vec::IntoIter<Raw>, Range)>,
}

impl Scored {
    /// Reads the next document, and computes its score without normalization.
    fn read(&mut self) -> Result<Option<Raw>> {
        let Some(document) = self.input.next()? else { return Ok(None) };
        let score = self.stage.expression.evaluate(&self.environment.context(document.as_ref()))?;
        let score = score.get().filter(|score| score.is_number()).and_then(number::as_f64);
        Ok(Some((document, score)))
    }

    fn gather(&mut self) -> Result<(std::vec::IntoIter<Raw>, Range)> {
        let mut memory = StageMemory::new(DEFINITION.facts.name, Gatherer::Group, &self.environment);
        let mut gathered = Vec::new();
        while let Some((document, score)) = self.read()? {
            self.environment.operation().work(1)?;
            memory.keep(document.as_ref().len_bytes() + size_of::<Raw>())?;
            gathered.push((document, score));
        }
        let range = Range::of(gathered.iter().filter_map(|(_, score)| *score));
        Ok((gathered.into_iter(), range))
    }

    /// Makes the `$meta` values of a document.
    fn told(&self, raw: Option<f64>, range: Range) -> DocumentBuf {
        let stage = &self.stage;
        let Some(raw) = raw else { return DocumentBuf::new() };
        let score = stage.weight * stage.normalization.apply(raw, range);
        let told = DocumentBuf::new().with("score", score);
        if stage.details == Details::Untold {
            return told;
        }
        let details = DocumentBuf::new()
            .with("value", score)
            .with("description", DESCRIPTION)
            .with("rawScore", raw)
            .with("normalization", stage.normalization.name())
            .with("weight", stage.weight)
            .with("expression", stage.text.as_str())
            .with("details", &ArrayBuf::new());
        told.with("scoreDetails", &details)
    }
}

impl DocumentStream for Scored {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let (document, raw, range) = if self.stage.normalization == Normalization::MinMaxScaler {
            if self.gathered.is_none() {
                self.gathered = Some(self.gather()?);
            }
            let Some((gathered, range)) = &mut self.gathered else { return Ok(None) };
            let Some((document, raw)) = gathered.next() else { return Ok(None) };
            (document, raw, *range)
        } else {
            let Some((document, raw)) = self.read()? else { return Ok(None) };
            (document, raw, Range::of(raw.into_iter()))
        };
        if self.at_hand.is_wanted() {
            self.at_hand.set(Some(Arc::new(self.told(raw, range))));
        }
        Ok(Some(document))
    }
}
