//! Arbitrary bytes as a document: checked, read to the leaves, written again.
#![no_main]

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(document) = DocumentRef::parse(input) {
        read(document);
        assert!(!format!("{document:?}").is_empty());
    }
    // Trusted bytes may be rotten: reading them must neither panic nor go on for ever.
    let rotten = DocumentRef::trusted(input);
    assert!(rotten.iter().count() <= rotten.len_bytes());
    assert!(rotten.count() <= rotten.len_bytes());
    let _ = rotten.get("a");
});

/// Reads every value of a parsed document, in every way to reach it.
fn read(document: DocumentRef<'_>) {
    let mut again = DocumentBuf::new();
    let mut count = 0;
    for element in document {
        count += 1;
        let value = element.value.to_value();
        again.append(element.name, &value);
        match element.value {
            ValueRef::Document(inner) => read(inner),
            ValueRef::Array(inner) => {
                assert_eq!(inner.iter().count(), inner.count());
                read(inner.as_document());
            }
            ValueRef::JavaScriptWithScope { scope, .. } => read(scope),
            _ => {}
        }
        assert!(document.get(element.name).is_some());
    }
    assert_eq!(count, document.count());
    // The copy has the same bytes, so nothing was left out and nothing decoded wrongly.
    assert_eq!(again.as_ref(), document);
}
