//! The collector's answer.
//! Source: RFC 9112, "HTTP/1.1"; OTLP specification, "OTLP/HTTP Response".

use crate::protobuf::{Field, Fields};
use std::io::{self, BufRead, Read};
use std::time::Duration;

/// Maximum number of bytes of an answer's head.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Maximum number of bytes of an answer's body that are read.
const BODY_BYTES_MAX: u64 = 64 << 10;

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The pause that the collector asks for, given in seconds.
    pub retry_after: Option<Duration>,
    /// The number of spans that the collector refused although it took the request.
    pub rejected_spans: u64,
    /// Whether the connection may be used again.
    pub keeps_connection: bool,
}

/// The fields of a head that matter here.
#[derive(Default)]
struct Head {
    is_closing: bool,
    is_chunked: bool,
    length: Option<u64>,
    retry_after: Option<Duration>,
}

/// Reads an answer.
/// # Errors
/// As the stream; `InvalidData` for bytes that are no answer of HTTP/1, `UnexpectedEof` for a connection that ended within
/// it.
pub fn read(stream: &mut impl BufRead) -> io::Result<Response> {
    let mut room = HEAD_BYTES_MAX;
    loop {
        let line = line(stream, &mut room)?;
        let (version, status) = status_of(&line).ok_or_else(|| wrong("the answer is not HTTP"))?;
        let head = head(stream, &mut room)?;
        // Answers before the last one, such as 100 Continue, have no body.
        if (100..200).contains(&status) {
            continue;
        }
        let body = body(stream, &head, status)?;
        return Ok(Response {
            status,
            retry_after: head.retry_after,
            rejected_spans: if status == 200 { rejected_spans(body.as_deref().unwrap_or_default()) } else { 0 },
            keeps_connection: body.is_some() && !head.is_closing && version == b'1',
        });
    }
}

/// The minor version, a digit, and the status of a status line.
fn status_of(line: &str) -> Option<(u8, u16)> {
    let (version, rest) = line.strip_prefix("HTTP/1.")?.split_once(' ')?;
    let [version @ b'0'..=b'9'] = *version.as_bytes() else { return None };
    let status = rest.split(' ').next()?;
    let is_status = status.len() == 3 && status.bytes().all(|digit| digit.is_ascii_digit());
    Some((version, status.parse().ok().filter(|status| is_status && *status >= 100)?))
}

fn head(stream: &mut impl BufRead, room: &mut usize) -> io::Result<Head> {
    let mut head = Head::default();
    loop {
        let line = line(stream, room)?;
        if line.is_empty() {
            return Ok(head);
        }
        let (name, value) = line.split_once(':').ok_or_else(|| wrong("the answer is not HTTP"))?;
        let value = value.trim();
        let has_word = |word: &str| value.split(',').any(|one| one.trim().eq_ignore_ascii_case(word));
        match name.to_ascii_lowercase().as_str() {
            "connection" => head.is_closing |= has_word("close"),
            "transfer-encoding" => head.is_chunked |= has_word("chunked"),
            "content-length" => {
                let length = value.parse().map_err(|_| wrong("the answer's length is not a number"))?;
                if head.length.replace(length).is_some_and(|other| other != length) {
                    return Err(wrong("the answer has two lengths"));
                }
            }
            // A date is not read: the pause is chosen here then.
            "retry-after" => head.retry_after = value.parse().ok().map(Duration::from_secs),
            _ => {}
        }
    }
}

/// Reads the body. `None` if its end is not known, or it is longer than [`BODY_BYTES_MAX`]: the connection cannot be used
/// again.
fn body(stream: &mut impl BufRead, head: &Head, status: u16) -> io::Result<Option<Vec<u8>>> {
    if status == 204 || status == 304 {
        return Ok(Some(Vec::new()));
    }
    if head.is_chunked {
        return chunks(stream);
    }
    match head.length {
        Some(length) if length <= BODY_BYTES_MAX => {
            let mut body = vec![0; length as usize];
            stream.read_exact(&mut body)?;
            Ok(Some(body))
        }
        _ => Ok(None),
    }
}

fn chunks(stream: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut room = HEAD_BYTES_MAX;
    let mut body = Vec::new();
    loop {
        let size = line(stream, &mut room)?;
        let size = u64::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16)
            .map_err(|_| wrong("the size of a chunk of the answer is not a number"))?;
        if size == 0 {
            // Fields behind the last chunk.
            while !line(stream, &mut room)?.is_empty() {}
            return Ok(Some(body));
        }
        if size > BODY_BYTES_MAX - body.len() as u64 {
            return Ok(None);
        }
        let before = body.len();
        body.resize(before + size as usize, 0);
        stream.read_exact(&mut body[before..])?;
        line(stream, &mut room)?;
    }
}

/// Reads a line without its end, and subtracts its length from `room`.
fn line(stream: &mut impl BufRead, room: &mut usize) -> io::Result<String> {
    let mut line = Vec::new();
    stream.by_ref().take(*room as u64).read_until(b'\n', &mut line)?;
    *room -= line.len();
    match line.pop() {
        Some(b'\n') => {}
        _ if *room > 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
        _ => return Err(wrong("the head of the answer is too long")),
    }
    line.pop_if(|last| *last == b'\r');
    String::from_utf8(line).map_err(|_| wrong("the answer is not HTTP"))
}

/// The spans that an `ExportTraceServiceResponse` says were refused.
fn rejected_spans(body: &[u8]) -> u64 {
    let partial = Fields(body).find_map(|(number, field)| match field {
        Field::Bytes(partial) if number == 1 => Some(partial),
        _ => None,
    });
    let rejected = Fields(partial.unwrap_or_default()).find_map(|(number, field)| match field {
        Field::Number(rejected) if number == 1 => Some(rejected),
        _ => None,
    });
    rejected.unwrap_or(0)
}

fn wrong(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(bytes: &[u8]) -> Result<Response, String> {
        read(&mut &bytes[..]).map_err(|error| error.to_string())
    }

    fn taken() -> Response {
        Response { status: 200, retry_after: None, rejected_spans: 0, keeps_connection: true }
    }

    #[test]
    fn answers_are_read() {
        let kept = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(answer(kept), Ok(taken()));
        let continued = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n\x0a\x00";
        assert_eq!(answer(continued), Ok(taken()));
        let closing = Response { keeps_connection: false, ..taken() };
        assert_eq!(answer(b"HTTP/1.1 200 OK\r\nConnection: foo, Close\r\nContent-Length: 0\r\n\r\n"), Ok(closing));
        let old = Response { keeps_connection: false, ..taken() };
        assert_eq!(answer(b"HTTP/1.0 200 OK\nContent-Length: 0\n\n"), Ok(old));
        let busy = Response {
            status: 429,
            retry_after: Some(Duration::from_secs(3)),
            rejected_spans: 0,
            keeps_connection: false,
        };
        assert_eq!(answer(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\n\r\n"), Ok(busy));
        let dated = b"HTTP/1.1 503 No\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(answer(dated), Ok(Response { status: 503, ..taken() }));
    }

    #[test]
    fn spans_that_were_refused_are_counted() {
        let partial = Response { rejected_spans: 300, ..taken() };
        let body = b"\x0a\x0a\x08\xac\x02\x12\x05small";
        let plain = [b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n", &body[..]].concat();
        assert_eq!(answer(&plain), Ok(partial));
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\n\x0a\x0a\x08\r\n9\r\n\xac\x02\x12\x05small\r\n0\r\nA: b\r\n\r\n";
        assert_eq!(answer(chunked), Ok(Response { rejected_spans: 300, ..taken() }));
        assert_eq!(answer(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nOKOK"), Ok(taken()));
    }

    #[test]
    fn hostile_answers_are_refused() {
        for bytes in [
            &b"SSH-2.0-OpenSSH\r\n"[..],
            b"HTTP/2 200\r\n\r\n",
            b"HTTP/1.1 20\r\n\r\n",
            b"HTTP/1.1 +20\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"HTTP/1.1 200 OK",
            b"\xff\xfe\n",
            b"",
        ] {
            assert!(answer(bytes).is_err(), "{bytes:?}");
        }
        let endless = [b"HTTP/1.1 200 OK\r\nX: ".to_vec(), vec![b'x'; 1 << 20]].concat();
        assert_eq!(answer(&endless), Err("the head of the answer is too long".to_owned()));
        let continued = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(10_000);
        assert_eq!(answer(&continued), Err("the head of the answer is too long".to_owned()));
        for large in [
            &b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        ] {
            assert_eq!(answer(large), Ok(Response { keeps_connection: false, ..taken() }));
        }
    }
}
