//! Fields of the original document, for operators that read other fields.

use crate::dotted_path::as_index;
use bunko_bson::{DocumentRef, ValueRef};
use std::collections::HashMap;

/// Number of paths up to which separate lookups are fastest.
const FEW_PATHS: usize = 8;

/// Finds fields by name; many lookups in one document are as fast as few.
#[derive(Debug)]
pub(crate) struct DocumentFields<'d>(HashMap<usize, HashMap<&'d str, ValueRef<'d>>>);

impl<'d> DocumentFields<'d> {
    /// Indexes the documents that `paths` lead through, by address, if there are many paths.
    pub fn new(document: DocumentRef<'d>, paths: &[String]) -> Self {
        let mut this = Self(HashMap::new());
        if paths.len() > FEW_PATHS {
            for path in paths {
                this.learn(document, path);
            }
        }
        this
    }

    fn learn(&mut self, document: DocumentRef<'d>, path: &str) {
        let mut value = Some(ValueRef::Document(document));
        for part in path.split('.') {
            value = match value {
                Some(ValueRef::Document(document)) => {
                    let fields = self.0.entry(address(document)).or_insert_with(|| {
                        let mut fields = HashMap::new();
                        document.iter().for_each(|field| {
                            fields.entry(field.name).or_insert(field.value);
                        });
                        fields
                    });
                    fields.get(part).copied()
                }
                Some(ValueRef::Array(array)) => as_index(part).and_then(|index| array.get(index)),
                _ => return,
            };
        }
    }

    /// The first field with that name in `document`, which must be the original document or one inside it.
    pub fn get(&self, document: DocumentRef<'d>, name: &str) -> Option<ValueRef<'d>> {
        match self.0.get(&address(document)) {
            Some(fields) => fields.get(name).copied(),
            None => document.get(name),
        }
    }
}

fn address(document: DocumentRef<'_>) -> usize {
    document.as_bytes().as_ptr() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentBuf;

    #[test]
    fn many_paths_find_what_few_find() {
        let inner = DocumentBuf::new().with("b", 2_i32);
        let document = DocumentBuf::new().with("a", 1_i32).with("inner", &inner).with("a", 3_i32);
        let document = document.as_ref();
        for count in [1, 2 * FEW_PATHS] {
            let fields = DocumentFields::new(document, &vec!["inner.b".to_owned(); count]);
            assert!(matches!(fields.get(document, "a"), Some(ValueRef::Int32(1))));
            let inner = fields.get(document, "inner").and_then(ValueRef::as_document).expect("embedded");
            assert!(matches!(fields.get(inner, "b"), Some(ValueRef::Int32(2))));
            assert!(fields.get(document, "b").is_none());
        }
    }
}
