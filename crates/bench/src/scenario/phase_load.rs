//! A phase's load: the phase's own settings, or else the scenario's.
//!
//! **Invariant:** settings of a load are read only through this module, which notes each reading. So settings that no
//! phase reads are known, and are refused by name instead of being ignored.

use super::{ArrivalKind, LoadSettings, OneOrMany, PlacementSetting, Rate, Span};
use crate::operation::SessionUse;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Paths of settings that a run reads, in the form of `--set`. A table's path stands for all settings in it.
#[derive(Debug, Default)]
pub(crate) struct ReadSettings(RefCell<BTreeSet<String>>);

impl ReadSettings {
    /// Notes that a setting, or everything in a table of settings, is read.
    pub fn note(&self, path: String) {
        self.0.borrow_mut().insert(path);
    }

    /// Whether a setting is read: itself, as part of a table that is read, or as a table of which a part is read.
    pub fn has(&self, path: &str) -> bool {
        let is_below = |path: &str, table: &str| path.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'));
        self.0.borrow().iter().any(|read| read == path || is_below(path, read) || is_below(read, path))
    }

    /// Adds the settings that another variant reads.
    pub fn add(&self, other: &Self) {
        self.0.borrow_mut().extend(other.0.borrow().iter().cloned());
    }
}

/// The settings that end a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct EndSettings {
    pub duration: Option<Span>,
    pub requests: Option<u64>,
}

/// A phase's load settings.
pub(crate) struct PhaseLoad<'s> {
    phase: &'s str,
    own: &'s LoadSettings,
    common: &'s LoadSettings,
    read: &'s ReadSettings,
}

/// Makes one method for each setting, which reads the setting and notes the reading.
macro_rules! settings {
    ($($name:ident: $value:ty;)*) => {
        impl PhaseLoad<'_> {
            $(pub fn $name(&self) -> Option<$value> {
                self.take(stringify!($name), |load| load.$name.as_ref())
            })*
        }

        impl LoadSettings {
            /// The names of the settings that are set.
            pub fn names(&self) -> Vec<String> {
                let all = [$((stringify!($name), self.$name.is_some())),*];
                all.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name.replace('_', "-")).collect()
            }
        }
    };
}

settings! {
    connections: OneOrMany<usize>;
    in_flight: usize;
    threads: usize;
    placement: PlacementSetting;
    rate: Rate;
    arrival: ArrivalKind;
    warm_up: Span;
    duration: Span;
    requests: u64;
    write_concern: String;
    sessions: SessionUse;
    stall_timeout: Span;
}

impl<'s> PhaseLoad<'s> {
    pub fn new(phase: &'s str, own: &'s LoadSettings, common: &'s LoadSettings, read: &'s ReadSettings) -> Self {
        Self { phase, own, common, read }
    }

    fn take<T: Clone>(&self, name: &str, of: impl Fn(&LoadSettings) -> Option<&T>) -> Option<T> {
        let name = name.replace('_', "-");
        let own = of(self.own);
        if own.is_some() {
            self.read.note(format!("phase.{}.load.{name}", self.phase));
            return own.cloned();
        }
        let common = of(self.common)?;
        self.read.note(format!("load.{name}"));
        Some(common.clone())
    }

    /// The phase's own end, if it has one.
    pub fn own_end(&self) -> EndSettings {
        let read = |name: &str, is_set: bool| {
            if is_set {
                self.read.note(format!("phase.{}.load.{name}", self.phase));
            }
        };
        let end = EndSettings { duration: self.own.duration, requests: self.own.requests };
        read("duration", end.duration.is_some());
        read("requests", end.requests.is_some());
        end
    }

    /// The scenario's end, for a phase without its own.
    pub fn common_end(&self) -> EndSettings {
        EndSettings { duration: self.duration(), requests: self.requests() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phases_own_setting_comes_before_the_scenarios_and_what_is_read_is_noted() {
        let own = LoadSettings { in_flight: Some(4), ..LoadSettings::default() };
        let common =
            LoadSettings { in_flight: Some(1), threads: Some(2), requests: Some(9), ..LoadSettings::default() };
        let read = ReadSettings::default();
        let load = PhaseLoad::new("find", &own, &common, &read);
        assert_eq!((load.in_flight(), load.threads(), load.rate()), (Some(4), Some(2), None));
        assert!(read.has("phase.find.load.in-flight") && read.has("load.threads"));
        assert!(!read.has("load.in-flight") && !read.has("load.requests") && !read.has("load.rate"));
        assert!(load.own_end() == EndSettings::default() && !read.has("load.requests"));
        assert_eq!(load.common_end(), EndSettings { duration: None, requests: Some(9) });
        assert!(read.has("load.requests"));
        assert_eq!(common.names(), ["in-flight", "threads", "requests"]);
    }

    #[test]
    fn a_table_is_read_with_its_settings_and_by_them() {
        let read = ReadSettings::default();
        read.note("phase.find.operation".to_owned());
        read.note("seed".to_owned());
        assert!(read.has("phase.find.operation.find.keys") && read.has("phase.find.operation") && read.has("phase"));
        assert!(!read.has("phase.find.operations") && !read.has("phase.find.cache") && !read.has("seeds"));
    }
}
