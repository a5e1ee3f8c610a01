//! Keys in ascending order, for searching.
//!
//! Adjacent keys begin with common bytes. The next eight bytes of each key, its head, are kept as numbers side by side,
//! and decide nearly every step of a search. Comparing the keys themselves would take a call and two memory accesses
//! each.

use bunko_heap::prefetch_value;
use bunko_versions::head_of;

/// Maximum length of the stored common beginning.
const SHARED_BYTES_MAX: usize = 16;

/// Keys stored one after the other, in ascending order.
#[derive(Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Number of bytes in `begin`, with which all keys begin. They are stored here because each search compares them.
    shared: usize,
    begin: [u8; SHARED_BYTES_MAX],
    /// Heads of the keys, as numbers in the order of the bytes; empty for keys that are not searched often.
    heads: Vec<u64>,
    /// The first and the last head.
    ends_of_heads: (u64, u64),
    /// Length of the shortest key.
    shortest: usize,
}

/// A position in front of or after a key.
#[derive(Clone, Copy)]
pub(crate) enum Cut<'k> {
    /// Before this key and all later ones.
    Before(&'k [u8]),
    /// Behind this key and all earlier ones.
    Behind(&'k [u8]),
}

impl Cut<'_> {
    /// Whether the key stands before the cut.
    pub fn is_behind(self, key: &[u8]) -> bool {
        match self {
            Self::Before(cut) => key < cut,
            Self::Behind(cut) => key <= cut,
        }
    }
}

/// The head of a cut. Keys with smaller heads stand before the cut, keys with larger heads after it.
#[derive(Clone, Copy)]
struct Head {
    head: u64,
    /// Whether all keys with an equal head stand after the cut, so that they need not be compared.
    is_before_same: bool,
}

/// Result of comparing a cut with the beginning that all keys share.
enum Sought {
    /// The cut is before all keys.
    First,
    /// The cut is behind all keys.
    Last,
    /// The cut has this head.
    Head(Head),
    /// There are no heads.
    Unknown,
}

impl Keys {
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len() as u32);
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    pub fn get(&self, number: usize) -> &[u8] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] as usize };
        &self.bytes[start..self.ends[number] as usize]
    }

    /// Prefetches the position of a key into the processor's cache.
    pub fn prefetch(&self, number: usize) {
        if let Some(end) = self.ends.get(number) {
            prefetch_value(end);
        }
    }

    pub fn memory_bytes(&self) -> u64 {
        (self.bytes.capacity() + size_of::<u32>() * self.ends.capacity() + size_of::<u64>() * self.heads.capacity())
            as u64
    }

    /// Ends the adding of keys, and prepares for being searched often.
    pub fn complete(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
        let Some(last) = self.len().checked_sub(1) else { return };
        let common = self.get(0).iter().zip(self.get(last)).take_while(|(first, last)| first == last).count();
        self.shared = common.min(SHARED_BYTES_MAX);
        self.begin[..self.shared].copy_from_slice(&self.bytes[..self.shared]);
        self.heads = (0..=last).map(|number| head_of(&self.get(number)[self.shared..])).collect();
        self.ends_of_heads = (self.heads[0], self.heads[last]);
        self.shortest = (0..=last).map(|number| self.get(number).len()).min().unwrap_or(0);
    }

    /// The number of the first key after the cut. If heads allow a guess, first calls `show` with it, so that the
    /// caller can prefetch.
    pub fn find(&self, cut: Cut<'_>, show: impl FnOnce(usize)) -> usize {
        match self.sought(cut) {
            Sought::First => 0,
            Sought::Last => self.len(),
            Sought::Unknown => between(0, self.len(), |number| cut.is_behind(self.get(number))),
            Sought::Head(head) => self.between_heads(head, cut, show),
        }
    }

    /// As [`between`], starting where the cut would be if heads were evenly spread. For numbers and times that is
    /// close, and each probe of a search by halves would touch distant memory.
    fn between_heads(&self, head: Head, cut: Cut<'_>, show: impl FnOnce(usize)) -> usize {
        let (first, last) = self.ends_of_heads;
        if head.head <= first || head.head >= last {
            return between(0, self.len(), |number| self.is_before(number, head, cut));
        }
        let guess = guess((first, last), head.head, self.len());
        show(guess);
        about(guess, self.len(), |number| self.is_before(number, head, cut))
    }

    /// As [`Self::find`], for a cut that is likely to be near `from`.
    pub fn find_near(&self, from: usize, cut: Cut<'_>) -> usize {
        match self.sought(cut) {
            Sought::First => from,
            Sought::Last => self.len(),
            Sought::Unknown => near(from, self.len(), |number| cut.is_behind(self.get(number))),
            Sought::Head(head) => near(from, self.len(), |number| self.is_before(number, head, cut)),
        }
    }

    fn sought(&self, cut: Cut<'_>) -> Sought {
        let (Cut::Before(key) | Cut::Behind(key)) = cut;
        if self.heads.is_empty() {
            return Sought::Unknown;
        }
        let (begin, rest) = key.split_at(key.len().min(self.shared));
        match begin.cmp(&self.begin[..self.shared]) {
            std::cmp::Ordering::Less => Sought::First,
            std::cmp::Ordering::Greater => Sought::Last,
            std::cmp::Ordering::Equal => {
                // The cut's head contains all that is left of its key, so longer keys with an equal head stand after
                // it.
                let is_before_same = rest.len() <= size_of::<u64>() && self.shortest > key.len();
                Sought::Head(Head { head: head_of(rest), is_before_same })
            }
        }
    }

    #[inline]
    fn is_before(&self, number: usize, cut_at: Head, cut: Cut<'_>) -> bool {
        let own = self.heads[number];
        if own == cut_at.head && !cut_at.is_before_same { cut.is_behind(self.get(number)) } else { own < cut_at.head }
    }
}

/// Index at which `sought`, which is between `first` and `last`, would be among `count` evenly spread numbers.
pub(crate) fn guess((first, last): (u64, u64), sought: u64, count: usize) -> usize {
    let (before, all) = (sought.saturating_sub(first), last.saturating_sub(first).max(1));
    // Doubles are exact enough for a guess, and the processor divides them faster.
    let part = before as f64 / all as f64;
    ((part * count.saturating_sub(1) as f64) as usize).min(count.saturating_sub(1))
}

/// The first number for which `is_before` is false, or `count`; likely to be near `guess`, which is below `count`.
pub(crate) fn about(guess: usize, count: usize, is_before: impl Fn(usize) -> bool) -> usize {
    if is_before(guess) {
        return near(guess + 1, count, is_before);
    }
    let (mut high, mut step) = (guess, 1);
    while step <= high {
        let probed = high - step;
        if is_before(probed) {
            return between(probed + 1, high, is_before);
        }
        high = probed;
        step *= 2;
    }
    between(0, high, is_before)
}

/// As [`about`], for the numbers from `from` on, likely to be near it.
fn near(from: usize, count: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut step) = (from, 1);
    while low + step <= count {
        let probed = low + step - 1;
        if !is_before(probed) {
            return between(low, probed, is_before);
        }
        low = probed + 1;
        step *= 2;
    }
    between(low, count, is_before)
}

/// The first number from `low` on for which `is_before` is false, or `high`.
fn between(mut low: usize, mut high: usize, is_before: impl Fn(usize) -> bool) -> usize {
    while low < high {
        let middle = usize::midpoint(low, high);
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(all: &[Vec<u8>], is_complete: bool) -> Keys {
        let mut keys = Keys::default();
        for key in all {
            keys.push(key);
        }
        if is_complete {
            keys.complete();
        }
        keys
    }

    #[test]
    fn keys_are_found_from_any_place_on() {
        let short: Vec<Vec<u8>> = (0..40_u8).map(|number| vec![2 * number]).collect();
        let begun_alike: Vec<Vec<u8>> =
            short.iter().map(|key| [b"begun alike".as_slice(), key, b"end"].concat()).collect();
        let begun_long: Vec<Vec<u8>> =
            short.iter().map(|key| [b"begun alike for longer than is kept".as_slice(), key].concat()).collect();
        let beyond_heads: Vec<Vec<u8>> = [b"a", b"b"]
            .iter()
            .flat_map(|first| short.iter().map(|key| [first.as_slice(), b"nine bytes", key].concat()))
            .collect();
        let lengths: Vec<Vec<u8>> = (0..20).map(|length| vec![0; length]).collect();
        for all in [short, begun_alike, begun_long, beyond_heads, lengths, vec![b"one".to_vec()], Vec::new()] {
            let mut sought: Vec<Vec<u8>> = all.clone();
            sought.extend(all.iter().map(|key| [key.as_slice(), &[0]].concat()));
            sought.extend(all.iter().filter_map(|key| key.split_last().map(|(_, begin)| begin.to_vec())));
            sought.extend(all.iter().filter_map(|key| {
                let (last, begin) = key.split_last()?;
                Some([begin, &[last.wrapping_add(1)]].concat())
            }));
            // Shorter than all keys, and after some that begin alike.
            sought.extend(all.iter().filter_map(|key| {
                let (last, begin) = key.split_last()?.1.split_last()?;
                Some([begin, &[last.wrapping_add(1)]].concat())
            }));
            sought.extend([b"".to_vec(), b"zzz".to_vec(), vec![0xff; 30]]);
            for is_complete in [false, true] {
                let keys = keys(&all, is_complete);
                for sought in &sought {
                    let smaller = all.iter().take_while(|key| *key < sought).count();
                    let not_greater = all.iter().take_while(|key| *key <= sought).count();
                    for (cut, first) in [(Cut::Before(sought), smaller), (Cut::Behind(sought), not_greater)] {
                        assert_eq!(keys.find(cut, |_| ()), first, "{sought:?}");
                        for from in 0..=first {
                            assert_eq!(keys.find_near(from, cut), first, "{sought:?} from {from}");
                        }
                    }
                }
            }
        }
    }
}
