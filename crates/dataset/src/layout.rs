//! A shape's fields laid out as bytes: a template that all documents share, with holes for the values that differ.
//!
//! A document is then a few copies and fills; names and constants are encoded once per dataset.

use crate::compressible::{COPIED_BYTES, COPY_COST, Compressible, LITERAL_COST};
use crate::id::{Id, IdKind, Ids};
use crate::random::{Random, mix};
use bunko_bson::{Value, ValueRef, Writer};

/// A named value of a shape.
pub(crate) struct Field {
    pub name: &'static str,
    pub content: Content,
}

/// Content of a field. Every kind has a fixed length, so that all documents of a dataset have one size.
pub(crate) enum Content {
    /// A value that is equal in all documents.
    Constant(fn() -> Value),
    Int32(fn(&Position) -> i32),
    Double(fn(&Position) -> f64),
    Boolean(fn(&Position) -> bool),
    /// Milliseconds since 1970.
    DateTime(fn(&Position) -> i64),
    /// Text of this many bytes.
    Text(usize),
    /// A random word from this list; all its words have the same length.
    Word(&'static [&'static str]),
    /// A label: these letters, followed by a number of [`LABEL_DIGITS`] digits.
    Label(&'static str, fn(&Position) -> u64),
    /// Text that takes the rest of the document's size; several pads share it equally.
    Pad,
    Document(&'static [Field]),
    Array(&'static [Content]),
}

/// A document's place in its dataset, from which all values follow.
pub(crate) struct Position {
    /// Number in key order, from 0.
    pub number: u64,
    /// Declared number of documents in the dataset.
    pub documents: u64,
    pub seed: u64,
}

impl Position {
    /// A random number for one field of this document.
    pub(crate) fn random(&self, field: &str) -> u64 {
        let name = field.bytes().fold(self.seed, |bits, byte| mix(bits ^ u64::from(byte)));
        mix(name ^ mix(self.number))
    }
}

#[derive(Clone, Copy, Debug)]
enum Fill {
    Id,
    Int32(fn(&Position) -> i32),
    Double(fn(&Position) -> f64),
    Boolean(fn(&Position) -> bool),
    DateTime(fn(&Position) -> i64),
    Word {
        words: &'static [&'static str],
        /// The field whose random number chooses the word.
        field: &'static str,
    },
    /// A number in decimal digits.
    Digits(fn(&Position) -> u64),
    RandomText,
}

impl Fill {
    /// Bytes of the value after compression, without a text's contents.
    fn cost(self) -> usize {
        match self {
            // Most of the id repeats the previous document's id.
            Self::Id => COPY_COST + 3,
            Self::Int32(_) | Self::Boolean(_) | Self::Word { .. } => 2,
            Self::Digits(_) => 4,
            Self::Double(_) | Self::DateTime(_) => 7,
            Self::RandomText => LITERAL_COST,
        }
    }
}

#[derive(Clone, Debug)]
struct Hole {
    at: usize,
    length: usize,
    fill: Fill,
}

/// A document template with holes.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// A whole document; the bytes in the holes are overwritten.
    template: Vec<u8>,
    /// Holes in ascending order.
    holes: Vec<Hole>,
}

/// Digits of a label: enough for any number of documents.
const LABEL_DIGITS: usize = 16;

/// Random text is made in blocks that fit into the first-level cache.
const BLOCK_BYTES: usize = 256;

impl Layout {
    /// The smallest document: its size in bytes, and its number of pads.
    pub(crate) fn least(fields: &[Field], id: IdKind) -> (usize, usize) {
        let mut pads = 0;
        let layout = Self::encode(fields, id, &mut || {
            pads += 1;
            0
        });
        (layout.template.len(), pads)
    }

    /// Lays the fields out; all pads together have `pad_bytes`.
    pub(crate) fn new(fields: &[Field], id: IdKind, pad_bytes: usize, compressible: Compressible) -> Self {
        let (_, pads) = Self::least(fields, id);
        let mut taken = 0;
        let mut layout = Self::encode(fields, id, &mut || {
            taken += 1;
            // If the pads cannot be equal, earlier ones are a byte longer.
            (pad_bytes + pads - taken) / pads
        });
        layout.shorten_random_texts(compressible);
        layout
    }

    fn encode(fields: &[Field], id: IdKind, pad_bytes: &mut dyn FnMut() -> usize) -> Self {
        let mut template = Vec::new();
        let mut encoder = Encoder { writer: Writer::new(&mut template), holes: Vec::new(), pad_bytes };
        encoder.writer.append("_id", Id::placeholder(id).as_value());
        encoder.hole(id.payload_bytes(), 0, Fill::Id);
        encoder.fields(fields);
        encoder.writer.end();
        let holes = encoder.holes;
        Self { template, holes }
    }

    /// Shortens the random part of texts; the template's zeros remain after it.
    fn shorten_random_texts(&mut self, compressible: Compressible) {
        let is_text = |hole: &Hole| matches!(hole.fill, Fill::RandomText);
        let texts: Vec<_> = self.holes.iter().filter(|hole| is_text(hole)).map(|hole| hole.length).collect();
        let random = compressible.random_bytes(self.template.len(), self.structure_cost(), &texts);
        for (hole, length) in self.holes.iter_mut().filter(|hole| is_text(hole)).zip(random) {
            hole.length = length;
        }
    }

    /// Size of a document after compression beside similar documents, without the contents of texts, in bytes.
    fn structure_cost(&self) -> usize {
        let ends = std::iter::once(0).chain(self.holes.iter().map(|hole| hole.at + hole.length));
        let starts = self.holes.iter().map(|hole| hole.at).chain(std::iter::once(self.template.len()));
        // Names and constants repeat the previous document.
        let shared: usize = ends.zip(starts).map(|(end, start)| (start - end).div_ceil(COPIED_BYTES) * COPY_COST).sum();
        let values: usize = self.holes.iter().map(|hole| hole.fill.cost()).sum();
        shared + values
    }

    /// Size of every document, in bytes.
    pub(crate) fn document_bytes(&self) -> usize {
        self.template.len()
    }

    /// Appends a document.
    pub(crate) fn write(&self, position: &Position, ids: &Ids, out: &mut Vec<u8>) {
        out.reserve(self.template.len());
        let mut random = Random::of_document(position.seed, position.number);
        let mut copied = 0;
        for hole in &self.holes {
            out.extend_from_slice(&self.template[copied..hole.at]);
            match hole.fill {
                Fill::Id => out.extend_from_slice(ids.id(position.number).payload()),
                Fill::Int32(value) => out.extend_from_slice(&value(position).to_le_bytes()),
                Fill::Double(value) => out.extend_from_slice(&value(position).to_le_bytes()),
                Fill::Boolean(value) => out.push(u8::from(value(position))),
                Fill::DateTime(value) => out.extend_from_slice(&value(position).to_le_bytes()),
                Fill::Word { words, field } => {
                    let word = words[(position.random(field) % words.len() as u64) as usize];
                    out.extend_from_slice(word.as_bytes());
                }
                Fill::Digits(value) => {
                    let number = value(position) % 10_u64.pow(LABEL_DIGITS as u32);
                    out.extend_from_slice(format!("{number:0LABEL_DIGITS$}").as_bytes());
                }
                Fill::RandomText => write_random_text(&mut random, hole.length, out),
            }
            copied = hole.at + hole.length;
        }
        out.extend_from_slice(&self.template[copied..]);
    }
}

/// The names of an array's elements; no shape has a longer array.
const INDEXES: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// Encodes a shape's fields.
struct Encoder<'b> {
    writer: Writer<'b>,
    holes: Vec<Hole>,
    pad_bytes: &'b mut dyn FnMut() -> usize,
}

impl Encoder<'_> {
    fn fields(&mut self, fields: &[Field]) {
        for field in fields {
            self.field(field.name, &field.content);
        }
    }

    fn field(&mut self, name: &'static str, content: &Content) {
        match *content {
            Content::Constant(value) => {
                self.writer.append(name, &value());
            }
            Content::Int32(value) => {
                self.writer.append(name, 0_i32);
                self.hole(4, 0, Fill::Int32(value));
            }
            Content::Double(value) => {
                self.writer.append(name, 0.0);
                self.hole(8, 0, Fill::Double(value));
            }
            Content::Boolean(value) => {
                self.writer.append(name, false);
                self.hole(1, 0, Fill::Boolean(value));
            }
            Content::DateTime(value) => {
                self.writer.append(name, ValueRef::DateTime(0));
                self.hole(8, 0, Fill::DateTime(value));
            }
            Content::Text(length) => self.text(name, length),
            Content::Word(words) => {
                let length = words.first().map_or(0, |word| word.len());
                assert!(words.iter().all(|word| word.len() == length), "all words of '{name}' have one length");
                self.writer.append(name, &"0".repeat(length));
                self.hole(length, 1, Fill::Word { words, field: name });
            }
            Content::Label(letters, value) => {
                self.writer.append(name, &format!("{letters}{}", "0".repeat(LABEL_DIGITS)));
                self.hole(LABEL_DIGITS, 1, Fill::Digits(value));
            }
            Content::Pad => {
                let length = (self.pad_bytes)();
                self.text(name, length);
            }
            Content::Document(fields) => {
                self.writer.begin_document(name);
                self.fields(fields);
                self.writer.end();
            }
            Content::Array(values) => {
                self.writer.begin_array(name);
                for (name, value) in INDEXES.iter().zip(values) {
                    self.field(name, value);
                }
                self.writer.end();
            }
        }
    }

    fn text(&mut self, name: &str, length: usize) {
        self.writer.append(name, &"0".repeat(length));
        // One byte after it: the string's terminating zero.
        self.hole(length, 1, Fill::RandomText);
    }

    /// Marks a hole, whose bytes differ in each document: `length` bytes, after which `behind` bytes were written.
    fn hole(&mut self, length: usize, behind: usize, fill: Fill) {
        let at = self.writer.len_bytes() - behind - length;
        self.holes.push(Hole { at, length, fill });
    }
}

fn write_random_text(random: &mut Random, length: usize, out: &mut Vec<u8>) {
    let mut left = length;
    while left > 0 {
        let mut block = [0; BLOCK_BYTES];
        let wanted = left.min(BLOCK_BYTES);
        for chunk in block[..wanted.next_multiple_of(8)].chunks_exact_mut(8) {
            // Eight characters at once, each of the 64 from space to underscore.
            let text = (random.bits() & 0x3f3f_3f3f_3f3f_3f3f) + 0x2020_2020_2020_2020;
            chunk.copy_from_slice(&text.to_le_bytes());
        }
        out.extend_from_slice(&block[..wanted]);
        left -= wanted;
    }
}
