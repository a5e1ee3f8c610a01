//! The wire format of Protocol Buffers, as far as spans need it.
//! Source: Protocol Buffers documentation, "Encoding".

/// A message that is being written. A field's number is from 1 to 15, so that its tag is one byte.
#[derive(Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// Appends a number of a varint field.
    pub fn varint(&mut self, field: u8, value: u64) -> &mut Self {
        self.0.push(field << 3);
        self.put_varint(value);
        self
    }

    /// Appends a number of a `fixed64` field.
    pub fn fixed64(&mut self, field: u8, value: u64) -> &mut Self {
        self.0.push(field << 3 | 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Appends a number of a `fixed32` field whose number is 16 or above.
    pub fn fixed32(&mut self, field: u32, value: u32) -> &mut Self {
        self.put_varint(u64::from(field << 3 | 5));
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Appends bytes or a text.
    pub fn bytes(&mut self, field: u8, bytes: &[u8]) -> &mut Self {
        self.0.push(field << 3 | 2);
        self.put_varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    /// Appends a message.
    pub fn message(&mut self, field: u8, write: impl FnOnce(&mut Self)) -> &mut Self {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0)
    }

    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// The value of a field that is read.
#[derive(Debug, PartialEq, Eq)]
pub enum Field<'m> {
    /// A varint or a fixed number.
    Number(u64),
    /// Bytes, a text or a message.
    Bytes(&'m [u8]),
}

/// The fields of a message with their numbers. They end early where the bytes are no message.
pub struct Fields<'m>(pub &'m [u8]);

impl<'m> Iterator for Fields<'m> {
    type Item = (u64, Field<'m>);

    fn next(&mut self) -> Option<Self::Item> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Field::Number(self.varint()?),
            1 => Field::Number(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Field::Bytes(self.take(length)?)
            }
            5 => Field::Number(u32::from_le_bytes(self.take(4)?.try_into().ok()?).into()),
            _ => return None,
        };
        Some((tag >> 3, value))
    }
}

impl<'m> Fields<'m> {
    fn take(&mut self, length: usize) -> Option<&'m [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.take(1)?.first()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the documentation: 150 in field 1, "testing" in field 2, and the first message in field 3.
    #[test]
    fn the_examples_of_the_documentation() {
        let mut message = Message::default();
        message.varint(1, 150).bytes(2, b"testing").message(3, |inner| _ = inner.varint(1, 150));
        let bytes = message.into_bytes();
        assert_eq!(bytes, b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01");
        let fields: Vec<_> = Fields(&bytes).collect();
        let expected = [(1, Field::Number(150)), (2, Field::Bytes(b"testing")), (3, Field::Bytes(b"\x08\x96\x01"))];
        assert_eq!(fields, expected);
    }

    #[test]
    fn bytes_that_are_no_message_end() {
        for bytes in [&b"\x08"[..], b"\x12\x7fshort", b"\x0f\x00", &[0xff; 20], b"\x09\x00"] {
            assert_eq!(Fields(bytes).count(), 0, "{bytes:?}");
        }
    }
}
