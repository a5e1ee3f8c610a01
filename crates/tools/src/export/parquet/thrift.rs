//! Structures in Thrift's compact protocol, in which Parquet has its headers and its footer.
//! Source: Apache Thrift, "Thrift Compact protocol encoding".

const INT32: u8 = 5;
const INT64: u8 = 6;
const TEXT: u8 = 8;
const LIST: u8 = 9;
const STRUCTURE: u8 = 12;
/// The most elements whose number stands in a list's first byte.
const SHORT_LIST_MAX: usize = 14;

/// A structure that is being written: its fields come in the order of their numbers.
pub(super) struct Structure<'o> {
    out: &'o mut Vec<u8>,
    last: u8,
}

impl<'o> Structure<'o> {
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out, last: 0 }
    }

    pub fn int32(&mut self, number: u8, value: i32) -> &mut Self {
        self.field(number, INT32);
        zigzag(value.into(), self.out);
        self
    }

    pub fn int64(&mut self, number: u8, value: i64) -> &mut Self {
        self.field(number, INT64);
        zigzag(value, self.out);
        self
    }

    pub fn text(&mut self, number: u8, text: &str) -> &mut Self {
        self.field(number, TEXT);
        append_text(text, self.out);
        self
    }

    pub fn numbers(&mut self, number: u8, values: &[i32]) -> &mut Self {
        self.list(number, INT32, values.len());
        for value in values {
            zigzag((*value).into(), self.out);
        }
        self
    }

    pub fn texts(&mut self, number: u8, texts: &[&str]) -> &mut Self {
        self.list(number, TEXT, texts.len());
        for text in texts {
            append_text(text, self.out);
        }
        self
    }

    pub fn structure(&mut self, number: u8, write: impl FnOnce(&mut Structure<'_>)) -> &mut Self {
        self.field(number, STRUCTURE);
        self.element(write)
    }

    /// A list of structures, each of which `write` fills.
    pub fn structures<T>(
        &mut self,
        number: u8,
        values: impl ExactSizeIterator<Item = T>,
        mut write: impl FnMut(T, &mut Structure<'_>),
    ) -> &mut Self {
        self.list(number, STRUCTURE, values.len());
        for value in values {
            self.element(|structure| write(value, structure));
        }
        self
    }

    pub fn end(&mut self) {
        self.out.push(0);
    }

    fn element(&mut self, write: impl FnOnce(&mut Structure<'_>)) -> &mut Self {
        let mut inner = Structure::new(self.out);
        write(&mut inner);
        inner.end();
        self
    }

    fn field(&mut self, number: u8, kind: u8) {
        // Parquet's numbers are small, so the difference always fits into four bits.
        self.out.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    fn list(&mut self, number: u8, kind: u8, count: usize) {
        self.field(number, LIST);
        if count <= SHORT_LIST_MAX {
            self.out.push((count as u8) << 4 | kind);
        } else {
            self.out.push(0xf0 | kind);
            varint(count as u64, self.out);
        }
    }
}

fn append_text(text: &str, out: &mut Vec<u8>) {
    varint(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

fn zigzag(value: i64, out: &mut Vec<u8>) {
    varint(((value << 1) ^ (value >> 63)).cast_unsigned(), out);
}

/// A number with seven bits in each byte, the lowest first.
pub(super) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lists_and_structures_have_the_bytes_of_the_protocol() {
        let mut out = Vec::new();
        let mut structure = Structure::new(&mut out);
        structure.int32(1, -1).int64(4, 300).text(5, "ab").numbers(6, &[1, 2]);
        structure.structure(8, |inner| {
            inner.int32(2, 0);
        });
        structure.end();
        let expected = [
            0x15, 0x01, 0x36, 0xd8, 0x04, 0x18, 0x02, b'a', b'b', 0x19, 0x25, 0x02, 0x04, 0x2c, 0x25, 0x00, 0x00, 0x00,
        ];
        assert_eq!(out, expected);
        let mut out = Vec::new();
        Structure::new(&mut out).texts(1, &["x"; 15]);
        assert_eq!(out[..4], [0x19, 0xf8, 15, 1]);
    }
}
