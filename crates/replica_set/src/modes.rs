//! Write concerns that name tags of members: `w: {tag: n}`, and modes that the configuration defines
//! (`settings.getLastErrorModes`).
//!
//! A tag's number is met by members with so many distinct values of that tag. A configuration may define a mode that its
//! members cannot meet; then each write that names it fails.
//! Source: MongoDB manual 8.2, "Self-Managed Replica Set Configuration", `settings.getLastErrorModes`.

use crate::Listed;
use crate::checks::invalid;
use crate::configuration::Member;
use crate::tag_pattern::{TagPattern, modes_of};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};

/// The mode that every set has.
const MAJORITY: &str = "majority";

/// The `w` of a write concern that asks for tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tagged {
    /// By the name of a mode.
    Mode(String),
    /// By itself.
    Tags(TagPattern),
}

impl Tagged {
    /// The `w` of a write concern; `None` unless it asks for tags.
    pub fn of(w: ValueRef<'_>) -> Option<Self> {
        match w {
            ValueRef::Document(tags) => Some(Self::Tags(TagPattern::of(tags))),
            ValueRef::String(MAJORITY) => None,
            ValueRef::String(mode) => Some(Self::Mode(mode.to_owned())),
            ValueRef::Null | ValueRef::Undefined => Some(Self::Mode(String::new())),
            _ => None,
        }
    }
}

impl Member {
    /// The pattern that a write concern asks for; `None` for a mode that the configuration does not define.
    pub fn pattern<'a>(&'a self, tagged: &'a Tagged) -> Option<&'a TagPattern> {
        match tagged {
            Tagged::Tags(pattern) => Some(pattern),
            Tagged::Mode(name) => self.modes.iter().find(|(mode, _)| mode == name).map(|(_, pattern)| pattern),
        }
    }

    /// The members that have data.
    pub fn data_members(&self) -> impl Iterator<Item = &Listed> + Clone {
        self.listed.iter().filter(|listed| !listed.arbiter)
    }

    /// Checks that the set has so many data members.
    /// # Errors
    /// `UnsatisfiableWriteConcern`.
    pub fn check_count(&self, needed: usize) -> Result<()> {
        if needed <= self.data_members().count() {
            return Ok(());
        }
        Err(Failure::new(ErrorCode::UNSATISFIABLE_WRITE_CONCERN, "Not enough data-bearing nodes"))
    }

    /// Checks that all data members together meet a write concern.
    /// # Errors
    /// `UnknownReplWriteConcern` for a mode that the configuration does not define; `UnsatisfiableWriteConcern`.
    pub fn check_tagged(&self, tagged: &Tagged) -> Result<()> {
        let Some(pattern) = self.pattern(tagged) else {
            let mode = if let Tagged::Mode(mode) = tagged { mode } else { "" };
            let message = format!("No write concern mode named '{mode}' found in replica set configuration");
            return Err(Failure::new(ErrorCode::UNKNOWN_REPL_WRITE_CONCERN, message));
        };
        if pattern.is_met_by(&self.data_members().map(|listed| &*listed.tags)) {
            return Ok(());
        }
        let message = match tagged {
            Tagged::Mode(mode) => format!("Not enough nodes match write concern mode \"{mode}\""),
            Tagged::Tags(_) => "Not enough nodes match write concern mode".to_owned(),
        };
        Err(Failure::new(ErrorCode::UNSATISFIABLE_WRITE_CONCERN, message))
    }
}

/// As [`Member::check_tagged`], for a complete configuration that may come into use.
/// # Errors
/// As there.
pub fn check_tagged(configuration: &DocumentBuf, tagged: &Tagged) -> Result<()> {
    Member::with_id(configuration.clone(), 0).check_tagged(tagged)
}

/// Checks the modes of a complete configuration.
/// # Errors
/// `InvalidReplicaSetConfig` for a name that is reserved or comes twice, for a number that is not positive, and for a
/// tag that no member has.
pub(crate) fn check_modes(configuration: DocumentRef<'_>) -> Result<()> {
    let modes = modes_of(configuration).unwrap_or(DocumentRef::EMPTY);
    let members = Listed::all(configuration).map_err(invalid)?;
    let has_tag = |name: &str| members.iter().flat_map(|member| &member.tags).any(|(tag, _)| tag == name);
    for (index, mode) in modes.iter().enumerate() {
        let place = format!("settings.getLastErrorModes.{}", mode.name);
        if mode.name.is_empty() || mode.name == MAJORITY || mode.name.starts_with('$') {
            let message =
                format!("settings.getLastErrorModes defines the mode '{}', whose name is reserved", mode.name);
            return Err(invalid(message));
        }
        if modes.iter().take(index).any(|other| other.name == mode.name) {
            return Err(invalid(format!("settings.getLastErrorModes contains multiple fields named {}", mode.name)));
        }
        let kind = mode.value.kind().alias();
        let tags = mode.value.as_document();
        let tags = tags.ok_or_else(|| invalid(format!("Expected {place} to be an Object, not {kind}")))?;
        for tag in tags {
            let place = format!("{place}.{}", tag.name);
            if !tag.value.is_number() {
                let kind = tag.value.kind().alias();
                return Err(invalid(format!("Expected {place} to be a number, not {kind}")));
            }
            let number = number::clamp_to_i64(tag.value).unwrap_or(0);
            if number <= 0 {
                return Err(invalid(format!("Value of {place} must be positive, but found {number}")));
            }
            if !has_tag(tag.name) {
                return Err(invalid(format!("No replica set tag key {} in config", tag.name)));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::shell;

    fn configuration(modes: &str) -> DocumentBuf {
        let text = format!(
            "{{_id: 'rs', members: [{{_id: 0, host: 'a:1', tags: {{dc: 'east', rack: 'r1'}}}}, \
             {{_id: 1, host: 'b:1', tags: {{dc: 'west'}}}}, {{_id: 2, host: 'c:1', tags: {{dc: 'west'}}}}, \
             {{_id: 3, host: 'd:1', arbiterOnly: true}}], settings: {{getLastErrorModes: {modes}}}}}"
        );
        shell::parse_document(&text).expect("a document")
    }

    #[test]
    fn a_pattern_counts_distinct_values() {
        let member = Member::with_id(configuration("{both: {dc: 2}, three: {dc: 3}, all: {dc: 2, rack: 1}}"), 0);
        let have = |mode: &str, members: &[usize]| {
            let tagged = Tagged::Mode(mode.to_owned());
            let pattern = member.pattern(&tagged).expect("it is defined");
            pattern.is_met_by(&members.iter().map(|index| &*member.listed[*index].tags))
        };
        assert!(have("both", &[0, 1]) && have("both", &[0, 2]) && !have("both", &[1, 2]) && !have("both", &[]));
        assert!(have("all", &[0, 1]) && !have("all", &[1, 2]) && !have("three", &[0, 1, 2]));
        let check = |w: ValueRef<'_>| member.check_tagged(&Tagged::of(w).expect("tags")).map_err(|it| it.code().0);
        assert_eq!(check(ValueRef::String("both")), Ok(()));
        assert_eq!(check(ValueRef::String("three")), Err(100));
        assert_eq!(check(ValueRef::String("four")), Err(79));
        assert_eq!(check(ValueRef::Null), Err(79));
        assert_eq!(member.data_members().map(|listed| listed.id).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!([3, 4].map(|needed| member.check_count(needed).map_err(|it| it.code().0)), [Ok(()), Err(100)]);
        let tags = DocumentBuf::new().with("dc", 2).with("colour", 1);
        assert_eq!(check(ValueRef::Document(tags.as_ref())), Err(100));
        assert_eq!(Tagged::of(ValueRef::String("majority")), None);
        assert_eq!(Tagged::of(ValueRef::Int32(2)), None);
    }

    #[test]
    fn modes_are_checked() {
        for (modes, words) in [
            ("{m: {dc: 4}}", ""),
            ("{m: {}}", ""),
            ("{majority: {dc: 1}}", "the mode 'majority', whose name is reserved"),
            ("{$own: {dc: 1}}", "the mode '$own'"),
            ("{m: 1}", "Expected settings.getLastErrorModes.m to be an Object, not int"),
            ("{m: {dc: 'two'}}", "Expected settings.getLastErrorModes.m.dc to be a number, not string"),
            ("{m: {dc: 0}}", "Value of settings.getLastErrorModes.m.dc must be positive, but found 0"),
            ("{m: {disk: 1}}", "No replica set tag key disk in config"),
        ] {
            match check_modes(configuration(modes).as_ref()) {
                Ok(()) => assert_eq!(words, "", "{modes}"),
                Err(failure) => {
                    assert_eq!(failure.code(), ErrorCode::INVALID_REPLICA_SET_CONFIG);
                    assert!(!words.is_empty() && failure.message().contains(words), "{modes}: {}", failure.message());
                }
            }
        }
        let twice = [("m", 1), ("m", 2)].iter().fold(DocumentBuf::new(), |modes, (name, number)| {
            modes.with(name, &DocumentBuf::new().with("dc", *number))
        });
        let settings = DocumentBuf::new().with("getLastErrorModes", &twice);
        let whole = crate::configuration::replaced(
            configuration("{}").as_ref(),
            &[("settings", ValueRef::Document(settings.as_ref()))],
        );
        let refused = check_modes(whole.as_ref()).expect_err("twice");
        assert!(refused.message().contains("multiple fields named m"), "{}", refused.message());
    }
}
