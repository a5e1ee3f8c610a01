//! Commands, stages and operators that clients have used since the server's start, by its own counters.
//!
//! Source: MongoDB's documentation of `serverStatus`, `metrics`: `commands`, `aggStageCounters`, `operatorCounters`.

use super::probes::{self, Family};
use super::server::GRANT;
use super::{Check, Subject, Weight};
use crate::InspectionError;
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, ValueRef, number};
use std::collections::HashSet;

const COMMAND_ADVICE: &str =
    "Find out which client sends it (currentOp, the profiler, the log), and what it needs instead.";
const NO_COUNTERS_ADVICE: &str = "Turn the profiler on for a while, or give the check a log, and check again.";
const OPERATOR_ADVICE: &str = "Find the queries that use it (the profiler, the log), and write them in another way.";

/// Shells before mongosh 2 send it when they connect, and do without the answer.
const ASKED_BY_SHELLS: &str = "getFreeMonitoringStatus";
/// Stages that servers send to each other, beside those that begin with `$_`.
const STAGES_BETWEEN_SERVERS: [&str; 2] = ["$mergeCursors", "$setVariableFromSubPipeline"];

impl Check<'_> {
    /// Rehearses each command, stage and operator whose counter is not 0.
    pub(super) fn counters(&mut self) -> Result<(), InspectionError> {
        let status = match self.source.ask("admin", &DocumentBuf::new().with("serverStatus", 1_i32))? {
            Ok(status) => status,
            Err(refusal) => {
                self.unknown(Subject::Use, "counters", &refusal, GRANT);
                return Ok(());
            }
        };
        let Some(metrics) = status.as_ref().get("metrics").and_then(ValueRef::as_document) else {
            let problem = "serverStatus shows no metrics".to_owned();
            self.found(Subject::Use, Weight::Unknown, "counters".into(), problem, NO_COUNTERS_ADVICE);
            return Ok(());
        };
        self.commands(metrics)?;
        self.operators(used(metrics.get("aggStageCounters")), Family::Stages)?;
        let Some(counters) = metrics.get("operatorCounters").and_then(ValueRef::as_document) else { return Ok(()) };
        for (section, family) in probes::SECTIONS {
            self.operators(used(counters.get(section)), *family)?;
        }
        Ok(())
    }

    fn commands(&mut self, metrics: DocumentRef<'_>) -> Result<(), InspectionError> {
        let listed = match self.rehearsal.ask("admin", &DocumentBuf::new().with("listCommands", 1_i32))? {
            Ok(listed) => listed,
            Err(refusal) => {
                return Err(InspectionError::Reply {
                    server: self.rehearsal.name.to_owned(),
                    detail: refusal.to_string(),
                });
            }
        };
        let known: HashSet<String> = known_commands(listed.as_ref());
        for (name, total) in used(metrics.get("commands")) {
            if is_between_servers(&name) || name == ASKED_BY_SHELLS {
                continue;
            }
            self.report.count(Subject::Use);
            if !known.contains(&name) {
                let problem =
                    format!("clients have sent it {total} times since the server's start, and it is not supported");
                self.found(Subject::Use, Weight::Refused, format!("command {name}"), problem, COMMAND_ADVICE);
            }
        }
        Ok(())
    }

    fn operators(&mut self, names: Vec<(String, i64)>, family: Family) -> Result<(), InspectionError> {
        for (name, total) in names {
            if name.starts_with("$_") || STAGES_BETWEEN_SERVERS.contains(&name.as_str()) {
                continue;
            }
            self.report.count(Subject::Use);
            let command = probes::probe(family, &name);
            if let Err(refusal) = self.rehearsal.ask(probes::DATABASE, &command)?
                && probes::is_unknown(&refusal)
            {
                let name = format!("{} {name}", family.noun());
                let problem = format!("used {total} times since the server's start: {refusal}");
                self.found(Subject::Use, Weight::Refused, name, problem, OPERATOR_ADVICE);
            }
        }
        Ok(())
    }
}

/// Names and aliases of all commands in a reply to `listCommands`.
fn known_commands(listed: DocumentRef<'_>) -> HashSet<String> {
    let commands = listed.get("commands").and_then(ValueRef::as_document);
    let mut names = HashSet::new();
    for command in commands.into_iter().flatten() {
        names.insert(command.name.to_owned());
        let aliases = command.value.as_document().and_then(|entry| entry.get("aliases")).and_then(ValueRef::as_array);
        names
            .extend(aliases.into_iter().flat_map(ArrayRef::iter).filter_map(|alias| alias.as_str().map(str::to_owned)));
    }
    names
}

/// Names of counters that are not 0. A counter is a number, or a document with `total` and perhaps `failed`: uses that
/// failed do not count.
fn used(section: Option<ValueRef<'_>>) -> Vec<(String, i64)> {
    let counters = section.and_then(ValueRef::as_document);
    let successes = |value: ValueRef<'_>| match value.as_document() {
        Some(counter) => {
            let read = |name| counter.get(name).and_then(number::truncate_to_i64).unwrap_or(0);
            read("total") - read("failed")
        }
        None => number::truncate_to_i64(value).unwrap_or(0),
    };
    let counters = counters.into_iter().flatten().map(|counter| (counter.name.to_owned(), successes(counter.value)));
    counters.filter(|(name, total)| *total > 0 && name != "<UNKNOWN>").collect()
}

/// Commands that members of a set or of a cluster send to each other.
fn is_between_servers(name: &str) -> bool {
    const OTHERS: [&str; 4] =
        ["getShardVersion", "mergeAuthzCollections", "internalRenameIfOptionsAndIndexesMatch", "voteCommitIndexBuild"];
    let of_sets =
        ["replSetHeartbeat", "replSetRequestVotes", "replSetUpdatePosition", "replSetStepUp", "replSetGetRBID"];
    name.starts_with('_') || OTHERS.contains(&name) || of_sets.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_numbers_or_documents() {
        let counter = |total: i64, failed: i64| DocumentBuf::new().with("total", total).with("failed", failed);
        let section = DocumentBuf::new()
            .with("<UNKNOWN>", 3_i64)
            .with("find", &counter(5, 2))
            .with("split", &counter(4, 4))
            .with("$match", 7_i64)
            .with("$merge", 0_i64);
        let expected = [("find".to_owned(), 3), ("$match".to_owned(), 7)];
        assert_eq!(used(Some((&section).into())), expected);
        assert_eq!(used(None), []);
    }

    #[test]
    fn members_commands_are_not_clients() {
        assert!(is_between_servers("_configsvrMoveChunk") && is_between_servers("replSetHeartbeat"));
        assert!(!is_between_servers("replSetGetStatus") && !is_between_servers("mapReduce"));
    }
}
