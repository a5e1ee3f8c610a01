//! Replies on their way to the client.

use super::{Ended, Session};
use crate::stream::Stream;
use crate::unread_replies::LOOK;
use bunko_command::ClientConnection;
use bunko_operation::Draw;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;

/// Bytes that a connection sends in one turn on its thread. A client that reads as fast as they come would otherwise
/// keep the thread for a whole reply of 16 MB, and with hundreds of such clients each other client would wait for them
/// all.
const TURN_BYTES: usize = 256 << 10;

impl Session {
    /// Sends replies. The bytes that the client does not take at once count as the server's memory.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        self.service.counters.note_network(0, bytes.len() as u64, 0);
        let drawn = self.client.as_mut().and_then(ClientConnection::take_reply_draw);
        if self.newcomer.is_some() {
            return self.send_to_newcomer(bytes).await;
        }
        // Most replies leave at once, without a future.
        let mut sent = self.stream.write_now(turn_of(bytes))?;
        if sent == bytes.len() && !self.stream.is_encrypted() {
            return Ok(());
        }
        while sent < bytes.len().min(TURN_BYTES) {
            let mut write = pin!(self.stream.write_some(turn_of(&bytes[sent..])));
            match poll_fn(|context| Poll::Ready(write.as_mut().poll(context))).await {
                Poll::Ready(written) => sent += written?,
                Poll::Pending => break,
            }
        }
        let is_flushed = {
            let mut flush = pin!(self.stream.flush());
            match poll_fn(|context| Poll::Ready(flush.as_mut().poll(context))).await {
                Poll::Ready(flushed) => flushed.map(|()| true)?,
                Poll::Pending => false,
            }
        };
        if sent == bytes.len() && is_flushed { Ok(()) } else { self.send_slowly(bytes, sent, drawn).await }
    }

    /// Sends the rest as the client takes it.
    async fn send_slowly(&mut self, bytes: &[u8], mut sent: usize, drawn: Option<Draw>) -> Result<(), Ended> {
        let mut unread = self.admitted.admission().unread().begin(bytes.len(), drawn);
        loop {
            let is_closed = tokio::select! {
                biased;
                written = write_or_flush(&mut self.stream, turn_of(&bytes[sent..])) => {
                    let written = written?;
                    if written == 0 {
                        return Ok(());
                    }
                    sent += written;
                    unread.note_progress(written);
                    // The task goes to the end of the queue.
                    tokio::task::yield_now().await;
                    false
                }
                () = unread.closed() => true,
                () = tokio::time::sleep(LOOK) => unread.is_to_be_closed(),
            };
            if is_closed {
                self.service.memory_counts.unread.fetch_add(1, Ordering::Relaxed);
                return Err(Ended::Unread);
            }
        }
    }

    async fn send_to_newcomer(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        let Some(newcomer) = &self.newcomer else { return Ok(()) };
        let mut write = pin!(self.stream.write_all(bytes));
        // If the client reads the reply at once, the reply counts for no memory.
        if let Poll::Ready(written) = poll_fn(|context| Poll::Ready(write.as_mut().poll(context))).await {
            return Ok(written?);
        }
        let _held = newcomer.hold_reply(bytes.len())?;
        tokio::select! {
            written = write => Ok(written?),
            () = tokio::time::sleep(newcomer.patience()) => Err(Ended::Late),
        }
    }
}

/// The part that is sent in one turn.
fn turn_of(rest: &[u8]) -> &[u8] {
    &rest[..rest.len().min(TURN_BYTES)]
}

/// Writes some of `rest`. Returns 0 once all bytes have been written and the stream has passed them on.
async fn write_or_flush(stream: &mut Stream, rest: &[u8]) -> io::Result<usize> {
    if rest.is_empty() {
        return stream.flush().await.map(|()| 0);
    }
    stream.write_some(rest).await
}
