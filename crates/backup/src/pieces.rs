//! Cuts a stream of bytes into pieces of one length. The last piece may be shorter, and is empty for an empty stream.

use crate::Result;
use std::ops::ControlFlow;

/// Takes a piece, whose bytes it may change.
type TakePiece<'t> = &'t mut dyn FnMut(&mut Vec<u8>) -> Result<ControlFlow<()>>;

/// A stream that is being cut.
pub(crate) struct Pieces {
    length: usize,
    held: Vec<u8>,
}

impl Pieces {
    /// Cuts into pieces of `length` bytes.
    pub fn new(length: usize) -> Self {
        Self { length, held: Vec::new() }
    }

    /// Adds bytes. A piece is passed on once a byte behind it is known, so it is not the last.
    /// # Errors
    /// Errors of `take`.
    pub fn add(&mut self, mut bytes: &[u8], take: TakePiece<'_>) -> Result<ControlFlow<()>> {
        while !bytes.is_empty() {
            if self.held.len() == self.length {
                let flow = take(&mut self.held)?;
                self.held.clear();
                if flow.is_break() {
                    return Ok(flow);
                }
            }
            let (next, rest) = bytes.split_at(bytes.len().min(self.length - self.held.len()));
            self.held.extend_from_slice(next);
            bytes = rest;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The last piece.
    pub fn last(self) -> Vec<u8> {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_one_length_and_the_last_is_the_rest() {
        for total in 0..20_usize {
            let stream: Vec<u8> = (0..total as u8).collect();
            for step in 1..9 {
                let (mut pieces, mut found) = (Pieces::new(4), Vec::new());
                for bytes in stream.chunks(step) {
                    let mut take = |piece: &mut Vec<u8>| {
                        assert_eq!(piece.len(), 4);
                        found.extend_from_slice(piece);
                        Ok(ControlFlow::Continue(()))
                    };
                    assert!(pieces.add(bytes, &mut take).is_ok_and(|flow| flow.is_continue()));
                }
                let last = pieces.last();
                assert_eq!(last.len(), total - (total.max(1) - 1) / 4 * 4);
                found.extend(last);
                assert_eq!(found, stream);
            }
        }
    }
}
