//! A child's output. It is read all the time, because a full pipe would stop the child.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::Child;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Lines kept for error messages.
const TAIL_LINES_MAX: usize = 200;
/// Longest wait for the rest of a dead child's output.
const REST_TIMEOUT: Duration = Duration::from_secs(1);

type Tail = Arc<Mutex<VecDeque<String>>>;

/// The last lines of a child's output and the threads that read them.
#[derive(Debug)]
pub(super) struct Output {
    tail: Tail,
    readers: Vec<JoinHandle<()>>,
}

impl Output {
    /// Starts to read both pipes of a child. Every line is also sent to the receiver while it lives; it reports
    /// the end when both pipes are closed.
    pub(super) fn capture(child: &mut Child) -> (Self, Receiver<String>) {
        let tail = Tail::default();
        let (sender, receiver) = mpsc::channel();
        let stdout = child.stdout.take().map(|pipe| read_lines(pipe, &tail, &sender));
        let stderr = child.stderr.take().map(|pipe| read_lines(pipe, &tail, &sender));
        (Self { tail, readers: stdout.into_iter().chain(stderr).collect() }, receiver)
    }

    /// The last lines, each with its line end.
    pub(super) fn tail(&self) -> String {
        let lines = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }

    /// Waits for the rest of a dead child's output, for [`REST_TIMEOUT`] at most: a grandchild may hold the pipes open.
    pub(super) fn finish(&self) {
        let deadline = Instant::now() + REST_TIMEOUT;
        while !self.readers.iter().all(JoinHandle::is_finished) && Instant::now() < deadline {
            thread::sleep(super::POLL_INTERVAL);
        }
    }
}

fn read_lines(pipe: impl Read + Send + 'static, tail: &Tail, sender: &Sender<String>) -> JoinHandle<()> {
    let (tail, sender) = (Arc::clone(tail), sender.clone());
    thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut bytes = Vec::new();
        // Read as bytes: a line that is not UTF-8 must not end the reading.
        while matches!(reader.read_until(b'\n', &mut bytes), Ok(1..)) {
            let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
            bytes.clear();
            let mut lines = tail.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() == TAIL_LINES_MAX {
                lines.pop_front();
            }
            lines.push_back(line.clone());
            drop(lines);
            // The receiver is gone once the address is known.
            let _ = sender.send(line);
        }
    })
}

/// Finds the address after `mongodb://` in a line.
pub(super) fn address(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("mongodb://")?;
    let is_address = |character: char| character.is_ascii_alphanumeric() || "[]:.-%".contains(character);
    let end = rest.find(|character| !is_address(character)).unwrap_or(rest.len());
    rest[..end].trim_end_matches('.').to_socket_addrs().ok()?.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_lines() {
        for (line, expected) in [
            ("listening on mongodb://127.0.0.1:27017", Some("127.0.0.1:27017")),
            ("ready: mongodb://127.0.0.1:27017/?directConnection=true", Some("127.0.0.1:27017")),
            ("{\"uri\":\"mongodb://[::1]:1\"}", Some("[::1]:1")),
            ("Bunko waits at mongodb://127.0.0.1:1.", Some("127.0.0.1:1")),
            ("mongodb://127.0.0.1", None),
            ("http://127.0.0.1:1", None),
        ] {
            assert_eq!(address(line).map(|address| address.to_string()).as_deref(), expected, "{line}");
        }
    }
}
