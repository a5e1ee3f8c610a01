//! The shape of a pipeline. The entry of each stage says how its specification contributes.

use super::expression_shape::{self, placeholder};
use super::{filter_shape, projection_shape};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_stages::Shape;

/// The shape of a pipeline.
pub(super) fn of(pipeline: ArrayRef<'_>) -> Value {
    expression_shape::array(pipeline.iter().map(of_stage))
}

fn of_stage(stage: ValueRef<'_>) -> Value {
    let ValueRef::Document(document) = stage else { return stage.to_value() };
    let mut shape = DocumentBuf::new();
    for element in document {
        shape.append(element.name, &of_specification(element.name, element.value));
    }
    Value::Document(shape)
}

fn of_specification(stage: &str, specification: ValueRef<'_>) -> Value {
    let shape = bunko_stages::find(stage).map_or(Shape::Exact, |entry| entry.shape);
    match (shape, specification) {
        (Shape::Filter, ValueRef::Document(filter)) => Value::Document(filter_shape::of(filter)),
        (Shape::Projection, ValueRef::Document(projection)) => Value::Document(projection_shape::of(projection)),
        (Shape::Value, _) => Value::String(placeholder(specification)),
        (Shape::Expression, _) => expression_shape::of(specification),
        (Shape::Facets, ValueRef::Document(pipelines)) => each(pipelines, |_, pipeline| of_part("pipeline", pipeline)),
        (Shape::Parts, ValueRef::Document(parts)) => each(parts, of_part),
        (Shape::Exact | Shape::Filter | Shape::Projection | Shape::Facets | Shape::Parts, _) => {
            specification.to_value()
        }
    }
}

/// A field of a stage that has several parts.
fn of_part(name: &str, part: ValueRef<'_>) -> Value {
    match (name, part) {
        ("pipeline" | "whenMatched", ValueRef::Array(pipeline)) => of(pipeline),
        ("let" | "startWith", _) => expression_shape::of(part),
        ("query" | "restrictSearchWithMatch", ValueRef::Document(filter)) => Value::Document(filter_shape::of(filter)),
        (
            "near"
            | "minDistance"
            | "maxDistance"
            | "maxDepth"
            | "size"
            | "default"
            | "resumeAfter"
            | "startAfter"
            | "startAtOperationTime",
            _,
        ) => Value::String(placeholder(part)),
        ("groupBy" | "partitionBy", _) => expression_shape::of(part),
        // Each boundary is a branch of the expression that the stage stands for.
        ("boundaries", ValueRef::Array(boundaries)) => expression_shape::of_each(boundaries),
        ("output", ValueRef::Document(fields)) => each(fields, of_output),
        ("range", ValueRef::Document(range)) => each(range, |name, value| match (name, value) {
            ("bounds", ValueRef::Array(bounds)) => expression_shape::of_each(bounds),
            ("unit" | "bounds", _) => value.to_value(),
            _ => Value::String(placeholder(value)),
        }),
        _ => part.to_value(),
    }
}

/// The output of a field: an expression, an accumulator with its window, or a method of `$fill`.
fn of_output(_: &str, output: ValueRef<'_>) -> Value {
    let ValueRef::Document(parts) = output else { return expression_shape::of(output) };
    each(parts, |name, part| match (name, part) {
        ("window", ValueRef::Document(window)) => each(window, |_, bounds| match bounds {
            ValueRef::Array(bounds) => expression_shape::array(bounds.iter().map(|bound| match bound {
                ValueRef::String(word) => Value::String(word.to_owned()),
                number => Value::String(placeholder(number)),
            })),
            unit => unit.to_value(),
        }),
        ("method", _) => part.to_value(),
        _ => expression_shape::of(part),
    })
}

/// A document with the shapes of its fields.
fn each(document: DocumentRef<'_>, shape_of: impl Fn(&str, ValueRef<'_>) -> Value) -> Value {
    let mut shape = DocumentBuf::new();
    for field in document {
        shape.append(field.name, &shape_of(field.name, field.value));
    }
    Value::Document(shape)
}
