//! Room in the reply of `explain`: parts that are too large are left out, and a warning stands in their place, as in MongoDB.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, MAX_USER_DOCUMENT_BYTES, ValueRef};

/// Most bytes of an explanation, so that the rest of the reply has room.
const EXPLAINED_BYTES_MAX: usize = 10 << 20;
/// Where the command must end that is told at the end.
pub(crate) const COMMAND_ENDS_MAX: usize = MAX_USER_DOCUMENT_BYTES - (64 << 10);
/// Parts that are left out where they have more bytes.
const PART_BYTES_MAX: usize = 64 << 10;
const PARTS: [&str; 6] =
    ["indexBounds", "filter", "parsedQuery", "parsedTextQuery", "rejectedPlans", "allPlansExecution"];

/// The explanation, without its large parts where all of it is too large.
pub(crate) fn fitted(explained: DocumentBuf) -> DocumentBuf {
    fitted_to(explained, EXPLAINED_BYTES_MAX)
}

/// As [`fitted`], for so many bytes.
pub(crate) fn fitted_to(explained: DocumentBuf, bytes_max: usize) -> DocumentBuf {
    if explained.as_ref().len_bytes() <= bytes_max { explained } else { without_large_parts(explained.as_ref()) }
}

fn without_large_parts(document: DocumentRef<'_>) -> DocumentBuf {
    let mut kept = DocumentBuf::new();
    for field in document {
        match field.value {
            value if PARTS.contains(&field.name) && bytes_of(value) > PART_BYTES_MAX => {
                let warning = match field.name {
                    "indexBounds" => "index bounds omitted due to BSON size limit for explain".to_owned(),
                    name => format!("'{name}' has been omitted due to BSON size limit"),
                };
                kept.append("warning", warning.as_str());
            }
            ValueRef::Document(inner) => {
                kept.append(field.name, &without_large_parts(inner));
            }
            ValueRef::Array(inner) => {
                let elements = inner.iter().map(|element| element.as_document().ok_or(element));
                let mut fitted = ArrayBuf::new();
                for element in elements {
                    match element {
                        Ok(document) => {
                            fitted.push(&without_large_parts(document));
                        }
                        Err(other) => {
                            fitted.push(other);
                        }
                    }
                }
                kept.append(field.name, &fitted);
            }
            other => {
                kept.append(field.name, other);
            }
        }
    }
    kept
}

fn bytes_of(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Document(document) => document.len_bytes(),
        ValueRef::Array(array) => array.as_document().len_bytes(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_parts_give_way_to_warnings() {
        let bounds: ArrayBuf = (0..20_000).collect();
        let scan = DocumentBuf::new().with("stage", "IXSCAN").with("indexBounds", &bounds);
        let stages: ArrayBuf = [&scan].into_iter().collect();
        let explained = DocumentBuf::new().with("inputStages", &stages);
        assert_eq!(fitted(explained.clone()), explained);
        let warned = DocumentBuf::new()
            .with("stage", "IXSCAN")
            .with("warning", "index bounds omitted due to BSON size limit for explain");
        let stages: ArrayBuf = [&warned].into_iter().collect();
        assert_eq!(fitted_to(explained, 1000), DocumentBuf::new().with("inputStages", &stages));
    }
}
