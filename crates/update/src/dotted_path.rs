//! Dotted paths of updates: `a.0.b`, `a.$.b`, `a.$[].b`, `a.$[item].b`.

use crate::array_filters::ArrayFilters;
use bunko_errors::{ErrorCode, Failure, Result};
use std::cmp::Ordering;
use std::fmt;

/// Maximum number of path components: no document is nested deeper.
/// Source: MongoDB limits, "Nested Depth for BSON Documents".
const PARTS_MAX: usize = 200;

/// One component of a path.
#[derive(Clone, Debug)]
pub(crate) enum Component<'t> {
    /// A field name, or an index if the value is an array.
    Field(&'t str),
    /// `$`: the element that the query matched.
    Positional,
    /// `$[]`: every element.
    EveryElement,
    /// `$[identifier]`: the elements that an array filter matches; the value is the filter's position.
    Filtered(usize),
}

/// A path, parsed and as written.
#[derive(Clone, Debug)]
pub(crate) struct DottedPath<'t> {
    pub text: &'t str,
    pub components: Vec<Component<'t>>,
}

impl<'t> DottedPath<'t> {
    /// # Errors
    /// `EmptyFieldName` for an empty path or component; `BadValue` for a positional component that is first or occurs
    /// twice, and for an identifier without an array filter; 5729100 for more than 200 components.
    pub fn parse(text: &'t str, filters: &mut ArrayFilters) -> Result<Self> {
        if text.is_empty() {
            return Err(Failure::new(ErrorCode::EMPTY_FIELD_NAME, "An empty update path is not valid."));
        }
        let mut components = Vec::with_capacity(2);
        let mut positional_count = 0;
        for part in text.split('.') {
            let component = parse_component(part, text, filters)?;
            positional_count += usize::from(matches!(component, Component::Positional));
            if components.is_empty() {
                check_first(&component, text)?;
            }
            if components.len() == PARTS_MAX {
                return Err(Failure::new(ErrorCode(5_729_100), "FieldPath is too long"));
            }
            components.push(component);
        }
        if positional_count > 1 {
            let message = format!("Too many positional (i.e. '$') elements found in path '{text}'");
            return Err(Failure::bad_value(message));
        }
        Ok(Self { text, components })
    }

    /// The first `count` components.
    pub fn prefix(&self, count: usize) -> &'t str {
        match self.text.match_indices('.').nth(count.saturating_sub(1)) {
            Some((end, _)) => &self.text[..end],
            None => self.text,
        }
    }

    /// Whether a component is resolved only when the update is applied.
    pub fn is_dynamic(&self) -> bool {
        self.components.iter().any(|component| !matches!(component, Component::Field(_)))
    }
}

fn parse_component<'t>(part: &'t str, path: &str, filters: &mut ArrayFilters) -> Result<Component<'t>> {
    if part.is_empty() {
        let message = format!("The update path '{path}' contains an empty field name, which is not allowed.");
        return Err(Failure::new(ErrorCode::EMPTY_FIELD_NAME, message));
    }
    if part == "$" {
        return Ok(Component::Positional);
    }
    match part.strip_prefix("$[").and_then(|rest| rest.strip_suffix(']')) {
        None => Ok(Component::Field(part)),
        Some("") => Ok(Component::EveryElement),
        Some(identifier) => filters.find(identifier).map(Component::Filtered).ok_or_else(|| {
            Failure::bad_value(format!("No array filter found for identifier '{identifier}' in path '{path}'"))
        }),
    }
}

fn check_first(component: &Component<'_>, path: &str) -> Result<()> {
    let what = match component {
        Component::Field(_) => return Ok(()),
        Component::Positional => "positional (i.e. '$')",
        Component::EveryElement | Component::Filtered(_) => "array filter identifier (i.e. '$[<id>]')",
    };
    Err(Failure::bad_value(format!("Cannot have {what} element in the first position in path '{path}'")))
}

/// Whether `path` is below `ancestor`.
pub(crate) fn is_below(path: &str, ancestor: &str) -> bool {
    path.strip_prefix(ancestor).is_some_and(|rest| rest.starts_with('.'))
}

/// Whether a name may be an array index: digits only, without a leading zero.
pub(crate) fn is_numeric(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) && (name == "0" || !name.starts_with('0'))
}

/// The array index that a name spells, if it does.
pub(crate) fn as_index(name: &str) -> Option<usize> {
    if is_numeric(name) { name.parse().ok() } else { None }
}

/// The order of new fields in one update: numbers first, by value, then names by bytes.
/// Source: MongoDB manual, "Update Operators Behavior".
pub(crate) fn compare_names(a: &str, b: &str) -> Ordering {
    match (is_numeric(a), is_numeric(b)) {
        (true, true) => (a.len(), a).cmp(&(b.len(), b)),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.cmp(b),
    }
}

/// The path from the document's root to the current value, kept on the stack during the walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trail<'t> {
    parent: Option<&'t Trail<'t>>,
    name: &'t str,
}

impl<'t> Trail<'t> {
    pub fn below(parent: Option<&'t Trail<'t>>, name: &'t str) -> Self {
        Self { parent, name }
    }

    /// The last component.
    pub fn name(&self) -> &'t str {
        self.name
    }

    /// The first component: a top-level field name.
    pub fn root_name(&self) -> &'t str {
        self.name_at(0)
    }

    /// The component at a position, counted from 0; beyond the end, the last one.
    pub fn name_at(&self, position: usize) -> &'t str {
        let mut trail = self;
        for _ in position + 1..self.depth() {
            trail = trail.parent.unwrap_or(trail);
        }
        trail.name
    }

    /// Number of components.
    pub fn depth(&self) -> usize {
        1 + self.parent.map_or(0, Trail::depth)
    }
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}.")?;
        }
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sort_by_value_and_before_names() {
        let mut names = ["b", "10", "a", "9", "00", "0", "a10", "a9"];
        names.sort_by(|a, b| compare_names(a, b));
        assert_eq!(names, ["0", "9", "10", "00", "a", "a10", "a9", "b"]);
    }

    #[test]
    fn prefixes_count_parts() {
        let path = DottedPath::parse("a.bc.$.d", &mut ArrayFilters::default()).expect("valid");
        assert_eq!((path.prefix(1), path.prefix(3), path.prefix(4)), ("a", "a.bc.$", "a.bc.$.d"));
        assert!(path.is_dynamic());
    }

    #[test]
    fn a_path_has_two_hundred_parts() {
        let parse = |count: usize| {
            let text = vec!["a"; count].join(".");
            DottedPath::parse(&text, &mut ArrayFilters::default()).map(|path| path.components.len())
        };
        assert_eq!(parse(PARTS_MAX).expect("just fits"), PARTS_MAX);
        let failure = parse(PARTS_MAX + 1).expect_err("one more");
        assert_eq!((failure.code(), failure.message()), (ErrorCode(5_729_100), "FieldPath is too long"));
    }

    #[test]
    fn indexes_are_canonical_numbers() {
        assert_eq!((as_index("0"), as_index("17"), as_index("017"), as_index("-1")), (Some(0), Some(17), None, None));
        assert_eq!(as_index("99999999999999999999999"), None);
    }
}
