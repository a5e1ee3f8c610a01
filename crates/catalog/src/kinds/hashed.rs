//! Hashed indexes: one field by the hash of its value, others by their values: `{a: 'hashed'}`, `{a: 1, b: 'hashed'}`.

use crate::array_walk::ArrayWalk;
use crate::index_kind::{Answers, IndexKind, KeySet, KindEntry, ReadKind};
use crate::key_pattern::{cannot_create, read_fields};
use crate::{IndexSpec, KeyForm, Multikey};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, hashed_key};
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;

pub(super) const ENTRY: KindEntry = KindEntry { name: "hashed", options: &[], read };

#[derive(Debug)]
struct Hashed;

fn read(key: DocumentRef<'_>, spec: DocumentRef<'_>) -> Result<ReadKind> {
    let fields = read_fields(key)?;
    let hashed = fields.iter().filter(|field| field.form == KeyForm::Hash).count();
    if hashed > 1 {
        return Err(Failure::new(
            ErrorCode(31303),
            format!("A maximum of one index field is allowed to be hashed but found {hashed} for 'key' {}", {
                bunko_bson::text::ValueText(ValueRef::Document(key))
            }),
        ));
    }
    if spec.get("unique").is_some_and(crate::key_pattern::is_true) {
        return Err(Failure::new(
            ErrorCode(16764),
            "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.",
        ));
    }
    if fields.len() > 1 && fields.iter().any(|field| field.path.split('.').any(|name| name == "$**")) {
        return Err(cannot_create("a wildcard index cannot be hashed".to_owned()));
    }
    Ok(ReadKind { kind: Arc::new(Hashed), fields, key: None, options: DocumentBuf::new() })
}

impl IndexKind for Hashed {
    fn name(&self) -> &'static str {
        "hashed"
    }

    fn keys(&self, index: &IndexSpec, document: DocumentRef<'_>, keys: &mut KeySet<'_>) -> Result<Multikey> {
        let paths = index.fields.iter().map(|field| field.path.as_str());
        let mut first = Vec::new();
        let multikey = ArrayWalk::run(paths, document, &mut |values| {
            if first.is_empty() {
                first.extend(values);
            }
            Ok(())
        })?;
        if !multikey.is_empty() {
            return Err(Failure::new(
                ErrorCode(16766),
                format!(
                    "hashed indexes do not currently support array values. Found array at path: {}",
                    met_array(index, &multikey)
                ),
            ));
        }
        if index.is_sparse && first.iter().all(Option::is_none) {
            return Ok(multikey);
        }
        let mut key = Vec::with_capacity(24);
        for (value, field) in first.iter().zip(index.fields.iter()) {
            let value = value.unwrap_or(ValueRef::Null);
            let value = match field.form {
                KeyForm::Value => value,
                KeyForm::Hash if index.strings.is_bytes() => ValueRef::Int64(hashed_key(value)),
                // Strings that compare as equal must have the same hash.
                KeyForm::Hash => ValueRef::Int64(hashed_key(index.strings.in_keys(value).as_ref())),
            };
            index.strings.append_key(&mut key, value, field.direction);
        }
        keys.add(key)?;
        Ok(multikey)
    }

    fn answers(&self) -> Answers {
        Answers::ByField
    }
}

/// The path of the first field that met an array, up to the component that has the array.
fn met_array<'i>(index: &'i IndexSpec, multikey: &Multikey) -> &'i str {
    for (position, field) in index.fields.iter().enumerate() {
        let ends = field.path.match_indices('.').map(|(end, _)| end).chain([field.path.len()]);
        if let Some((_, end)) = ends.enumerate().find(|(component, _)| multikey.has_array_at(position, *component)) {
            return &field.path[..end];
        }
    }
    ""
}
