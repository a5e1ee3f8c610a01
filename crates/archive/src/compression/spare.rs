//! Keeps used buffers for use again.

/// Maximum number of bytes of idle buffers.
const SPARE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// A buffer up to this size serves for any smaller length.
const SMALL_BYTES: usize = 256 * 1024;

/// Idle buffers; they keep their old contents.
#[derive(Default)]
pub(super) struct Spare {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl Spare {
    /// The largest used buffer of at most twice that size, or [`SMALL_BYTES`], or a new one without capacity. Buffers
    /// in flight are counted by their contents, so their capacity must not be much larger.
    pub(super) fn take(&mut self, bytes: usize) -> Vec<u8> {
        let most = bytes.saturating_mul(2).max(SMALL_BYTES);
        let fitting = self.buffers.iter().enumerate().filter(|(_, buffer)| buffer.capacity() <= most);
        let Some((position, _)) = fitting.max_by_key(|(_, buffer)| buffer.capacity()) else { return Vec::new() };
        let buffer = self.buffers.swap_remove(position);
        self.bytes -= buffer.capacity();
        buffer
    }

    /// Keeps a buffer, and frees other ones beyond the limit.
    pub(super) fn put(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() == 0 || buffer.capacity() > SPARE_BYTES_MAX {
            return;
        }
        while self.bytes + buffer.capacity() > SPARE_BYTES_MAX {
            self.bytes -= self.buffers.swap_remove(0).capacity();
        }
        self.bytes += buffer.capacity();
        self.buffers.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_buffers_fit_and_idle_buffers_are_bounded() {
        let mut spare = Spare::default();
        for bytes in [1 << 20, 4 << 20, 8 << 20, 32 << 20] {
            spare.put(Vec::with_capacity(bytes));
        }
        assert_eq!(spare.bytes, 13 << 20);
        assert_eq!(spare.take(3 << 20).capacity(), 4 << 20);
        assert_eq!(spare.take(1 << 19).capacity(), 1 << 20);
        assert_eq!(spare.take(1 << 19).capacity(), 0);
        for _ in 0..10 {
            spare.put(Vec::with_capacity(3 << 20));
            assert!(spare.bytes <= SPARE_BYTES_MAX);
        }
        assert_eq!(spare.buffers.iter().map(Vec::capacity).sum::<usize>(), spare.bytes);
    }
}
