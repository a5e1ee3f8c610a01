//! OP_QUERY, by which old drivers send queries and commands, and current ones their first `isMaster`.

use crate::cursor::Cursor;
use crate::writer::{begin_frame, put_name};
use crate::{Header, OpCode, QueryFlags, WireError};
use bunko_bson::DocumentRef;

/// An OP_QUERY frame, read in place. On the collection `$cmd` of a database it is a command.
/// Source: MongoDB wire protocol, "OP_QUERY".
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The request's number, which the reply names.
    pub request_id: i32,
    /// Flags. Unknown ones are ignored.
    pub flags: QueryFlags,
    /// `<database>.<collection>`, as sent.
    pub full_collection_name: &'a str,
    /// Number of documents to skip before the first one returned.
    pub skip: i32,
    /// Size of the first batch. 0 leaves it to the server; if it is 1 or below 0, it is also the limit, and the cursor
    /// closes.
    pub number_to_return: i32,
    /// The filter, possibly wrapped as `{$query: .., $orderby: ..}`; or the command.
    pub query: DocumentRef<'a>,
    /// The projection, if one was sent.
    pub return_fields: Option<DocumentRef<'a>>,
}

impl<'a> Query<'a> {
    /// Checks a whole frame, header included, and reads it in place.
    /// # Errors
    /// [`WireError`] if a field does not fit or a document is not well formed.
    pub fn parse(frame: &'a [u8]) -> Result<Self, WireError> {
        let (header, content) = Header::of_frame(frame, OpCode::Query)?;
        let mut cursor = Cursor::new(content);
        let query = Self {
            request_id: header.request_id,
            flags: QueryFlags(cursor.uint32()?),
            full_collection_name: cursor.name()?,
            skip: cursor.int32()?,
            number_to_return: cursor.int32()?,
            query: cursor.document()?,
            return_fields: if cursor.is_empty() { None } else { Some(cursor.document()?) },
        };
        cursor.finish()?;
        Ok(query)
    }

    /// The database whose command this is; `None` for a query on a collection.
    pub fn command_database(&self) -> Option<&'a str> {
        self.full_collection_name.strip_suffix(".$cmd")
    }

    /// Appends the query as a frame; `request_id` is its own. Returns the frame's length in bytes.
    /// # Errors
    /// [`WireError::BadLength`] above [`crate::MAX_FRAME_BYTES`]; `out` is then unchanged.
    /// # Panics
    /// If the collection's name holds a zero byte.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<usize, WireError> {
        let start = begin_frame(out, self.request_id, 0, OpCode::Query);
        out.extend_from_slice(&self.flags.0.to_le_bytes());
        put_name(out, self.full_collection_name);
        out.extend_from_slice(&self.skip.to_le_bytes());
        out.extend_from_slice(&self.number_to_return.to_le_bytes());
        out.extend_from_slice(self.query.as_bytes());
        if let Some(return_fields) = self.return_fields {
            out.extend_from_slice(return_fields.as_bytes());
        }
        start.finish(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentBuf;

    /// `isMaster` as drivers spell it, encoded by hand: the writer must not be the proof of the reader.
    fn is_master() -> Vec<u8> {
        let command = DocumentBuf::new().with("isMaster", 1_i32);
        let mut frame = Vec::new();
        Header::write(&mut frame, 0, 5, 0, OpCode::Query);
        frame.extend_from_slice(&4_u32.to_le_bytes());
        frame.extend_from_slice(b"admin.$cmd\0");
        frame.extend_from_slice(&0_i32.to_le_bytes());
        frame.extend_from_slice(&(-1_i32).to_le_bytes());
        frame.extend_from_slice(command.as_ref().as_bytes());
        let length = frame.len() as u32;
        frame[..4].copy_from_slice(&length.to_le_bytes());
        frame
    }

    #[test]
    fn a_command_is_read_and_written_alike() {
        let frame = is_master();
        let query = Query::parse(&frame).expect("well formed");
        assert_eq!(query.command_database(), Some("admin"));
        assert!(query.flags.contains(QueryFlags::SECONDARY_OK));
        assert_eq!((query.request_id, query.skip, query.number_to_return), (5, 0, -1));
        assert_eq!(query.query.first().map(|field| field.name), Some("isMaster"));
        assert!(query.return_fields.is_none());
        let mut written = vec![9];
        assert_eq!(query.write(&mut written), Ok(frame.len()));
        assert_eq!(written[1..], frame);
    }

    #[test]
    fn a_projection_may_follow_and_nothing_else() {
        let fields = DocumentBuf::new().with("a", 1_i32);
        let with = |extra: &[u8]| {
            let mut frame = [&is_master(), extra].concat();
            let length = frame.len() as u32;
            frame[..4].copy_from_slice(&length.to_le_bytes());
            frame
        };
        let frame = with(fields.as_ref().as_bytes());
        assert_eq!(Query::parse(&frame).expect("well formed").return_fields, Some(fields.as_ref()));
        let trailing = with(&[fields.as_ref().as_bytes(), &[0]].concat());
        assert_eq!(Query::parse(&trailing).unwrap_err(), WireError::TrailingBytes { count: 1 });
        assert_eq!(Query::parse(&with(&[0])).unwrap_err(), WireError::Truncated);
    }

    #[test]
    fn a_query_is_no_command() {
        let query = Query {
            request_id: 1,
            flags: QueryFlags::TAILABLE_CURSOR,
            full_collection_name: "local.oplog.rs",
            skip: 2,
            number_to_return: 3,
            query: DocumentRef::EMPTY,
            return_fields: Some(DocumentRef::EMPTY),
        };
        assert_eq!(query.command_database(), None);
        let mut frame = Vec::new();
        query.write(&mut frame).expect("short");
        let read = Query::parse(&frame).expect("well formed");
        assert_eq!((read.full_collection_name, read.skip, read.number_to_return), ("local.oplog.rs", 2, 3));
    }
}
