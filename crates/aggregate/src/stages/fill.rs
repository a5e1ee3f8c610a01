//! `$fill`: replaces null and missing values. Expands to `$setWindowFields` with `$linearFill` and `$locf`, followed by
//! `$addFields` with `$ifNull`. Source: MongoDB manual, "$fill".

use super::{Definition, Stages, reshaped, window};
use crate::Environment;
use crate::stage_fields::StageFields;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Element, StringUse, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Expression, FieldPath, SortPattern};

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::FILL, strings: StringUse::Collated, parse };

/// Size of the stages that `$fill` expands to, as documents and parsed, as a multiple of its specification's size.
const WRITTEN_OUT_PARTS: usize = 6;

/// Errors: `FailedToParse` if it is not a document; `TypeMismatch` and IDL errors for fields; 6050203 without output,
/// 6050200 to 6050202 for a field of it; 6050204 for two kinds of partitions; 16873 for a string that is not a path if
/// nothing is computed; errors of the stages that it expands to.
fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let ValueRef::Document(specification) = value else {
        let message = format!("The $fill stage specification must be an object, found {}", value.kind().alias());
        return Err(Failure::failed_to_parse(message));
    };
    environment.operation().will_take(WRITTEN_OUT_PARTS * specification.len_bytes())?;
    let known = ["partitionBy", "partitionByFields", "sortBy", "output"];
    let fields = StageFields::new("$fill", specification, &known)?;
    let sort_by = fields.document("sortBy")?;
    let output = fields.required("output", fields.document("output")?)?;
    let partitions = Partitions::read(&fields)?;
    if output.is_empty() {
        let message = "The output field in '$fill' must contain an object with at least one element";
        return Err(failure(6_050_203, message));
    }
    let (mut computed, mut added) = (DocumentBuf::new(), DocumentBuf::new());
    for field in output {
        match Filling::parse(field)? {
            Filling::By(operator) => computed.append(checked(field.name)?, &filled(operator, field.name)),
            Filling::With(value) => added.append(checked(field.name)?, &if_null(field.name, value)),
            Filling::None => &mut added,
        };
    }
    let partition_by = partitions.expression()?;
    let mut stages = Stages::new();
    if computed.as_ref().is_empty() {
        check_ignored(sort_by, partition_by.as_ref(), environment)?;
    } else {
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

/// The name of an output field, which must be a path.
fn checked(name: &str) -> Result<&str> {
    FieldPath::parse(name)?;
    Ok(name)
}

/// Checks a sort and partitions that are unused because no field is computed from other documents.
/// Errors: those of `$sort` and of expressions, 16873 for a string that is not a path.
fn check_ignored(
    sort_by: Option<DocumentRef<'_>>,
    partition_by: Option<&Value>,
    environment: &Environment,
) -> Result<()> {
    let scope = environment.scope.parse_scope();
    if let Some(sort_by) = sort_by {
        SortPattern::parse_in(sort_by, &scope)?;
    }
    match partition_by.map(ValueRef::from) {
        Some(ValueRef::String(text)) if !text.starts_with('$') => {
            Err(failure(16873, &format!("FieldPath '{text}' doesn't start with '$'")))
        }
        Some(expression) => Expression::parse(expression, &scope).map(drop),
        None => Ok(()),
    }
}

fn failure(code: i32, message: &str) -> Failure {
    Failure::new(ErrorCode(code), message)
}

/// The partitions as the client asks for them.
struct Partitions<'f> {
    expression: Option<ValueRef<'f>>,
    paths: Option<Vec<&'f str>>,
}

impl<'f> Partitions<'f> {
    /// Errors: `TypeMismatch`.
    fn read(fields: &StageFields<'f>) -> Result<Self> {
        fields.refuse_null("partitionBy", "[object, string]")?;
        let expression = fields.field("partitionBy");
        if let Some(other) = expression.filter(|value| !matches!(value, ValueRef::String(_) | ValueRef::Document(_))) {
            return Err(fields.mismatch("partitionBy", other, "[object, string]"));
        }
        let path_at = |(position, path): (usize, ValueRef<'f>)| {
            let is_text = path.as_str();
            is_text.ok_or_else(|| fields.mismatch(&format!("partitionByFields.{position}"), path, "string"))
        };
        let paths = fields.array("partitionByFields")?;
        let paths = paths.map(|paths| paths.iter().enumerate().map(path_at).collect()).transpose()?;
        Ok(Self { expression, paths })
    }

    /// The expression for `$setWindowFields`. Several fields become a document with arbitrary names.
    /// Errors: 6050204 if both kinds are given; errors of paths.
    fn expression(self) -> Result<Option<Value>> {
        if self.expression.is_some() && self.paths.is_some() {
            let message = "Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'";
            return Err(failure(6_050_204, message));
        }
        let Some(paths) = self.paths.filter(|paths| !paths.is_empty()) else {
            return Ok(self.expression.map(ValueRef::to_value));
        };
        let mut document = DocumentBuf::new();
        for (position, path) in paths.into_iter().enumerate() {
            FieldPath::parse(path)?;
            document.append(&format!("f{position}"), format!("${path}").as_str());
        }
        Ok(Some(Value::Document(document)))
    }
}

/// The replacement of a missing value.
enum Filling<'f> {
    /// The result of this window operator.
    By(&'static str),
    /// The value of this expression.
    With(ValueRef<'f>),
    /// No replacement was asked for.
    None,
}

impl<'f> Filling<'f> {
    /// Errors: 6050200 if it is not a document, 6050201 for both a method and a value, 6050202 for an unknown method;
    /// `TypeMismatch` and IDL errors.
    fn parse(field: Element<'f>) -> Result<Self> {
        let ValueRef::Document(specification) = field.value else {
            let message = "Each fill output specification must be an object with exactly one field";
            return Err(failure(6_050_200, message));
        };
        let fields = StageFields::new("$fill", specification, &["value", "method"])?;
        match (fields.string("method")?, specification.get("value")) {
            (Some(_), Some(_)) => {
                let message = "Each fill output specification must have exactly one of 'method' or 'value' fields, \
                               not both";
                Err(failure(6_050_201, message))
            }
            (Some("linear"), None) => Ok(Self::By("$linearFill")),
            (Some("locf"), None) => Ok(Self::By("$locf")),
            (Some(_), None) => Err(failure(6_050_202, "Method must be either locf or linear")),
            (None, Some(value)) => Ok(Self::With(value)),
            (None, None) => Ok(Self::None),
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
