//! An endless sequence of documents.

use crate::compressible::Compressible;
use crate::error::DatasetError;
use crate::id::{Id, IdKind, Ids};
use crate::key_order::{KeyOrder, Permutation};
use crate::layout::{Layout, Position};
use crate::shapes::Shape;
use bunko_bson::{DocumentRef, MAX_USER_DOCUMENT_BYTES, ValueRef};
use serde::{Deserialize, Serialize};

/// Everything that decides a document's bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatasetOptions {
    /// Seed: another seed gives other documents of the same kind.
    pub seed: u64,
    /// The name of one of [`crate::SHAPES`].
    pub shape: String,
    /// Number of documents that are loaded; more may be inserted later, under ascending numbers.
    pub documents: u64,
    /// Encoded size of every document; if absent, the shape's own.
    pub document_bytes: Option<usize>,
    /// How far texts compress; without effect on shapes without text.
    pub compressible: Compressible,
    /// Whether documents are inserted in the order of their ids.
    pub key_order: KeyOrder,
    /// The kind of `_id`; if absent, the shape's own.
    pub id: Option<IdKind>,
}

/// An endless sequence of documents; the same options and index give the same bytes on every machine.
///
/// A document has an *index*, its place in the order of insertion, and a *number*, its place in the order of keys.
/// Contents depend on the number, so that both key orders insert the same documents.
#[derive(Debug)]
pub struct Dataset {
    seed: u64,
    documents: u64,
    shape: &'static Shape,
    ids: Ids,
    /// `None` if documents are inserted in the order of numbers.
    permutation: Option<Permutation>,
    layout: Layout,
}

impl Dataset {
    /// Lays out the documents.
    /// # Errors
    /// An unknown shape, or a size that the shape cannot have.
    pub fn new(options: &DatasetOptions) -> Result<Self, DatasetError> {
        let shape =
            Shape::named(&options.shape).ok_or_else(|| DatasetError::UnknownShape { name: options.shape.clone() })?;
        let id = options.id.unwrap_or(shape.default_id);
        let pad_bytes = pad_bytes(shape, id, options.document_bytes)?;
        let seed = options.seed;
        Ok(Self {
            seed,
            documents: options.documents,
            shape,
            ids: Ids::new(id, seed),
            permutation: match options.key_order {
                KeyOrder::Ascending => None,
                KeyOrder::Shuffled => Some(Permutation::new(options.documents, seed)),
            },
            layout: Layout::new(shape.fields, id, pad_bytes, options.compressible),
        })
    }

    /// Appends the `index`-th inserted document.
    pub fn write(&self, index: u64, out: &mut Vec<u8>) {
        let position = Position { number: self.number(index), documents: self.documents, seed: self.seed };
        self.layout.write(&position, &self.ids, out);
    }

    /// The `_id` of the `index`-th inserted document.
    #[inline]
    pub fn id(&self, index: u64) -> Id {
        self.ids.id(self.number(index))
    }

    /// The `_id` of document `number` in the order of keys. A range of numbers is a range of ids, unless the ids are
    /// hashed ([`IdKind::ascends`]).
    #[inline]
    pub fn id_at_rank(&self, number: u64) -> Id {
        self.ids.id(number)
    }

    #[inline]
    fn number(&self, index: u64) -> u64 {
        self.permutation.as_ref().map_or(index, |permutation| permutation.apply(index))
    }

    /// Number of documents that are loaded.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Encoded size of every document.
    pub fn document_bytes(&self) -> usize {
        self.layout.document_bytes()
    }

    /// The shape, with its fields.
    pub fn shape(&self) -> &'static Shape {
        self.shape
    }

    /// Whether documents have a value at a dotted path, as an index or an update would look for it.
    pub fn has_field(&self, path: &str) -> bool {
        let mut document = Vec::with_capacity(self.document_bytes());
        self.write(0, &mut document);
        let names: Vec<&str> = path.split('.').collect();
        leads_to_a_value(ValueRef::Document(DocumentRef::trusted(&document)), &names)
    }

    /// The names of the top-level fields, separated by commas.
    pub fn field_names(&self) -> String {
        let names = self.shape.fields.iter().map(|field| field.name);
        std::iter::once("_id").chain(names).collect::<Vec<_>>().join(", ")
    }

    /// The kind of every `_id`.
    pub fn id_kind(&self) -> IdKind {
        self.ids.kind
    }
}

/// Follows a path into documents and arrays. In an array, a name is a position, or a field of the documents in it.
fn leads_to_a_value(value: ValueRef<'_>, path: &[&str]) -> bool {
    let [name, rest @ ..] = path else { return true };
    match value {
        ValueRef::Document(document) => document.get(name).is_some_and(|value| leads_to_a_value(value, rest)),
        ValueRef::Array(values) => match name.parse() {
            Ok(position) => values.get(position).is_some_and(|value| leads_to_a_value(value, rest)),
            Err(_) => values.iter().any(|value| value.as_document().is_some() && leads_to_a_value(value, path)),
        },
        _ => false,
    }
}

/// Number of bytes for pads: the requested size without the bytes that the fields take.
fn pad_bytes(shape: &'static Shape, id: IdKind, asked: Option<usize>) -> Result<usize, DatasetError> {
    let (least_bytes, pads) = Layout::least(shape.fields, id);
    let document_bytes = match asked {
        None if pads == 0 => least_bytes,
        asked => asked.unwrap_or(shape.default_document_bytes),
    };
    let shape = shape.name;
    if pads == 0 && document_bytes != least_bytes {
        return Err(DatasetError::FixedSize { shape, document_bytes, fixed_bytes: least_bytes });
    }
    if document_bytes > MAX_USER_DOCUMENT_BYTES {
        return Err(DatasetError::TooLarge { document_bytes });
    }
    document_bytes.checked_sub(least_bytes).ok_or(DatasetError::TooSmall { shape, document_bytes, least_bytes })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::SHAPES;
    use bunko_bson::{DocumentRef, ValueRef};
    use std::collections::HashSet;

    pub(crate) fn options(shape: &str) -> DatasetOptions {
        DatasetOptions {
            seed: 5,
            shape: shape.to_owned(),
            documents: 1_000,
            document_bytes: None,
            compressible: Compressible::default(),
            key_order: KeyOrder::Ascending,
            id: None,
        }
    }

    fn encoded(options: &DatasetOptions, index: u64) -> Vec<u8> {
        let mut out = Vec::new();
        Dataset::new(options).expect("a dataset").write(index, &mut out);
        out
    }

    #[test]
    fn every_shape_writes_documents_of_the_size_it_says_under_every_kind_of_id() {
        for shape in SHAPES {
            for id in [None, Some(IdKind::ObjectId), Some(IdKind::Int64), Some(IdKind::Text)] {
                let dataset = Dataset::new(&DatasetOptions { id, ..options(shape.name) }).expect("the default size");
                assert_eq!(dataset.id_kind(), id.unwrap_or(shape.default_id));
                // A buffer that is not empty, like a message.
                let mut out = vec![1, 2, 3];
                for index in [0, 1, 999, 1_000, u64::from(u32::MAX)] {
                    out.truncate(3);
                    dataset.write(index, &mut out);
                    assert_eq!(out.len() - 3, dataset.document_bytes());
                    let document = DocumentRef::parse(&out[3..]).expect("well formed");
                    let first = document.first().expect("not empty");
                    assert_eq!(format!("{:?}", first.value), format!("{:?}", dataset.id(index).as_value()));
                    assert_eq!(first.name, "_id");
                }
            }
        }
    }

    #[test]
    fn padded_shapes_have_any_size_from_the_least_that_holds_the_fields() {
        for shape in SHAPES.iter().filter(|shape| shape.is_padded()) {
            let (least, _) = Layout::least(shape.fields, shape.default_id);
            let sized = |bytes| DatasetOptions { document_bytes: Some(bytes), ..options(shape.name) };
            for bytes in [least, least + 1, least + 9, 4_097, 1 << 20, MAX_USER_DOCUMENT_BYTES] {
                let encoded = encoded(&sized(bytes), 7);
                assert_eq!(encoded.len(), bytes, "{}", shape.name);
                DocumentRef::parse(&encoded).expect("well formed");
            }
            for bytes in [least - 1, MAX_USER_DOCUMENT_BYTES + 1] {
                assert!(Dataset::new(&sized(bytes)).is_err(), "{} of {bytes} bytes", shape.name);
            }
        }
    }

    #[test]
    fn shapes_without_a_pad_have_one_size() {
        let sized = |document_bytes| DatasetOptions { document_bytes, ..options("multiplication-table") };
        let bytes = Dataset::new(&sized(None)).expect("its own size").document_bytes();
        assert!(Dataset::new(&sized(Some(bytes))).is_ok());
        let error = Dataset::new(&sized(Some(bytes + 1))).expect_err("nothing to pad");
        assert!(matches!(error, DatasetError::FixedSize { fixed_bytes, .. } if fixed_bytes == bytes));
    }

    #[test]
    fn the_original_experiment_has_970_zeros() {
        let encoded = encoded(&DatasetOptions { compressible: Compressible::Constant, ..options("plain") }, 0);
        let document = DocumentRef::parse(&encoded).expect("well formed");
        assert_eq!(document.get("d").and_then(ValueRef::as_str), Some("0".repeat(970).as_str()));
    }

    #[test]
    fn a_seed_means_the_same_bytes_everywhere() {
        let encoded = |seed| encoded(&DatasetOptions { seed, document_bytes: Some(60), ..options("plain") }, 1);
        assert_eq!(encoded(7), encoded(7));
        assert_ne!(encoded(7), encoded(8));
        // Pinned: a change makes figures of different versions incomparable. More cases are in tests/scripts.
        let encoded = encoded(7);
        let document = DocumentRef::parse(&encoded).expect("well formed");
        assert_eq!(format!("{:?}", document.get("_id")), "Some(ObjectId(ObjectId(5e0be1003d91ae2a00000001)))");
        let text = document.get("d").and_then(ValueRef::as_str);
        assert_eq!(text, Some(r#",(!$8VQ(U%O^;\R""&NSI 74EWFH&N"#));
    }

    #[test]
    fn shuffled_documents_are_the_ascending_ones_in_another_order() {
        for shape in SHAPES {
            let documents = |key_order| {
                let options = DatasetOptions { key_order, documents: 300, ..options(shape.name) };
                (0..310).map(|index| encoded(&options, index)).collect::<Vec<_>>()
            };
            let (ascending, shuffled) = (documents(KeyOrder::Ascending), documents(KeyOrder::Shuffled));
            assert_ne!(ascending[..300], shuffled[..300]);
            assert_eq!(ascending[300..], shuffled[300..]);
            assert_eq!(ascending.iter().collect::<HashSet<_>>(), shuffled.iter().collect::<HashSet<_>>());
        }
    }

    #[test]
    fn errors_name_the_request_and_the_choices() {
        let error = |options: &DatasetOptions| Dataset::new(options).expect_err("refused").to_string();
        let sized = |shape, bytes| DatasetOptions { document_bytes: Some(bytes), ..options(shape) };
        assert_eq!(
            error(&options("flat")),
            "'flat' is not a shape; there are plain, counter, docsize, multiplication-table, ycsb, nested, analytics, events"
        );
        assert_eq!(error(&sized("plain", 29)), "29 bytes do not hold the fields of 'plain', which take 30");
        assert_eq!(error(&sized("counter", 40)), "40 bytes do not hold the fields of 'counter', which take 41");
        assert_eq!(error(&sized("plain", 16_777_217)), "16777217 bytes are more than a document may have: 16777216");
        assert_eq!(
            error(&sized("multiplication-table", 400)),
            "documents of 'multiplication-table' have 686 bytes, not 400: nothing pads them"
        );
    }
}
