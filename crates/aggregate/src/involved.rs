//! Lists the other collections that a pipeline reads, without parsing the pipeline.

use bunko_bson::{ArrayRef, ValueRef};

/// Names of the collections that a pipeline's stages read, with those of nested pipelines; may contain duplicates.
pub fn involved_collections(pipeline: ArrayRef<'_>) -> Vec<&str> {
    let mut names = Vec::new();
    add(pipeline, &mut names);
    names
}

fn add<'p>(pipeline: ArrayRef<'p>, names: &mut Vec<&'p str>) {
    for stage in pipeline.iter().filter_map(|stage| stage.as_document()?.first()) {
        match (stage.name, stage.value) {
            ("$unionWith", ValueRef::String(name)) => names.push(name),
            ("$lookup" | "$graphLookup" | "$unionWith", ValueRef::Document(body)) => {
                names.extend(["from", "coll"].iter().filter_map(|field| body.get(field)?.as_str()));
                if let Some(inner) = body.get("pipeline").and_then(ValueRef::as_array) {
                    add(inner, names);
                }
            }
            ("$facet", ValueRef::Document(facets)) => {
                facets.iter().filter_map(|facet| facet.value.as_array()).for_each(|facet| add(facet, names));
            }
            _ => {}
        }
    }
}
