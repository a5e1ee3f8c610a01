//! `$changeStreamSplitLargeEvent`: returns events that exceed the size of a reply's document in fragments.
//! Source: MongoDB manual 8.2, `$changeStreamSplitLargeEvent`.

use crate::token::{FRAGMENTS_MAX, of_fragment};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, Element, MAX_INTERNAL_DOCUMENT_BYTES, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use std::collections::VecDeque;

/// The stage's name, including `$`.
pub(crate) const STAGE: &str = bunko_stages::CHANGE_STREAM_SPLIT_LARGE_EVENT.name;
/// Maximum number of bytes of a fragment besides its token and its fields' values: `splitEvent`, names and ends of
/// fields.
const OVERHEAD_BYTES: usize = 128;
/// Longest fragment, and longest event that is returned whole. A field with a document of the largest size fits.
const FRAGMENT_BYTES_MAX: usize = MAX_INTERNAL_DOCUMENT_BYTES - (8 << 10);

/// Whether the pipeline ends with the stage.
/// # Errors
/// 7182800 for a specification that is not empty, 7182802 if another stage follows.
pub(crate) fn ends_with_it(stages: ArrayRef<'_>) -> Result<bool> {
    let mut is_there = false;
    for stage in stages.iter().filter_map(ValueRef::as_document).filter_map(DocumentRef::first) {
        if is_there {
            return Err(Failure::new(ErrorCode(7_182_802), format!("{STAGE} must be the last stage in the pipeline")));
        }
        is_there = stage.name == STAGE;
        if is_there && !stage.value.as_document().is_some_and(DocumentRef::is_empty) {
            return Err(Failure::new(ErrorCode(7_182_800), format!("{STAGE} spec should be an empty object")));
        }
    }
    Ok(is_there)
}

/// The fragments of an event; empty if the event is small enough to be returned whole.
/// # Errors
/// `BSONObjectTooLarge` for a field that does not fit into a fragment, and for more fragments than tokens can number.
pub(crate) fn fragments(event: DocumentRef<'_>) -> Result<VecDeque<DocumentBuf>> {
    split(event, FRAGMENT_BYTES_MAX)
}

fn split(event: DocumentRef<'_>, bytes_max: usize) -> Result<VecDeque<DocumentBuf>> {
    if event.len_bytes() <= bytes_max {
        return Ok(VecDeque::new());
    }
    let token = event.get("_id").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
    let room = bytes_max.saturating_sub(token.len_bytes() + OVERHEAD_BYTES);
    let mut parts: Vec<(Vec<Element<'_>>, usize)> = Vec::new();
    for field in event.iter().filter(|field| field.name != "_id") {
        let bytes = DocumentBuf::new().with(field.name, field.value).as_ref().len_bytes();
        if bytes > room {
            let message = format!(
                "Splitting change event failed: field '{}' of {bytes} bytes does not fit into a fragment of {bytes_max}",
                field.name
            );
            return Err(Failure::new(ErrorCode::BSON_OBJECT_TOO_LARGE, message));
        }
        match parts.last_mut().filter(|(_, taken)| taken + bytes <= room) {
            Some((fields, taken)) => {
                fields.push(field);
                *taken += bytes;
            }
            None => parts.push((vec![field], bytes)),
        }
    }
    let of = u8::try_from(parts.len()).ok().filter(|of| *of <= FRAGMENTS_MAX).ok_or_else(|| {
        let message = format!("a change event of {} fragments, of which there may be {FRAGMENTS_MAX}", parts.len());
        Failure::new(ErrorCode::BSON_OBJECT_TOO_LARGE, message)
    })?;
    let numbered = (0..of).zip(parts);
    let fragment = |(number, (fields, _)): (u8, (Vec<Element<'_>>, usize))| {
        let place = DocumentBuf::new().with("fragment", i32::from(number) + 1).with("of", i32::from(of));
        let mut fragment = DocumentBuf::new().with("_id", &of_fragment(token, number)).with("splitEvent", &place);
        for field in fields {
            fragment.append(field.name, field.value);
        }
        fragment
    };
    Ok(numbered.map(fragment).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::{GivenToken, Identity, of_event};
    use bunko_bson::Timestamp;

    #[test]
    fn fragments_hold_all_fields_and_are_resumed_from_each() {
        let identity = Identity { number: 3, uuid: Some(&[2; 16]), operation: "insert", id: None };
        let token = of_event(Timestamp { seconds: 5, increment: 7 }, identity, false);
        let text = "x".repeat(600);
        let event = DocumentBuf::new()
            .with("_id", &token)
            .with("operationType", "insert")
            .with("fullDocument", text.as_str())
            .with("fullDocumentBeforeChange", text.as_str())
            .with("end", 1);
        assert!(split(event.as_ref(), 5000).expect("small").is_empty());
        let all = split(event.as_ref(), 1000).expect("fits");
        assert_eq!(all.len(), 2);
        assert!(all.iter().all(|fragment| fragment.as_ref().len_bytes() <= 1000));
        let names: Vec<_> = all.iter().flat_map(|fragment| fragment.as_ref().iter().map(|field| field.name)).collect();
        let expected = [
            "_id",
            "splitEvent",
            "operationType",
            "fullDocument",
            "_id",
            "splitEvent",
            "fullDocumentBeforeChange",
            "end",
        ];
        assert_eq!(names, expected);
        for (number, fragment) in (0..2_u8).zip(&all) {
            let own = fragment.as_ref().get("_id").and_then(ValueRef::as_document).expect("a token");
            let read = GivenToken::parse(own).and_then(GivenToken::read).expect("whole");
            assert_eq!(read.fragment, Some(number));
            assert!(read.is(token.as_ref()), "it is that of the event");
        }
        assert!(split(event.as_ref(), 500).is_err(), "no field is cut");
    }
}
