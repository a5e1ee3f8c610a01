//! Ordered indexes: keys are the values of the fields: `{a: 1, 'b.c': -1}`.

use crate::array_walk::ArrayWalk;
use crate::index_kind::{Answers, IndexKind, KeySet, KindEntry, ReadKind};
use crate::key_pattern::read_fields;
use crate::{IndexSpec, KeyTypes, Multikey};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::Result;
use std::sync::Arc;

pub(super) const ENTRY: KindEntry = KindEntry { name: "", options: &[], read };

#[derive(Debug)]
struct Ordered;

fn read(key: DocumentRef<'_>, _spec: DocumentRef<'_>) -> Result<ReadKind> {
    Ok(ReadKind { kind: Arc::new(Ordered), fields: read_fields(key)?, key: None, options: DocumentBuf::new() })
}

impl IndexKind for Ordered {
    fn name(&self) -> &'static str {
        ""
    }

    fn keys(&self, index: &IndexSpec, document: DocumentRef<'_>, keys: &mut KeySet<'_>) -> Result<Multikey> {
        let paths = index.fields.iter().map(|field| field.path.as_str());
        let mut values = Vec::with_capacity(index.fields.len());
        let mut types = KeyTypes::default();
        let arrays = ArrayWalk::run(paths, document, &mut |found| {
            values.clear();
            values.extend(found);
            if index.is_sparse && values.iter().all(Option::is_none) {
                return Ok(());
            }
            let mut key = Vec::with_capacity(24);
            for (position, (value, field)) in values.iter().zip(index.fields.iter()).enumerate() {
                if index.tells_types {
                    types.note(position, *value);
                }
                index.strings.append_key(&mut key, value.unwrap_or(ValueRef::Null), field.direction);
            }
            keys.add(key)
        })?;
        Ok(arrays.with_types(types))
    }

    fn answers(&self) -> Answers {
        Answers::ByField
    }
}
