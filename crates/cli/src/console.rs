//! Standard error and standard output, whose reader may have stopped reading.
//!
//! A write to a full pipe waits until the other end reads, which may never happen. A thread that serves clients must
//! not wait like that: if a write would wait, the bytes go into a queue, and a separate thread writes them. A full
//! queue refuses further bytes.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that a ready pipe accepts without waiting.
/// Source: pipe(7), `PIPE_BUF`.
const READY_BYTES: usize = 4096;
/// Maximum number of bytes that may wait for the reader.
const QUEUE_BYTES_MAX: usize = 1 << 20;

/// A stream of the process that another program may read.
pub struct Console<F>(Arc<Shared<F>>);

struct Shared<F> {
    stream: F,
    queue: Mutex<Queue>,
    /// Signalled when the queue has bytes for its thread.
    filled: Condvar,
    /// Signalled when the thread has written all bytes of the queue.
    emptied: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Vec<u8>>,
    /// Bytes in `waiting` and bytes that the thread is writing.
    bytes: usize,
    has_thread: bool,
}

impl<F: AsFd + Send + Sync + 'static> Console<F> {
    /// A console that writes to that stream.
    pub fn new(stream: F) -> Self {
        let (filled, emptied) = (Condvar::new(), Condvar::new());
        Self(Arc::new(Shared { stream, queue: Mutex::default(), filled, emptied }))
    }

    /// Writes all bytes after those of earlier calls, now or when the reader continues.
    /// # Errors
    /// `WouldBlock` if the reader has left too much unread: then nothing is written. The stream's own errors.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut queue = self.0.queue();
        let mut rest = bytes;
        if queue.bytes == 0 {
            rest = write_ready(self.0.stream.as_fd(), bytes)?;
            if rest.is_empty() {
                return Ok(());
            }
        } else if queue.bytes + bytes.len() > QUEUE_BYTES_MAX {
            return Err(ErrorKind::WouldBlock.into());
        }
        if !queue.has_thread {
            let shared = Arc::clone(&self.0);
            std::thread::Builder::new().name("console".into()).spawn(move || shared.write_queued())?;
            queue.has_thread = true;
        }
        queue.bytes += rest.len();
        queue.waiting.push_back(rest.to_vec());
        self.0.filled.notify_one();
        Ok(())
    }

    /// Waits until everything has been written, at most that long.
    pub fn flush(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        let mut queue = self.0.queue();
        while queue.bytes > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            queue = self.0.emptied.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl<F: AsFd> Shared<F> {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes queued bytes as long as the process runs.
    fn write_queued(&self) {
        loop {
            let mut queue = self.queue();
            let bytes = loop {
                match queue.waiting.pop_front() {
                    Some(bytes) => break bytes,
                    None => queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(queue);
            // A reader that has closed its end gets nothing more: the bytes are dropped.
            let _ = write_all(self.stream.as_fd(), &bytes);
            let mut queue = self.queue();
            queue.bytes -= bytes.len();
            if queue.bytes == 0 {
                self.emptied.notify_all();
            }
        }
    }
}

/// Waits until a stream accepts bytes; with a limit, at most that long.
fn is_ready(stream: BorrowedFd<'_>, limit: Option<Duration>) -> io::Result<bool> {
    let limit = limit.map(|limit| Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() });
    match poll(&mut [PollFd::new(&stream, PollFlags::OUT)], limit.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes as much as is possible without waiting; returns the rest.
fn write_ready<'b>(stream: BorrowedFd<'_>, mut bytes: &'b [u8]) -> io::Result<&'b [u8]> {
    while !bytes.is_empty() && is_ready(stream, Some(Duration::ZERO))? {
        match rustix::io::write(stream, &bytes[..bytes.len().min(READY_BYTES)]) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

/// Writes all bytes, however long the reader makes it wait.
fn write_all(stream: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        is_ready(stream, None)?;
        bytes = write_ready(stream, bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::OwnedFd;
    use std::fs::File;
    use std::io::Read;

    fn pipe() -> (File, Console<OwnedFd>) {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        (reader.into(), Console::new(writer))
    }

    fn line(number: usize) -> Vec<u8> {
        format!("line {number} {}\n", "x".repeat(number % 9000)).into_bytes()
    }

    /// Writes lines until the queue is full; returns the accepted ones.
    fn fill(console: &Console<OwnedFd>) -> Vec<u8> {
        let mut taken = Vec::new();
        for number in 0.. {
            let line = line(number);
            match console.write(&line) {
                Ok(()) => taken.extend(line),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        taken
    }

    #[test]
    fn a_reader_that_has_stopped_holds_no_writer_and_finds_all_that_was_taken() {
        let (mut reader, console) = pipe();
        let mut taken = fill(&console);
        assert!(taken.len() > QUEUE_BYTES_MAX / 2 && taken.len() < 2 * QUEUE_BYTES_MAX, "{} bytes", taken.len());
        let mut read = vec![0; taken.len()];
        reader.read_exact(&mut read).expect("readable");
        console.flush(Duration::from_mins(1));
        console.write(b"last\n").expect("there is room again");
        taken.extend(b"last\n");
        read.resize(taken.len(), 0);
        let begin = read.len() - 5;
        reader.read_exact(&mut read[begin..]).expect("readable");
        assert!(read == taken, "lines are missing, cut or out of order");
    }

    #[test]
    fn a_flush_ends_although_nothing_is_read() {
        let (_reader, console) = pipe();
        fill(&console);
        console.flush(Duration::from_millis(1));
    }

    #[test]
    fn a_reader_that_is_gone_is_an_error_and_not_a_wait() {
        let (reader, console) = pipe();
        fill(&console);
        drop(reader);
        console.flush(Duration::from_mins(1));
        assert!(console.write(b"line\n").is_err());
    }
}
