//! Keys one after the other.

/// Counts up, and begins again after the last key.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequential {
    next: u64,
}

impl Sequential {
    #[inline]
    pub(super) fn next(&mut self, keys: u64) -> u64 {
        let key = if self.next < keys { self.next } else { 0 };
        self.next = key + 1;
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_each_other_and_begin_again() {
        let mut sequential = Sequential::default();
        let mut next = |keys| sequential.next(keys);
        assert_eq!([next(3), next(3), next(3), next(3), next(3)], [0, 1, 2, 0, 1]);
        assert_eq!([next(5), next(5), next(5), next(5)], [2, 3, 4, 0]);
    }
}
