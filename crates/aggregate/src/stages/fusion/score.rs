//! `$scoreFusion`: combines several pipelines over one collection by the scores of documents.
//! Source: MongoDB manual, "$scoreFusion".

use super::inputs::{self, Input, Rules, searches};
use super::{Details, Fused, Fusion, Measure, SCORE};
use crate::Environment;
use crate::stage::Stages;
use crate::stage_fields::StageFields;
use crate::stages::normalization::{Normalization, Range};
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_errors::{Failure, Result};
use bunko_expression::Expression;

const RULES: Rules = Rules {
    stage: SCORE.facts.name,
    also: &[bunko_stages::SCORE.name],
    is_enough: are_scored,
    refusal: (
        9_402_500,
        "score its documents: begin with $geoNear or with a $match that has a $text, or contain a $score",
    ),
};
/// Source: MongoDB manual, "$scoreFusion", "scoreDetails".
const DESCRIPTION: &str = "the value calculated by combining the scores (either normalized or raw) across input pipelines \
                           from which this document is output from:";
/// Field that holds a document's scores for the combination's expression.
const SCORES_FIELD: &str = "\u{1}scores";

struct ScoreFusion {
    normalization: Normalization,
    combination: Combination,
}

enum Combination {
    Average,
    /// An expression; the scores are variables named after the pipelines.
    Custom {
        expression: Expression,
        /// The expression as sent.
        text: String,
    },
}

/// Errors: as `$rankFusion`; `IDLFailedToParse` without `normalization`; `BadValue` for an unknown method, for an
/// expression without the expression method, and for the method without an expression; errors of the expression.
pub(super) fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let specification = super::specification(SCORE.facts.name, value)?;
    let fields = StageFields::new(SCORE.facts.name, specification, &["input", "combination", "scoreDetails"])?;
    let details = Details::asked(&fields)?;
    let input = fields.required("input", fields.document("input")?)?;
    let input = StageFields::new("$scoreFusion.input", input, &["pipelines", "normalization"])?;
    let normalization = input.required("normalization", Normalization::asked("$scoreFusion.input", &input)?)?;
    let combination = fields.document("combination")?.unwrap_or(DocumentRef::EMPTY);
    let combination = StageFields::new("$scoreFusion.combination", combination, &["weights", "method", "expression"])?;
    let mut inputs = inputs::parse(&RULES, &input, environment)?;
    inputs::weigh(SCORE.facts.name, &mut inputs, combination.document("weights")?.unwrap_or(DocumentRef::EMPTY))?;
    for input in &inputs {
        input.inside.scope.at_hand.want();
    }
    let combination = self::combination(&combination, &inputs, environment)?;
    super::stage(SCORE.facts.name, ScoreFusion { normalization, combination }, inputs, details, environment)
}

/// Whether documents have a score at the end of a pipeline.
fn are_scored(stages: ArrayRef<'_>) -> bool {
    let first = stages.iter().next().and_then(|stage| stage.as_document()?.first());
    first.is_some_and(|first| searches(first.name) || first.name == bunko_stages::MATCH.name && has_text(first.value))
        || super::names(stages).any(|name| name == bunko_stages::SCORE.name)
}

/// Whether a filter contains a text search.
fn has_text(filter: ValueRef<'_>) -> bool {
    let Some(filter) = filter.as_document() else { return false };
    filter.iter().any(|condition| {
        let inside = || condition.value.as_array().is_some_and(|several| several.iter().any(has_text));
        condition.name == "$text" || matches!(condition.name, "$and" | "$or") && inside()
    })
}

fn combination(fields: &StageFields<'_>, inputs: &[Input], environment: &Environment) -> Result<Combination> {
    let expression = fields.field("expression");
    match (fields.string("method")?, expression) {
        (None | Some("avg"), None) => Ok(Combination::Average),
        (Some("expression"), Some(expression)) => {
            let mut variables = DocumentBuf::new();
            for input in inputs {
                variables.append(&input.name, format!("${SCORES_FIELD}.{}", input.name).as_str());
            }
            let bound = DocumentBuf::new().with("vars", &variables).with("in", expression);
            let bound = DocumentBuf::new().with("$let", &bound);
            let text = ValueText(expression).to_string();
            let expression = Expression::parse(ValueRef::from(&bound), &environment.scope.parse_scope())?;
            Ok(Combination::Custom { expression, text })
        }
        (Some("expression"), None) => {
            let message = "$scoreFusion.combination.expression is required where the method is 'expression'";
            Err(Failure::bad_value(message))
        }
        (None | Some("avg"), Some(_)) => {
            let message = "$scoreFusion.combination.expression is for the method 'expression' alone";
            Err(Failure::bad_value(message))
        }
        (Some(other), _) => {
            let message = format!(
                "Enumeration value '{other}' for field '$scoreFusion.combination.method' is not a valid value."
            );
            Err(Failure::bad_value(message))
        }
    }
}

/// Reads the scores of one pipeline's documents.
struct Scores;

impl Measure for Scores {
    fn measure(&mut self, input: &Input, _: DocumentRef<'_>) -> Result<f64> {
        let Some(known) = input.inside.scope.at_hand.current() else { return Ok(0.0) };
        let known = known.as_ref().as_ref();
        let score = ["score", "textScore", "geoNearDistance"].into_iter().find_map(|name| known.get(name));
        // A score that is not a number counts as 0.
        Ok(score.and_then(number::as_f64).unwrap_or(0.0))
    }
}

impl ScoreFusion {
    /// The weighted and normalized scores of a document, once all ranges are known.
    fn weighed(&self, measured: &[Option<f64>], inputs: &[Input], ranges: &[Range]) -> Vec<f64> {
        let scores = measured.iter().zip(inputs).zip(ranges);
        let weighed = scores.map(|((score, input), range)| match score {
            Some(score) => input.weight * self.normalization.apply(*score, *range),
            None => 0.0,
        });
        weighed.collect()
    }
}

impl Fusion for ScoreFusion {
    fn measure(&self, _: usize) -> Box<dyn Measure + '_> {
        Box::new(Scores)
    }

    fn score(&self, fused: &mut [Fused], inputs: &[Input], environment: &Environment) -> Result<()> {
        let ranges: Vec<_> =
            (0..inputs.len()).map(|number| Range::of(fused.iter().filter_map(|one| one.measured[number]))).collect();
        for one in fused {
            environment.operation().work(1 + inputs.len())?;
            let weighed = self.weighed(&one.measured, inputs, &ranges);
            one.score = match &self.combination {
                Combination::Average => weighed.iter().sum::<f64>() / inputs.len() as f64,
                Combination::Custom { expression, .. } => {
                    let mut scores = DocumentBuf::new();
                    for (input, score) in inputs.iter().zip(&weighed) {
                        scores.append(&input.name, *score);
                    }
                    let mut seen = DocumentBuf::new().with(SCORES_FIELD, &scores);
                    for field in one.document.as_ref() {
                        seen.append(field.name, field.value);
                    }
                    let score = expression.evaluate(&environment.context(seen.as_ref()))?;
                    score.get().and_then(number::as_f64).unwrap_or(0.0)
                }
            };
            one.weighed = weighed;
        }
        Ok(())
    }

    fn details(&self, fused: &Fused, inputs: &[Input]) -> DocumentBuf {
        let mut details = ArrayBuf::new();
        for ((input, raw), weighed) in inputs.iter().zip(&fused.measured).zip(&fused.weighed) {
            let mut detail = DocumentBuf::new().with("inputPipelineName", input.name.as_str());
            detail.append("inputPipelineRawScore", raw.unwrap_or(0.0));
            detail.append("weight", input.weight);
            detail.append("value", *weighed);
            detail.append("details", &ArrayBuf::new());
            details.push(&detail);
        }
        let combination = match &self.combination {
            Combination::Average => DocumentBuf::new().with("method", "average"),
            Combination::Custom { text, .. } => {
                DocumentBuf::new().with("method", "custom expression").with("expression", text.as_str())
            }
        };
        DocumentBuf::new()
            .with("value", fused.score)
            .with("description", DESCRIPTION)
            .with("normalization", self.normalization.name())
            .with("combination", &combination)
            .with("details", &details)
    }
}
