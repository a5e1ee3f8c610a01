//! Which connection makes the next request.

const WORD_BITS: usize = u64::BITS as usize;

/// The requests that may be made now on each of a thread's connections.
///
/// The connections take turns. If they were used in the order in which they became free, connections that a stall held
/// up together would stay together, and so would their requests.
pub(super) struct Slots {
    free: Vec<u32>,
    /// A bit for each connection that has a free slot.
    any: Vec<u64>,
    /// The connection whose turn is next.
    next: usize,
}

impl Slots {
    /// Gives each connection `in_flight` slots.
    pub fn new(connections: usize, in_flight: usize) -> Self {
        let words = connections.div_ceil(WORD_BITS);
        let mut slots = Self { free: vec![0; connections], any: vec![0; words], next: 0 };
        for index in 0..connections {
            slots.give(index, in_flight);
        }
        slots
    }

    pub fn is_empty(&self) -> bool {
        self.any.iter().all(|&word| word == 0)
    }

    pub fn give(&mut self, index: usize, count: usize) {
        if count > 0 {
            self.free[index] += count as u32;
            self.any[index / WORD_BITS] |= 1 << (index % WORD_BITS);
        }
    }

    /// Takes a slot of the first connection that has one, starting at the connection whose turn it is.
    pub fn take(&mut self) -> Option<usize> {
        let first = self.next / WORD_BITS;
        let behind = self.any[first] >> (self.next % WORD_BITS);
        let index = if behind != 0 {
            self.next + behind.trailing_zeros() as usize
        } else {
            // Searches the other words in a circle, and last the first word again for connections before the turn.
            let words = self.any.len();
            let word = (1..=words).map(|step| (first + step) % words).find(|&word| self.any[word] != 0)?;
            word * WORD_BITS + self.any[word].trailing_zeros() as usize
        };
        self.free[index] -= 1;
        if self.free[index] == 0 {
            self.any[index / WORD_BITS] &= !(1 << (index % WORD_BITS));
        }
        self.next = (index + 1) % self.free.len();
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_take_turns_whatever_the_order_of_replies() {
        for connections in [1, 3, 64, 65, 200] {
            let mut slots = Slots::new(connections, 2);
            let taken: Vec<_> = std::iter::from_fn(|| slots.take()).collect();
            let turns: Vec<_> = (0..connections).chain(0..connections).collect();
            assert_eq!(taken, turns);
            assert!(slots.is_empty());
            for index in (0..connections).rev() {
                slots.give(index, 1);
            }
            let taken: Vec<_> = std::iter::from_fn(|| slots.take()).collect();
            assert_eq!(taken, turns[..connections]);
        }
    }

    #[test]
    fn a_connection_without_a_slot_is_passed_over() {
        let mut slots = Slots::new(130, 0);
        assert_eq!(slots.take(), None);
        for index in [129, 64, 0] {
            slots.give(index, 2);
        }
        let taken: Vec<_> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!(taken, [0, 64, 129, 0, 64, 129]);
        slots.give(7, 1);
        slots.give(5, 0);
        assert_eq!((slots.take(), slots.take()), (Some(7), None));
        slots.give(5, 1);
        assert_eq!(slots.take(), Some(5), "before the one whose turn is next, in the same word");
    }
}
