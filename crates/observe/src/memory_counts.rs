//! The server's memory and the effects of its shortage, as `bunko.memory` in `serverStatus`.

use bunko_bson::Writer;
use bunko_operation::{Purpose, ServerMemory};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of events that a lack of memory caused.
#[derive(Debug, Default)]
pub struct MemoryCounts {
    /// Messages that waited for memory.
    pub waited: AtomicU64,
    /// Messages that got no memory in time and were refused.
    pub refused: AtomicU64,
    /// Connections closed because they stopped in the middle of a message whose memory others waited for.
    pub stalled: AtomicU64,
    /// Connections closed because they did not read their replies.
    pub unread: AtomicU64,
}

impl MemoryCounts {
    /// Appends the fields of `bunko.memory`.
    pub fn write(&self, memory: &ServerMemory, out: &mut Writer<'_>) {
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
