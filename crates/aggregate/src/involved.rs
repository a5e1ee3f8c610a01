//! Lists the other collections that a pipeline reads, without parsing the pipeline.

use bunko_bson::{ArrayRef, ValueRef};
use bunko_stages::Inner;

/// Names of the collections that a pipeline's stages read, with those of nested pipelines; may contain duplicates.
pub fn involved_collections(pipeline: ArrayRef<'_>) -> Vec<&str> {
    let mut names = Vec::new();
    add(pipeline, &mut names);
    names
}

fn add<'p>(pipeline: ArrayRef<'p>, names: &mut Vec<&'p str>) {
    for stage in pipeline.iter().filter_map(|stage| stage.as_document()?.first()) {
        let Some(entry) = bunko_stages::find(stage.name) else { continue };
        match (entry.inner, stage.value) {
            // A string stands for the collection alone.
            (Inner::Joined { .. }, ValueRef::String(name)) => names.push(name),
            (Inner::Joined { collection, .. } | Inner::Collection { collection }, ValueRef::Document(body)) => {
                names.extend(body.get(collection).and_then(ValueRef::as_str));
                if let Some(inner) = body.get("pipeline").and_then(ValueRef::as_array) {
                    add(inner, names);
                }
            }
            (Inner::Facets, ValueRef::Document(facets)) => {
                facets.iter().filter_map(|facet| facet.value.as_array()).for_each(|facet| add(facet, names));
            }
            _ => {}
        }
    }
}
