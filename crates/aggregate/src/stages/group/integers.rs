//! Groups whose `_id` is an integer, found without the key that finds any group.
//!
//! An integer has one place, which it shares with others, and which knows the last of them: grouping by few integers, as most
//! groups are, makes and compares no keys then. Rejected: a second table of all integers, which would have to grow with the
//! groups and be counted as memory.

/// Places; a power of two.
const PLACES: usize = 1024;
/// Groups that were found by their keys before the places are made: a few documents are not worth them.
const FOUND_BEFORE: u32 = 64;

/// The position of the last group of each place.
#[derive(Default)]
pub(super) struct Integers {
    places: Vec<Place>,
    found: u32,
}

#[derive(Clone, Copy)]
struct Place {
    integer: i64,
    position: u32,
}

const EMPTY: Place = Place { integer: 0, position: u32::MAX };

impl Integers {
    /// Where the group of an integer is, if the place knows it.
    #[inline]
    pub fn position(&self, integer: i64) -> Option<usize> {
        let place = self.places.get(integer as usize % PLACES)?;
        (place.integer == integer && place.position != EMPTY.position).then_some(place.position as usize)
    }

    /// Puts a group that was found by its key in its integer's place.
    pub fn note(&mut self, integer: i64, position: usize) {
        self.found = self.found.saturating_add(1);
        if self.found < FOUND_BEFORE {
            return;
        }
        if self.places.is_empty() {
            self.places = vec![EMPTY; PLACES];
        }
        self.places[integer as usize % PLACES] = Place { integer, position: position as u32 };
    }
}
