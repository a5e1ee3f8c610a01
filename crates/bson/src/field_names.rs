//! Finds several fields of a document in one walk.

use crate::skip::{Skip, name_length};
use crate::{DocumentRef, EncodedValue, Type};
use std::ops::ControlFlow;

/// Names of fields that are looked for together.
#[derive(Clone, Debug, Default)]
pub struct FieldNames {
    names: Box<[Name]>,
}

#[derive(Clone, Debug)]
struct Name {
    text: Box<str>,
    /// The name's first eight bytes. A shorter name is padded with zeros.
    start: u64,
}

/// A set of names of [`FieldNames`], one bit for each.
type Marks = u64;

const WORD_BYTES: usize = 8;

impl FieldNames {
    /// Greatest number of names that can be looked for together.
    pub const COUNT_MAX: usize = Marks::BITS as usize;

    /// Takes names that are all different; `None` for more than [`Self::COUNT_MAX`].
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Option<Self> {
        let name = |text: &str| Name { text: text.into(), start: start_of(text.as_bytes()) };
        let names: Box<[Name]> = names.into_iter().map(name).collect();
        (names.len() <= Self::COUNT_MAX).then_some(Self { names })
    }

    /// Calls `take` with each field that has one of the names, and the name's position, in the order of the document,
    /// until `take` breaks. The values are those that [`DocumentRef::get`] would find. Names that the document lacks
    /// come at the end, with `None`.
    #[inline]
    pub fn find<'d>(
        &self,
        document: DocumentRef<'d>,
        mut take: impl FnMut(usize, Option<EncodedValue<'d>>) -> ControlFlow<()>,
    ) {
        let mut missing = Marks::MAX.checked_shr(Marks::BITS - self.names.len() as u32).unwrap_or(0);
        let bytes = document.as_bytes();
        let fields = &bytes[..bytes.len() - 1];
        let mut at = 4;
        while missing != 0 {
            let Some((&kind, rest)) = fields.get(at..).and_then(<[u8]>::split_first) else { break };
            let Some(name_bytes) = name_length(rest) else { break };
            let body = at + 1 + name_bytes + 1;
            let Some(length) = Skip::of(kind).length(fields, body) else { break };
            if let Some(position) = self.position(rest, name_bytes) {
                let mark = 1 << position;
                // If several fields have one name, the first counts.
                if missing & mark != 0 {
                    missing &= !mark;
                    let kind = Type::from_byte(kind);
                    let value = kind.map(|kind| EncodedValue::new(kind, &fields[body..body + length]));
                    if take(position, value).is_break() {
                        return;
                    }
                }
            }
            at = body + length;
        }
        while missing != 0 {
            let position = missing.trailing_zeros() as usize;
            missing &= missing - 1;
            if take(position, None).is_break() {
                return;
            }
        }
    }

    /// Finds the name with which `bytes` begins and whose length is `name_bytes`; returns the name's position.
    #[inline]
    fn position(&self, bytes: &[u8], name_bytes: usize) -> Option<usize> {
        let start = match bytes.first_chunk() {
            Some(word) if name_bytes >= WORD_BYTES => u64::from_le_bytes(*word),
            Some(word) => u64::from_le_bytes(*word) & ((1 << (8 * name_bytes)) - 1),
            None => start_of(&bytes[..name_bytes]),
        };
        // The first word holds all of a short name.
        self.names.iter().position(|name| {
            name.start == start
                && name.text.len() == name_bytes
                && (name_bytes <= WORD_BYTES || name.text.as_bytes()[WORD_BYTES..] == bytes[WORD_BYTES..name_bytes])
        })
    }
}

fn start_of(name: &[u8]) -> u64 {
    let mut word = [0; WORD_BYTES];
    let length = name.len().min(WORD_BYTES);
    word[..length].copy_from_slice(&name[..length]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DocumentBuf;

    const NAMES: [&str; 8] = ["", "a", "ab", "seven77", "eight888", "eight889", "nine99999", "nine99990"];

    fn found(names: &[&str], document: DocumentRef<'_>) -> Vec<String> {
        let mut found = vec![String::new(); names.len()];
        let sought = FieldNames::new(names.iter().copied()).expect("few names");
        sought.find(document, |position, value| {
            assert!(found[position].is_empty(), "each is shown once");
            found[position] = format!("{:?}", value.and_then(EncodedValue::value));
            ControlFlow::Continue(())
        });
        found
    }

    #[test]
    fn each_name_is_found_as_it_is_alone() {
        // The documents have some of the names, some of them twice. The sets of names have some that the documents
        // lack.
        for which in 0_u32..1 << NAMES.len() {
            let mut document = DocumentBuf::new();
            for (position, name) in NAMES.iter().enumerate().filter(|(position, _)| which >> position & 1 == 1) {
                document.append(name, position as i32).append("between", "some text");
                document.append(NAMES[(position * 5 + 1) % NAMES.len()], 100 + position as i32);
            }
            for sought in [&NAMES[..], &NAMES[..3], &NAMES[3..], &NAMES[6..7], &[]] {
                let document = document.as_ref();
                let expected: Vec<_> = sought.iter().map(|name| format!("{:?}", document.get(name))).collect();
                assert_eq!(found(sought, document), expected, "{sought:?} in {document:?}");
            }
        }
    }

    #[test]
    fn damaged_documents_end() {
        let document = DocumentBuf::new().with("seven77", "text").with("nine99999", 1).with("a", 2.0);
        let bytes = document.as_ref().as_bytes();
        for at in 0..bytes.len() {
            found(&NAMES, DocumentRef::trusted(&bytes[..at]));
            for changed in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = bytes.to_vec();
                bytes[at] = changed;
                found(&NAMES, DocumentRef::trusted(&bytes));
            }
        }
    }

    #[test]
    fn a_caller_that_has_enough_sees_no_more_fields() {
        let document = DocumentBuf::new().with("a", 1).with("b", 2);
        let names = FieldNames::new(["b", "a"]).expect("two names");
        let mut seen = Vec::new();
        names.find(document.as_ref(), |position, _| {
            seen.push(position);
            ControlFlow::Break(())
        });
        assert_eq!(seen, [1]);
        assert!(FieldNames::new(std::iter::repeat_n("x", 65)).is_none());
    }
}
