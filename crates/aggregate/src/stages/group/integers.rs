//! Finds groups with an integer `_id` without building their keys.
//!
//! Each integer maps to one place, which it shares with other integers and which remembers the last group found for any
//! of them. Most `$group`s have few integers, and then build and compare no keys. Rejected: a second table of all
//! integers, which would grow with the groups and count as memory.

/// Number of places; a power of two.
const PLACES: usize = 1024;
/// Lookups by key before the places are allocated: for a few documents they do not pay off.
const FOUND_BEFORE: u32 = 64;

/// The places. Each remembers the last integer that led to it, and the position of that integer's group.
#[derive(Default)]
pub(super) struct Integers {
    places: Vec<Slot>,
    found: u32,
}

#[derive(Clone, Copy)]
struct Slot {
    integer: i64,
    position: u32,
}

const EMPTY: Slot = Slot { integer: 0, position: u32::MAX };

impl Integers {
    /// The position of an integer's group, if its place remembers it.
    #[inline]
    pub fn position(&self, integer: i64) -> Option<usize> {
        let place = self.places.get(integer as usize % PLACES)?;
        (place.integer == integer && place.position != EMPTY.position).then_some(place.position as usize)
    }

    /// Remembers a group that was found by its key in its integer's place.
    pub fn note(&mut self, integer: i64, position: usize) {
        self.found = self.found.saturating_add(1);
        if self.found < FOUND_BEFORE {
            return;
        }
        if self.places.is_empty() {
            self.places = vec![EMPTY; PLACES];
        }
        self.places[integer as usize % PLACES] = Slot { integer, position: position as u32 };
    }
}
