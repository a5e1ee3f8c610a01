//! The server's memory and the effects of its shortage, as `serverStatus` tells it in `bunko.memory`.

use bunko_bson::Writer;
use bunko_operation::{Purpose, ServerMemory};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of messages and replies for which there was no room.
#[derive(Debug, Default)]
pub struct MemoryCounts {
    /// Messages that waited for room.
    pub waited: AtomicU64,
    /// Messages that found no room in time and were refused.
    pub refused: AtomicU64,
    /// Connections that were closed because they stopped amid a message that held room for which others waited.
    pub stalled: AtomicU64,
    /// Connections that were closed because they did not read their replies.
    pub unread: AtomicU64,
}

impl MemoryCounts {
    /// Appends the fields of `bunko.memory`.
    pub(crate) fn write(&self, memory: &ServerMemory, out: &mut Writer<'_>) {
        let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let count = |count: &AtomicU64| bytes(count.load(Ordering::Relaxed));
        out.append("limitBytes", bytes(memory.bytes_max()))
            .append("heldBytes", bytes(memory.held()))
            .append("messageBytes", bytes(memory.drawn(Purpose::Message)))
            .append("replyBytes", bytes(memory.drawn(Purpose::Reply)))
            .append("waiting", memory.waiting() as i64)
            .append("waitedMessages", count(&self.waited))
            .append("refusedMessages", count(&self.refused))
            .append("closedForSlowMessages", count(&self.stalled))
            .append("closedForUnreadReplies", count(&self.unread));
    }
}
