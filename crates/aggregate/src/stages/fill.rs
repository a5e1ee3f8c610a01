//! `$fill`: values in the place of null and missing ones. It is short for `$setWindowFields` with `$linearFill` and
//! `$locf`, and `$addFields` with `$ifNull` behind it. Source: MongoDB manual, "$fill".

use super::{Definition, Stages, reshaped, window};
use crate::Environment;
use crate::stage_fields::StageFields;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, Element, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::FieldPath;

pub(super) const DEFINITION: Definition = Definition { name: "$fill", parse };

/// Errors: `FailedToParse` for what is no document, `TypeMismatch` and those of IDL for its fields, 6050204 for two kinds of
/// partitions, 6050203 for no output, 6050200 to 6050202 for a field of it; those of the stages that it is short for.
fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let ValueRef::Document(specification) = value else {
        let message = format!("The $fill stage specification must be an object, found {}", value.kind().alias());
        return Err(Failure::failed_to_parse(message));
    };
    let known = ["partitionBy", "partitionByFields", "sortBy", "output"];
    let fields = StageFields::new("$fill", specification, &known)?;
    let sort_by = fields.document("sortBy")?;
    let output = fields.required("output", fields.document("output")?)?;
    let partition_by = partition_by(&fields)?;
    if output.is_empty() {
        let message = "The output field in '$fill' must contain an object with at least one element";
        return Err(failure(6_050_203, message));
    }
    let (mut computed, mut added) = (DocumentBuf::new(), DocumentBuf::new());
    for field in output {
        FieldPath::parse(field.name)?;
        match Filling::parse(field)? {
            Filling::By(operator) => computed.append(field.name, &filled(operator, field.name)),
            Filling::With(value) => added.append(field.name, &if_null(field.name, value)),
        };
    }
    let mut stages = Stages::new();
    if !computed.as_ref().is_empty() {
        let mut specification = DocumentBuf::new();
        if let Some(partition_by) = &partition_by {
            specification.append("partitionBy", partition_by);
        }
        if let Some(sort_by) = sort_by {
            specification.append("sortBy", sort_by);
        }
        specification.append("output", &computed);
        stages.extend(window::parse(ValueRef::from(&specification), environment)?);
    }
    if !added.as_ref().is_empty() {
        stages.extend(reshaped::parse("$addFields", ValueRef::from(&added), environment)?);
    }
    Ok(stages)
}

fn failure(code: i32, message: &str) -> Failure {
    Failure::new(ErrorCode(code), message)
}

/// The expression that documents are partitioned by.
fn partition_by(fields: &StageFields<'_>) -> Result<Option<Value>> {
    let paths = fields.array("partitionByFields")?;
    let Some(expression) = fields.field("partitionBy") else {
        return paths.filter(|paths| !paths.is_empty()).map(|paths| by_fields(fields, paths)).transpose();
    };
    if paths.is_some() {
        let message = "Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'";
        return Err(failure(6_050_204, message));
    }
    if !matches!(expression, ValueRef::String(_) | ValueRef::Document(_)) {
        return Err(fields.mismatch("partitionBy", expression, "[string, object]"));
    }
    Ok(Some(expression.to_value()))
}

/// Partitions by several fields: by a document of them, whose names do not matter.
fn by_fields(fields: &StageFields<'_>, paths: ArrayRef<'_>) -> Result<Value> {
    let mut document = DocumentBuf::new();
    for (position, path) in paths.iter().enumerate() {
        let Some(path) = path.as_str() else {
            return Err(fields.mismatch(&format!("partitionByFields.{position}"), path, "string"));
        };
        FieldPath::parse(path)?;
        document.append(&format!("f{position}"), format!("${path}").as_str());
    }
    Ok(Value::Document(document))
}

/// What stands in the place of nothing.
enum Filling<'f> {
    /// What this operator of windows says.
    By(&'static str),
    /// The value of this expression.
    With(ValueRef<'f>),
}

impl<'f> Filling<'f> {
    fn parse(field: Element<'f>) -> Result<Self> {
        let specification = field.value.as_document().filter(|specification| specification.count() == 1);
        let Some(specification) = specification else {
            let message = "Each fill output specification must be an object with exactly one field";
            return Err(failure(6_050_200, message));
        };
        let fields = StageFields::new("$fill", specification, &["value", "method"])?;
        match (fields.string("method")?, specification.get("value")) {
            (Some("linear"), _) => Ok(Self::By("$linearFill")),
            (Some("locf"), _) => Ok(Self::By("$locf")),
            (Some(_), _) => Err(failure(6_050_202, "Method must be either locf or linear")),
            (None, Some(value)) => Ok(Self::With(value)),
            (None, None) => {
                Err(failure(6_050_201, "Each fill output specification must have exactly one of 'value' and 'method'"))
            }
        }
    }
}

fn filled(operator: &str, path: &str) -> DocumentBuf {
    DocumentBuf::new().with(operator, format!("${path}").as_str())
}

fn if_null(path: &str, value: ValueRef<'_>) -> DocumentBuf {
    let path = format!("${path}");
    let operands: ArrayBuf = [ValueRef::String(&path), value].into_iter().collect();
    DocumentBuf::new().with("$ifNull", &operands)
}
