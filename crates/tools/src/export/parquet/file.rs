//! A Parquet file: row groups of one page for each column, and the footer that says where they are.
//! Source: Apache Parquet, "File format" and `parquet.thrift`.

use super::column::Column;
use super::thrift::Structure;
use bunko_bson::{DocumentRef, ValueRef};
use std::num::TryFromIntError;

const MAGIC: &[u8] = b"PAR1";
const FORMAT_VERSION: i32 = 2;
/// A row group is written once its values take that many bytes, or it has that many rows.
const GROUP_BYTES_MAX: usize = 16 << 20;
const GROUP_ROWS_MAX: usize = 1 << 20;
// Numbers of `parquet.thrift`.
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const UNCOMPRESSED: i32 = 0;
const DATA_PAGE: i32 = 0;
const OPTIONAL: i32 = 1;

/// A column's part of a row group.
struct Chunk {
    offset: i64,
    bytes: i64,
}

struct RowGroup {
    rows: i64,
    chunks: Vec<Chunk>,
}

/// A file that is being written. The bytes go to a buffer, which the caller empties.
pub(super) struct ParquetFile {
    columns: Vec<Column>,
    groups: Vec<RowGroup>,
    /// Rows that are in no group yet.
    rows: usize,
    /// Bytes that were appended so far.
    offset: usize,
}

impl ParquetFile {
    pub fn begin(columns: Vec<Column>, out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(MAGIC);
        Self { columns, groups: Vec::new(), rows: 0, offset: MAGIC.len() }
    }

    /// Adds a row; a full group goes to `out`.
    /// # Errors
    /// The name of the column whose type does not hold the document's value.
    pub fn append<'d>(
        &mut self,
        document: DocumentRef<'d>,
        find: impl Fn(DocumentRef<'d>, &str) -> Option<ValueRef<'d>>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        for column in &mut self.columns {
            if !column.append(find(document, &column.name)) {
                return Err(column.name.clone());
            }
        }
        self.rows += 1;
        let bytes: usize = self.columns.iter().map(Column::len_bytes).sum();
        if bytes >= GROUP_BYTES_MAX || self.rows >= GROUP_ROWS_MAX {
            self.end_group(out);
        }
        Ok(())
    }

    /// Appends the last group and the footer.
    /// # Errors
    /// If the footer has more than 4 GiB: the format's number for its length has 32 bits.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<(), TryFromIntError> {
        if self.rows > 0 {
            self.end_group(out);
        }
        let begun = out.len();
        self.append_footer(out);
        let length = u32::try_from(out.len() - begun)?;
        out.extend(length.to_le_bytes());
        out.extend_from_slice(MAGIC);
        Ok(())
    }

    fn end_group(&mut self, out: &mut Vec<u8>) {
        let rows = std::mem::take(&mut self.rows);
        let begun = out.len();
        let mut chunks = Vec::with_capacity(self.columns.len());
        let mut page = Vec::new();
        for column in &mut self.columns {
            column.take_page(&mut page);
            let start = out.len();
            append_page_header(rows, page.len(), out);
            out.append(&mut page);
            let offset = (self.offset + start - begun) as i64;
            chunks.push(Chunk { offset, bytes: (out.len() - start) as i64 });
        }
        self.offset += out.len() - begun;
        self.groups.push(RowGroup { rows: rows as i64, chunks });
    }

    fn append_footer(&self, out: &mut Vec<u8>) {
        let rows: i64 = self.groups.iter().map(|group| group.rows).sum();
        let mut footer = Structure::new(out);
        // The root of the schema comes in front of the columns.
        let schema = std::iter::once(None).chain(self.columns.iter().map(Some)).collect::<Vec<_>>();
        footer.int32(1, FORMAT_VERSION).structures(2, schema.into_iter(), |column, element| match column {
            None => {
                element.text(4, "schema").int32(5, self.columns.len() as i32);
            }
            Some(column) => append_schema(column, element),
        });
        footer.int64(3, rows);
        footer.structures(4, self.groups.iter(), |group, structure| {
            let bytes = group.chunks.iter().map(|chunk| chunk.bytes).sum();
            let chunks = self.columns.iter().zip(&group.chunks);
            structure.structures(1, chunks, |(column, chunk), structure| {
                structure.int64(2, chunk.offset).structure(3, |data| append_chunk(column, chunk, group.rows, data));
            });
            structure.int64(2, bytes).int64(3, group.rows);
        });
        footer.text(6, concat!("bunko version ", env!("CARGO_PKG_VERSION"))).end();
    }
}

fn append_page_header(rows: usize, bytes: usize, out: &mut Vec<u8>) {
    let mut header = Structure::new(out);
    header.int32(1, DATA_PAGE).int32(2, bytes as i32).int32(3, bytes as i32);
    header.structure(5, |page| {
        page.int32(1, rows as i32).int32(2, PLAIN).int32(3, RLE).int32(4, RLE);
    });
    header.end();
}

fn append_schema(column: &Column, element: &mut Structure<'_>) {
    let stored = column.kind.stored();
    element.int32(1, stored.physical).int32(3, OPTIONAL).text(4, &column.name);
    if let Some(converted) = stored.converted {
        element.int32(6, converted);
    }
}

fn append_chunk(column: &Column, chunk: &Chunk, rows: i64, data: &mut Structure<'_>) {
    data.int32(1, column.kind.stored().physical)
        .numbers(2, &[PLAIN, RLE])
        .texts(3, &[&column.name])
        .int32(4, UNCOMPRESSED)
        .int64(5, rows)
        .int64(6, chunk.bytes)
        .int64(7, chunk.bytes)
        .int64(9, chunk.offset);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::parquet::column::ColumnType;
    use bunko_bson::DocumentBuf;

    /// The pages and the footer, up to the version of the program, of a file that DuckDB reads as (7, 'x'), (null, 'yz').
    const EXPECTED: &str = "50415231\
        1500151415142c15041500150615060000020000000301070000001500152215222c1504150015061506000002000000040101000000\
        7802000000797a1504193c4806736368656d611504001502250218016100150c25021801732500001604191c192c26081c15021925000619\
        180161150016041636163626080000263e1c150c19250006191801731500160416441644263e0000167a160400";

    #[test]
    fn a_file_has_the_bytes_that_readers_understand() {
        let columns = vec![Column::new("a".into(), ColumnType::Int32), Column::new("s".into(), ColumnType::Text)];
        let mut out = Vec::new();
        let mut file = ParquetFile::begin(columns, &mut out);
        for document in [DocumentBuf::new().with("a", 7_i32).with("s", "x"), DocumentBuf::new().with("s", "yz")] {
            file.append(document.as_ref(), DocumentRef::get, &mut out).expect("a row");
        }
        file.finish(&mut out).expect("a short footer");
        let shown: String = out.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        assert!(shown.starts_with(EXPECTED), "{shown}");
        let footer = u32::from_le_bytes(out[out.len() - 8..out.len() - 4].try_into().expect("four bytes")) as usize;
        // The footer begins after the last page, whose last bytes are the last value.
        assert!(out[..out.len() - 8 - footer].ends_with(b"yz") && out.ends_with(MAGIC));
    }

    #[test]
    fn a_value_of_another_type_is_refused_by_the_name_of_its_column() {
        let mut file = ParquetFile::begin(vec![Column::new("a".into(), ColumnType::Int32)], &mut Vec::new());
        let document = DocumentBuf::new().with("a", "text");
        let refused = file.append(document.as_ref(), DocumentRef::get, &mut Vec::new());
        assert_eq!(refused, Err("a".to_owned()));
    }
}
