//! Log verbosity by component: `logLevel` and `logComponentVerbosity`. From verbosity 1 of `command` on, every command
//! is logged instead of only slow ones. Nothing else in this server is logged at several levels.

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_errors::{Failure, Result};
use bunko_request::secret_names::shown_text;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The components, each after the component that contains it.
/// Source: MongoDB manual, "Log Messages", "Components".
const COMPONENTS: &[&str] = &[
    "accessControl",
    "command",
    "control",
    "executor",
    "geo",
    "globalIndex",
    "index",
    "network",
    "network.asio",
    "network.bridge",
    "network.connectionPool",
    "processHealth",
    "query",
    "query.optimizer",
    "query.plan",
    "query.rejected",
    "replication",
    "replication.election",
    "replication.heartbeats",
    "replication.initialSync",
    "replication.rollback",
    "sharding",
    "sharding.rangeDeleter",
    "sharding.shardingCatalogRefresh",
    "sharding.migration",
    "sharding.reshard",
    "storage",
    "storage.recovery",
    "storage.journal",
    "storage.wt",
    "write",
    "ftdc",
    "tracking",
    "transaction",
    "tenantMigration",
    "test",
    "queryStats",
];

/// Stands for no level of its own: the component has the level of the component that contains it.
const INHERITED: i32 = -1;

/// The levels.
#[derive(Debug, Default)]
pub struct LogVerbosity {
    level: AtomicI32,
    /// Levels of components that have their own.
    own: Mutex<BTreeMap<&'static str, i32>>,
    /// Whether every command is logged; kept as a flag, because each command reads it.
    logs_all_commands: AtomicBool,
}

impl LogVerbosity {
    /// Whether every command is logged.
    pub fn logs_all_commands(&self) -> bool {
        self.logs_all_commands.load(Ordering::Relaxed)
    }

    /// The level of components without their own.
    pub fn level(&self) -> i32 {
        self.level.load(Ordering::Relaxed)
    }

    /// Sets [`Self::level`].
    pub fn set_level(&self, level: i32) {
        self.level.store(level, Ordering::Relaxed);
        self.note(&self.own.lock());
    }

    fn note(&self, own: &BTreeMap<&'static str, i32>) {
        let level = own.get("command").copied().unwrap_or_else(|| self.level());
        self.logs_all_commands.store(level > 0, Ordering::Relaxed);
    }

    /// All levels, as `{verbosity, component: {verbosity, ...}, ...}`.
    pub fn read(&self) -> DocumentBuf {
        let own = self.own.lock();
        let of = |name: &str| own.get(name).copied().unwrap_or(INHERITED);
        let mut all = DocumentBuf::new().with("verbosity", self.level());
        for name in COMPONENTS.iter().filter(|name| !name.contains('.')) {
            let mut component = DocumentBuf::new().with("verbosity", of(name));
            for part in COMPONENTS {
                if let Some(short) = part.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')) {
                    component.append(short, &DocumentBuf::new().with("verbosity", of(part)));
                }
            }
            all.append(name, &component);
        }
        all
    }

    /// Sets the levels in a document. If one is invalid, sets none.
    /// # Errors
    /// `BadValue` for an unknown component and for an invalid level.
    pub fn write(&self, value: ValueRef<'_>) -> Result<()> {
        let Some(document) = value.as_document() else {
            return Err(invalid("logComponentVerbosity", value, "is not a document"));
        };
        let mut changes = Vec::new();
        collect(document, "", &mut changes)?;
        let mut own = self.own.lock();
        for (name, level) in changes {
            match COMPONENTS.iter().find(|component| **component == name) {
                None if level >= 0 => self.level.store(level, Ordering::Relaxed),
                None => self.level.store(0, Ordering::Relaxed),
                Some(component) if level < 0 => drop(own.remove(component)),
                Some(component) => drop(own.insert(component, level)),
            }
        }
        self.note(&own);
        Ok(())
    }
}

/// Collects the levels in `document`, whose components are inside `whole`. The level of all components has an empty
/// name.
fn collect(document: DocumentRef<'_>, whole: &str, changes: &mut Vec<(String, i32)>) -> Result<()> {
    for element in document {
        if element.name == "verbosity" {
            changes.push((whole.to_owned(), level(element.name, element.value)?));
            continue;
        }
        let name = if whole.is_empty() { element.name.to_owned() } else { format!("{whole}.{}", element.name) };
        if !COMPONENTS.contains(&name.as_str()) {
            return Err(Failure::bad_value(format!("Invalid component name logComponentVerbosity.{name}")));
        }
        match element.value.as_document() {
            Some(inner) => collect(inner, &name, changes)?,
            None => changes.push((name, level(element.name, element.value)?)),
        }
    }
    Ok(())
}

fn level(name: &str, value: ValueRef<'_>) -> Result<i32> {
    let level = number::clamp_to_i64(value).ok_or_else(|| invalid(name, value, "is not a number"))?;
    // As in MongoDB, higher levels count as the highest.
    if level < i64::from(INHERITED) { Err(invalid(name, value, "is not a level")) } else { Ok(level.min(5) as i32) }
}

fn invalid(name: &str, value: ValueRef<'_>, why: &str) -> Failure {
    Failure::bad_value(format!("Invalid verbosity of {name}: {} {why}", shown_text(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_as_verbose_as_all_unless_it_says_otherwise() {
        let verbosity = LogVerbosity::default();
        let set = |document: DocumentBuf| verbosity.write(ValueRef::Document(document.as_ref()));
        assert!(!verbosity.logs_all_commands());
        verbosity.set_level(1);
        assert!(verbosity.logs_all_commands());
        set(DocumentBuf::new().with("command", 0)).expect("a component");
        assert!(!verbosity.logs_all_commands());
        let wrong = DocumentBuf::new().with("command", 3).with("nonsense", 1);
        assert!(set(wrong).is_err() && !verbosity.logs_all_commands(), "all or none");
        set(DocumentBuf::new().with("command", &DocumentBuf::new().with("verbosity", -1))).expect("a component");
        assert!(verbosity.logs_all_commands());
    }
}
