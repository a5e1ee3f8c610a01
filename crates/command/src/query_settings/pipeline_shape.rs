//! The shape of a pipeline. Of a stage that is not listed everything belongs to the shape, also its values.

use super::expression_shape::{self, placeholder};
use super::{filter_shape, projection_shape};
use bunko_bson::{ArrayRef, DocumentBuf, Value, ValueRef};

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
    match (stage, specification) {
        ("$match", ValueRef::Document(filter)) => Value::Document(filter_shape::of(filter)),
        ("$project", ValueRef::Document(projection)) => Value::Document(projection_shape::of(projection)),
        ("$limit" | "$skip", _) => Value::String(placeholder(specification)),
        (
            "$addFields" | "$bucket" | "$bucketAuto" | "$group" | "$redact" | "$replaceRoot" | "$replaceWith" | "$set"
            | "$sortByCount",
            _,
        ) => expression_shape::of(specification),
        ("$facet", ValueRef::Document(pipelines)) => {
            let mut shape = DocumentBuf::new();
            for pipeline in pipelines {
                shape.append(pipeline.name, &of_part("pipeline", pipeline.value));
            }
            Value::Document(shape)
        }
        ("$geoNear" | "$graphLookup" | "$lookup" | "$sample" | "$unionWith", ValueRef::Document(parts)) => {
            let mut shape = DocumentBuf::new();
            for part in parts {
                shape.append(part.name, &of_part(part.name, part.value));
            }
            Value::Document(shape)
        }
        _ => specification.to_value(),
    }
}

/// A field of one of the stages that are made of several things.
fn of_part(name: &str, part: ValueRef<'_>) -> Value {
    match (name, part) {
        ("pipeline", ValueRef::Array(pipeline)) => of(pipeline),
        ("let" | "startWith", _) => expression_shape::of(part),
        ("query" | "restrictSearchWithMatch", ValueRef::Document(filter)) => Value::Document(filter_shape::of(filter)),
        ("near" | "minDistance" | "maxDistance" | "maxDepth" | "size", _) => Value::String(placeholder(part)),
        _ => part.to_value(),
    }
}
