//! Which paths an update may change, for the caller that maintains indexes.

use crate::dotted_path::is_numeric;

/// The paths that an update may change.
#[derive(Clone, Copy, Debug)]
pub enum TouchedPaths<'u> {
    /// Any of them: the update replaces the document.
    All,
    /// These and what lies below them, as the update spells them (`a.$[].b`).
    Paths(&'u [String]),
}

impl TouchedPaths<'_> {
    /// Whether the update may change what an index on `path` holds. Errs on the side of yes: array positions, however
    /// they are spelled, count for nothing.
    pub fn may_affect(&self, path: &str) -> bool {
        match self {
            Self::All => true,
            Self::Paths(touched) => touched.iter().any(|touched| overlap(touched, path)),
        }
    }
}

/// Whether one path is the other or leads to it.
fn overlap(touched: &str, indexed: &str) -> bool {
    let mut indexed = names(indexed);
    names(touched).all(|name| indexed.next().is_none_or(|other| other == name))
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').filter(|part| !is_numeric(part) && *part != "$" && !part.starts_with("$["))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_affects_itself_its_parents_and_what_is_below() {
        let touched = ["a.$[].b".to_owned()];
        let paths = TouchedPaths::Paths(&touched);
        assert!(["a", "a.b", "a.b.c", "a.0.b"].into_iter().all(|path| paths.may_affect(path)));
        assert!(!["b", "a.c", "ab"].into_iter().any(|path| paths.may_affect(path)));
        assert!(TouchedPaths::All.may_affect("anything"));
    }
}
