//! Tokens for the place of a document in the order of results.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef, base64};

/// The values that decide the place of a document.
#[derive(Clone, Debug)]
pub struct SequenceToken {
    /// The document's score.
    pub score: f32,
    /// The values of the fields that are sorted by.
    pub keys: Vec<Value>,
    /// The document's record.
    pub record: i64,
    /// Number of the embedded document in the document.
    pub part: u32,
}

impl SequenceToken {
    /// The text of the token, as clients receive and return it.
    pub fn to_text(&self) -> String {
        let keys: ArrayBuf = self.keys.iter().collect();
        let document = DocumentBuf::new()
            .with("s", i64::from(self.score.to_bits()))
            .with("k", &keys)
            .with("r", self.record)
            .with("p", i64::from(self.part));
        base64::encode(&document.into_bytes())
    }

    /// Parses the text of a token; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let document = DocumentBuf::parse(base64::decode(text)?).ok()?;
        let document = document.as_ref();
        let keys = document.get("k")?.as_array()?.iter().map(ValueRef::to_value).collect();
        let score = f32::from_bits(u32::try_from(integer(document, "s")?).ok()?);
        let part = u32::try_from(integer(document, "p")?).ok()?;
        Some(Self { score, keys, record: integer(document, "r")?, part })
    }
}

fn integer(document: DocumentRef<'_>, name: &str) -> Option<i64> {
    match document.get(name)? {
        ValueRef::Int64(value) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written() {
        let token = SequenceToken { score: 1.5, keys: vec![Value::Int32(3)], record: 7, part: 2 };
        let read = SequenceToken::parse(&token.to_text()).expect("it was written so");
        assert_eq!((read.score, read.record, read.part), (1.5, 7, 2));
        assert_eq!(read.keys[0].as_ref().as_str(), None);
        assert!(SequenceToken::parse("not_a_token").is_none());
    }
}
