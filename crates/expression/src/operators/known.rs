//! Expression operators of MongoDB 8.2 that are not implemented. Their error says so instead of calling them unknown.
//! Implemented operators need no entry.
//! Source: MongoDB manual 8.2, "Aggregation Operators".

/// Sorted for a binary search.
const NAMES: &[&str] = &["$encStrContains", "$encStrEndsWith", "$encStrNormalizedEq", "$encStrStartsWith"];

/// Whether the name is in the list.
pub(super) fn is_known(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_halves() {
        assert!(NAMES.is_sorted_by(|one, next| one < next));
        assert!(is_known("$encStrContains") && !is_known("$functions"));
    }
}
