//! Recognizes clients of other protocols by their first bytes.

use crate::tls::PlainClients;
use bunko_wire::{HEADER_BYTES, OpCode};

/// A protocol other than the wire protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// A ClientHello: the client wants TLS.
    Tls,
    /// An HTTP request.
    Http,
    /// Any other bytes where only TLS is accepted.
    Plain,
}

/// The methods of HTTP, cut to four bytes. Read as the length of a frame, each is far above the limit.
/// Source: RFC 9110, section 9; RFC 5789.
const METHODS: [&[u8; 4]; 9] = [b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"CONN", b"OPTI", b"TRAC", b"PATC"];
/// A record of a handshake, of TLS's only major version.
/// Source: RFC 8446, section 5.1.
const TLS_HANDSHAKE: [u8; 2] = [22, 3];
/// Position of the message type in a record, and the type ClientHello.
/// Source: RFC 8446, section 4.
const TLS_MESSAGE_TYPE: (usize, u8) = (5, 1);

/// mongod's answer to HTTP since it has no web pages; people search for this sentence.
pub(crate) const HTTP_ANSWER: &[u8] = b"HTTP/1.0 200 OK\r\n\
    Connection: close\r\n\
    Content-Type: text/plain\r\n\
    Content-Length: 85\r\n\
    \r\n\
    It looks like you are trying to access MongoDB over HTTP on the native driver port.\r\n";

/// Recognizes the protocol from the first bytes that a client sent.
pub(crate) fn recognise(bytes: &[u8], plain: PlainClients) -> Option<Foreign> {
    if bytes.first_chunk().is_some_and(|method| METHODS.contains(&method)) {
        return Some(Foreign::Http);
    }
    if plain == PlainClients::Refused {
        return bytes.first().map(|first| if *first == TLS_HANDSHAKE[0] { Foreign::Tls } else { Foreign::Plain });
    }
    let (place, client_hello) = TLS_MESSAGE_TYPE;
    let is_client_hello = bytes.starts_with(&TLS_HANDSHAKE) && bytes.get(place) == Some(&client_hello);
    // A frame can begin with the same six bytes. In a ClientHello, the bytes at the opcode's place are random.
    let op_code = bytes.get(HEADER_BYTES - 4..)?.first_chunk().map(|&code| i32::from_le_bytes(code))?;
    (is_client_hello && OpCode::from_code(op_code).is_none()).then_some(Foreign::Tls)
}

/// Whether the bytes are too few to tell a ClientHello from a frame.
pub(crate) fn is_undecided(bytes: &[u8]) -> bool {
    let known = bytes.len().min(TLS_HANDSHAKE.len());
    bytes.len() < HEADER_BYTES && bytes[..known] == TLS_HANDSHAKE[..known]
}

#[cfg(test)]
mod tests {
    use super::PlainClients::{Refused, Served};
    use super::*;

    #[test]
    fn other_protocols_are_told_from_frames() {
        assert_eq!(recognise(b"GET / HTTP/1.1\r\n\r\n", Served), Some(Foreign::Http));
        assert_eq!(recognise(b"POST", Served), Some(Foreign::Http));
        let client_hello = [22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 9, 8, 7, 6, 5];
        assert_eq!(recognise(&client_hello, Served), Some(Foreign::Tls));
        assert_eq!(recognise(&client_hello[..12], Served), None);
        // A frame of 66,326 bytes with request number 256.
        let frame = [22, 3, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0];
        assert_eq!(recognise(&frame, Served), None);
        assert_eq!(recognise(b"", Served), None);
        assert_eq!(recognise(&frame[..1], Refused), Some(Foreign::Tls));
        assert_eq!(recognise(&[58, 0], Refused), Some(Foreign::Plain));
        assert_eq!(recognise(b"GET ", Refused), Some(Foreign::Http));
        assert_eq!(recognise(b"", Refused), None);
    }

    #[test]
    fn ambiguous_bytes_wait_for_more() {
        assert!(is_undecided(&[]) && is_undecided(&[22]) && is_undecided(&[22, 3, 1, 9]));
        assert!(!is_undecided(&[22, 2]) && !is_undecided(&[16, 0]) && !is_undecided(&[22; 16]));
        assert!(!is_undecided(&[[22, 3].as_slice(), &[0; 14]].concat()));
    }

    #[test]
    fn the_length_of_the_answer_is_true() {
        let body = HTTP_ANSWER.windows(4).position(|window| window == b"\r\n\r\n").map(|end| &HTTP_ANSWER[end + 4..]);
        assert_eq!(body.map(<[u8]>::len), Some(85));
    }
}
