//! POST over HTTP/1.1, on a connection that is kept between requests.

use crate::endpoint::Endpoint;
use crate::response::{self, Response};
use bunko_client::{ByteDialer, ByteStream};
use bunko_host::Clock;
use std::io::{self, BufReader, Read, Write};
use std::time::{Duration, Instant};

/// How long a request may take, from the connection to the end of the answer.
/// Source: OpenTelemetry, "OTLP Exporter Configuration", `OTEL_EXPORTER_OTLP_TIMEOUT`.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);

/// The connection to a collector.
pub struct HttpClient {
    dialer: ByteDialer,
    clock: Clock,
    /// The part of each request's head before the length.
    head: String,
    open: Option<BufReader<Timed>>,
}

impl HttpClient {
    pub fn new(endpoint: &Endpoint, dialer: ByteDialer, clock: Clock) -> Self {
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: Bunko/{}\r\nContent-Type: application/x-protobuf\r\n",
            endpoint.path(),
            endpoint.authority(),
            env!("CARGO_PKG_VERSION"),
        );
        Self { dialer, clock, head, open: None }
    }

    /// Sends a body, and returns the answer.
    /// # Errors
    /// If the collector cannot be reached, does not answer in time, or answers something else than HTTP.
    pub fn post(&mut self, body: &[u8]) -> io::Result<Response> {
        let deadline = self.clock.now() + REQUEST_TIME_MAX;
        if let Some(open) = self.open.take() {
            match self.exchange(open, body, deadline) {
                // The collector has closed a connection that was idle.
                Err(error) if is_end(&error) => {}
                answered => return answered,
            }
        }
        let stream = self.dialer.dial(deadline)?;
        let timed = Timed { stream, clock: self.clock.clone(), deadline };
        self.exchange(BufReader::new(timed), body, deadline)
    }

    fn exchange(&mut self, mut open: BufReader<Timed>, body: &[u8], deadline: Instant) -> io::Result<Response> {
        let timed = open.get_mut();
        timed.deadline = deadline;
        timed.write_all(format!("{}Content-Length: {}\r\n\r\n", self.head, body.len()).as_bytes())?;
        timed.write_all(body)?;
        timed.flush()?;
        let response = response::read(&mut open)?;
        // Bytes behind the answer would be taken for the next one.
        self.open = (response.keeps_connection && open.buffer().is_empty()).then_some(open);
        Ok(response)
    }
}

/// Whether the error is that the other end has closed the connection.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof].contains(&error.kind())
}

/// A stream whose reads and writes end at a deadline, even if each of them makes some progress.
struct Timed {
    stream: ByteStream,
    clock: Clock,
    deadline: Instant,
}

impl Timed {
    /// The stream, with the rest of the time as its timeout.
    fn in_time(&mut self) -> io::Result<&mut ByteStream> {
        let rest = self.deadline.saturating_duration_since(self.clock.now());
        if rest.is_zero() {
            return Err(timed_out());
        }
        self.stream.set_timeout(rest)?;
        Ok(&mut self.stream)
    }
}

fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", REQUEST_TIME_MAX.as_secs()))
}

/// A socket reports its timeout as `WouldBlock`.
fn named(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { timed_out() } else { error }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.in_time()?.read(buffer).map_err(named)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.in_time()?.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.in_time()?.flush().map_err(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::thread::JoinHandle;

    const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

    /// A collector that takes one connection after the other. It reads a request before each of the connection's answers, and
    /// returns all requests.
    fn collector(connections: Vec<Vec<&'static [u8]>>) -> (HttpClient, JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let endpoint = Endpoint::parse(&format!("http://{}", listener.local_addr().expect("bound"))).expect("valid");
        let dialer = ByteDialer::new(&endpoint.host, endpoint.port, None).expect("no files");
        let answering = std::thread::spawn(move || {
            let mut requests = Vec::new();
            for answers in connections {
                let (mut socket, _) = listener.accept().expect("accepted");
                for answer in answers {
                    requests.push(request(&mut socket));
                    socket.write_all(answer).expect("sent");
                }
            }
            requests
        });
        (HttpClient::new(&endpoint, dialer, Clock::machine()), answering)
    }

    /// Reads a request whose body is `spans`.
    fn request(socket: &mut TcpStream) -> String {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\nspans") {
            let mut byte = [0];
            socket.read_exact(&mut byte).expect("the request");
            bytes.extend(byte);
        }
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn a_connection_is_kept() {
        let (mut client, answering) = collector(vec![vec![TAKEN, TAKEN]]);
        for _ in 0..2 {
            assert_eq!(client.post(b"spans").expect("answered").status, 200);
        }
        let requests = answering.join().expect("answered");
        assert_eq!(requests[0], requests[1]);
        for words in ["POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1:", "Content-Length: 5\r\n", "x-protobuf\r\n"] {
            assert!(requests[0].contains(words), "{}", requests[0]);
        }
    }

    #[test]
    fn a_connection_that_was_closed_is_replaced() {
        let (mut client, answering) = collector(vec![vec![TAKEN], vec![TAKEN]]);
        for _ in 0..2 {
            assert_eq!(client.post(b"spans").expect("answered").status, 200);
        }
        assert_eq!(answering.join().expect("answered").len(), 2);
    }

    #[test]
    fn garbage_is_an_error() {
        let (mut client, answering) = collector(vec![vec![b"220 smtp.example.com\r\n"], vec![TAKEN]]);
        let error = client.post(b"spans").expect_err("no HTTP");
        assert_eq!(error.to_string(), "the answer is not HTTP");
        assert_eq!(client.post(b"spans").expect("answered").status, 200);
        answering.join().expect("answered");
    }

    #[test]
    fn a_collector_that_is_away_is_an_error() {
        let (mut client, answering) = collector(vec![]);
        answering.join().expect("gone");
        assert_eq!(client.post(b"spans").expect_err("refused").kind(), io::ErrorKind::ConnectionRefused);
    }
}
