//! The origin of a value: the path of a stage's input that a path of its output comes from.

use crate::effect::top;
use bunko_expression::{OtherFields, PathChange, PathChanges};
use bunko_matcher::planted::{Fault, active};

/// The origin of the value at a dotted path: a dotted path of the input, and what is known about both values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Both values are the same, also where they are missing, and arrays lie at the same places of both paths.
    Exact(String),
    /// As `Exact`, but the values may be equal numbers of different types, strings equal in the string order, or one
    /// may be null and the other missing.
    Equal(String),
    /// As `Exact` for values that exist. Values without fields below an array, or in the place of a document, may be
    /// missing on one side.
    Found(String),
    /// Each value, or element of an array, that exists after the stage exists in the input too.
    Implied(String),
    Unknown,
}

/// The rest of `path` below `above`, with its dot; empty if they are equal. `None` if it is not below.
pub(super) fn below<'p>(path: &'p str, above: &str) -> Option<&'p str> {
    path.strip_prefix(above).filter(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a component after the first is a number, which a filter also takes as an array's index.
pub(super) fn may_index(path: &str) -> bool {
    !active(Fault::PositionsKept)
        && path.split('.').skip(1).any(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether one of two paths leads to a copy of a field to which the other leads too. If the field is an array, a sort by
/// both paths fails, since they lead through different arrays. A sort by their origins does not.
pub(super) fn is_copy_of_other(paths: [&str; 2], origins: [&str; 2]) -> bool {
    (top(origins[0]) == top(origins[1])) != (top(paths[0]) == top(paths[1]))
}

/// Finds the origin of a path after a stage that makes these changes.
pub(super) fn of_path(path: &str, changes: &PathChanges) -> Origin {
    let mut beside = Vec::new();
    for (name, change) in &changes.named {
        if let Some(rest) = below(path, name) {
            return at_or_below(path, name, rest, change);
        }
        if below(name, path).is_some() {
            // A part of the value changes.
            return Origin::Unknown;
        }
        if top(name) == top(path) {
            beside.push(change);
        }
    }
    match changes.others {
        OtherFields::Dropped => Origin::Unknown,
        OtherFields::Kept if beside.is_empty() => Origin::Exact(path.to_owned()),
        OtherFields::Kept if may_index(path) => Origin::Unknown,
        // Removing a field keeps the documents and arrays around it.
        OtherFields::Kept if beside.iter().all(|change| **change == PathChange::Dropped) => {
            Origin::Exact(path.to_owned())
        }
        // Setting a field replaces values on the way that are not documents. They have no other fields.
        OtherFields::Kept if active(Fault::BesideNestedKept) => Origin::Exact(path.to_owned()),
        OtherFields::Kept => Origin::Found(path.to_owned()),
    }
}

/// The origin of a path that is named, or lies below the path `name`.
fn at_or_below(path: &str, name: &str, rest: &str, change: &PathChange) -> Origin {
    let is_nested = name.contains('.');
    match change {
        PathChange::Kept if !is_nested => Origin::Exact(path.to_owned()),
        // An inclusion drops values on the way that are not documents.
        PathChange::Kept if !may_index(path) => Origin::Found(path.to_owned()),
        PathChange::CopyOf(source) if !is_nested && !source.contains('.') => Origin::Exact(format!("{source}{rest}")),
        PathChange::CopyOf(source) if active(Fault::NestedCopyExact) => Origin::Exact(format!("{source}{rest}")),
        // The expression gathers the values of all documents of an array into one array.
        PathChange::CopyOf(source) if !may_index(path) => Origin::Implied(format!("{source}{rest}")),
        _ => Origin::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(others: OtherFields, named: &[(&str, PathChange)]) -> PathChanges {
        PathChanges { named: named.iter().map(|(name, change)| ((*name).to_owned(), change.clone())).collect(), others }
    }

    #[test]
    fn a_copy_of_a_top_level_field_has_its_origin_there() {
        let copies = changes(OtherFields::Dropped, &[("b", PathChange::CopyOf("k".into()))]);
        assert_eq!(of_path("b", &copies), Origin::Exact("k".into()));
        assert_eq!(of_path("b.0.c", &copies), Origin::Exact("k.0.c".into()));
        assert_eq!(of_path("bb", &copies), Origin::Unknown);
        let nested = changes(OtherFields::Kept, &[("b", PathChange::CopyOf("k.m".into()))]);
        assert_eq!(of_path("b.c", &nested), Origin::Implied("k.m.c".into()));
        assert_eq!(of_path("b.0", &nested), Origin::Unknown);
    }

    #[test]
    fn fields_beside_a_nested_change_are_found_where_they_were() {
        let set = changes(OtherFields::Kept, &[("a.b", PathChange::Computed)]);
        assert_eq!(of_path("a.c", &set), Origin::Found("a.c".into()));
        assert_eq!(of_path("a", &set), Origin::Unknown);
        assert_eq!(of_path("a.b.c", &set), Origin::Unknown);
        assert_eq!(of_path("a.0.c", &set), Origin::Unknown);
        assert_eq!(of_path("k", &set), Origin::Exact("k".into()));
        let removed = changes(OtherFields::Kept, &[("a.b", PathChange::Dropped)]);
        assert_eq!(of_path("a.c", &removed), Origin::Exact("a.c".into()));
    }
}
