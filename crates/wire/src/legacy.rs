//! OP_GET_MORE and OP_KILL_CURSORS, by which old drivers use a cursor that OP_QUERY opened.

use crate::cursor::Cursor;
use crate::{Header, OpCode, WireError};

/// An OP_GET_MORE frame, read in place.
/// Source: MongoDB wire protocol, "OP_GET_MORE".
#[derive(Clone, Copy, Debug)]
pub struct GetMore<'a> {
    /// The request's number, which the reply names.
    pub request_id: i32,
    /// `<database>.<collection>`, as sent.
    pub full_collection_name: &'a str,
    /// Size of the next batch; 0 leaves it to the server.
    pub number_to_return: i32,
    /// The cursor.
    pub cursor_id: i64,
}

impl<'a> GetMore<'a> {
    /// Checks a whole frame, header included, and reads it in place.
    /// # Errors
    /// [`WireError`] if a field does not fit.
    pub fn parse(frame: &'a [u8]) -> Result<Self, WireError> {
        let (header, content) = Header::of_frame(frame, OpCode::GetMore)?;
        let mut cursor = Cursor::new(content);
        cursor.int32()?; // Reserved.
        let get_more = Self {
            request_id: header.request_id,
            full_collection_name: cursor.name()?,
            number_to_return: cursor.int32()?,
            cursor_id: cursor.int64()?,
        };
        cursor.finish()?;
        Ok(get_more)
    }
}

/// An OP_KILL_CURSORS frame, read in place. There is no reply to it.
/// Source: MongoDB wire protocol, "OP_KILL_CURSORS".
#[derive(Clone, Copy, Debug)]
pub struct KillCursors<'a> {
    /// The request's number.
    pub request_id: i32,
    ids: &'a [u8],
}

impl<'a> KillCursors<'a> {
    /// Checks a whole frame, header included, and reads it in place.
    /// # Errors
    /// [`WireError::BadCount`] if the number of cursors is not that of the ids sent.
    pub fn parse(frame: &'a [u8]) -> Result<Self, WireError> {
        let (header, content) = Header::of_frame(frame, OpCode::KillCursors)?;
        let mut cursor = Cursor::new(content);
        cursor.int32()?; // Reserved.
        let count = cursor.int32()?;
        let ids = cursor.rest();
        if usize::try_from(count).ok().and_then(|count| count.checked_mul(8)) != Some(ids.len()) {
            return Err(WireError::BadCount(count));
        }
        Ok(Self { request_id: header.request_id, ids })
    }

    /// The cursors to close.
    pub fn cursor_ids(&self) -> impl ExactSizeIterator<Item = i64> + 'a {
        let (ids, _) = self.ids.as_chunks::<8>();
        ids.iter().map(|&id| i64::from_le_bytes(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(op_code: OpCode, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let mut frame = Vec::new();
        Header::write(&mut frame, 16 + content.len() as u32, 8, 0, op_code);
        frame.extend_from_slice(&content);
        frame
    }

    #[test]
    fn get_more_is_read() {
        let id = 0x0123_4567_89ab_cdef_i64.to_le_bytes();
        let good = frame(OpCode::GetMore, &[&[0; 4], b"a.b\0", &[5, 0, 0, 0], &id]);
        let read = GetMore::parse(&good).expect("well formed");
        assert_eq!((read.request_id, read.full_collection_name), (8, "a.b"));
        assert_eq!((read.number_to_return, read.cursor_id), (5, 0x0123_4567_89ab_cdef));
        let long = frame(OpCode::GetMore, &[&[0; 4], b"a.b\0", &[5, 0, 0, 0], &id, &[0, 0]]);
        assert_eq!(GetMore::parse(&long).unwrap_err(), WireError::TrailingBytes { count: 2 });
        let short = frame(OpCode::GetMore, &[&[0; 4], b"a.b\0", &[5, 0, 0, 0], &id[1..]]);
        assert_eq!(GetMore::parse(&short).unwrap_err(), WireError::Truncated);
    }

    #[test]
    fn the_number_of_cursors_is_that_of_the_ids() {
        let ids = [1_i64.to_le_bytes(), (-2_i64).to_le_bytes()].concat();
        let with = |count: i32| frame(OpCode::KillCursors, &[&[0; 4], &count.to_le_bytes(), &ids]);
        let good = with(2);
        assert_eq!(KillCursors::parse(&good).expect("well formed").cursor_ids().collect::<Vec<_>>(), [1, -2]);
        for count in [1, 3, -1, i32::MIN, i32::MAX] {
            assert_eq!(KillCursors::parse(&with(count)).unwrap_err(), WireError::BadCount(count));
        }
    }
}
