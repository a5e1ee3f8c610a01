//! Numbers of distinct values of tags, and the modes by which a configuration names them.

use bunko_bson::{DocumentRef, ValueRef, number};

/// How many distinct values of some tags the members must have that have a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagPattern(Vec<(String, usize)>);

impl TagPattern {
    /// The pattern of a document of tags and numbers. Values that are not numbers are left out.
    pub fn of(tags: DocumentRef<'_>) -> Self {
        let number = |value| number::clamp_to_i64(value).map(|number| usize::try_from(number).unwrap_or(0));
        Self(tags.iter().filter_map(|tag| Some((tag.name.to_owned(), number(tag.value)?))).collect())
    }

    /// Whether members with these tags meet the pattern.
    pub fn is_met_by<'t>(&self, members: &(impl Iterator<Item = &'t [(String, String)]> + Clone)) -> bool {
        self.0.iter().all(|(wanted, number)| {
            let mut values: Vec<&str> = Vec::new();
            for (_, value) in members.clone().flatten().filter(|(name, _)| name == wanted) {
                if !values.contains(&value.as_str()) {
                    values.push(value);
                }
            }
            values.len() >= *number
        })
    }
}

/// The modes that a complete configuration defines.
pub(crate) fn defined(configuration: DocumentRef<'_>) -> Vec<(String, TagPattern)> {
    let modes = modes_of(configuration).unwrap_or(DocumentRef::EMPTY);
    let pattern = |value: ValueRef<'_>| value.as_document().map(TagPattern::of);
    modes.iter().filter_map(|mode| Some((mode.name.to_owned(), pattern(mode.value)?))).collect()
}

pub(crate) fn modes_of(configuration: DocumentRef<'_>) -> Option<DocumentRef<'_>> {
    configuration.get("settings")?.as_document()?.get("getLastErrorModes")?.as_document()
}
