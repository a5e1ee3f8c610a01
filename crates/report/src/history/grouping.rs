//! Which reports belong together.

use super::{LeftOut, REPORTS_MIN};
use crate::compare::{Difference, differences};
use crate::result::{Report, ScenarioRecord, WorkerShare};
use std::path::{Path, PathBuf};

/// Reports of the same work.
pub(super) struct Group<'a> {
    /// Oldest first.
    pub(super) members: Vec<&'a (PathBuf, Report)>,
    /// See [`super::ScenarioHistory::settings`].
    pub(super) settings: Vec<String>,
}

/// The groups that are large enough, and all other reports. The group with the most reports comes first among those
/// with one name.
pub(super) fn by_work(reports: &[(PathBuf, Report)]) -> (Vec<Group<'_>>, Vec<LeftOut>) {
    let mut in_time: Vec<_> = reports.iter().collect();
    in_time.sort_by_key(|(file, report)| (report.started_at_ms, file));
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut left_out = Vec::new();
    for member in in_time {
        if let Some(WorkerShare::Share { index, count, .. }) = member.1.worker {
            let reason = format!("worker {index} of {count}: 'bunko bench merge' makes one report of all");
            left_out.push(LeftOut::new(&member.0, reason));
            continue;
        }
        let Some(group) = groups.iter_mut().find(|group| group.takes(&member.1.scenario)) else {
            groups.push(Group { members: vec![member], settings: Vec::new() });
            continue;
        };
        match group.members.iter().find(|other| is_copy(&other.1, &member.1)) {
            Some((original, _)) => {
                left_out.push(LeftOut::new(&member.0, format!("a copy of {}", original.display())));
            }
            None => group.members.push(member),
        }
    }
    // Groups are in the order of their first reports. The sort is stable, so equally large groups keep it.
    groups.sort_by_key(|group| std::cmp::Reverse(group.members.len()));
    let (mut large, small): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| group.members.len() >= REPORTS_MIN);
    left_out.extend(small.iter().flat_map(|group| group.leave_out(&large)));
    name_apart(&mut large);
    (large, left_out)
}

/// The same run, found twice.
fn is_copy(one: &Report, other: &Report) -> bool {
    (one.started_at_ms, one.ended_at_ms, &one.scenario.hash, &one.machine)
        == (other.started_at_ms, other.ended_at_ms, &other.scenario.hash, &other.machine)
}

/// Adds to the names of equally named groups, after the first, how they differ from it.
fn name_apart(groups: &mut [Group<'_>]) {
    for index in 1..groups.len() {
        let (before, rest) = groups.split_at_mut(index);
        let group = &mut rest[0];
        if let Some(first) = before.iter().find(|other| other.scenario().name == group.scenario().name) {
            group.settings = group.settings_unlike(first);
        }
    }
}

impl Group<'_> {
    /// The scenario of the newest report.
    fn scenario(&self) -> &ScenarioRecord {
        &self.members[self.members.len() - 1].1.scenario
    }

    fn takes(&self, scenario: &ScenarioRecord) -> bool {
        let same_work = |other: &ScenarioRecord| {
            differences(&other.resolved, &scenario.resolved).is_ok_and(|differences| differences.is_empty())
        };
        let ours = self.scenario();
        ours.name == scenario.name && (ours.hash == scenario.hash || same_work(ours))
    }

    /// `dataset.documents = 1000`, for each setting that differs.
    fn settings_unlike(&self, other: &Group<'_>) -> Vec<String> {
        match differences(&other.scenario().resolved, &self.scenario().resolved) {
            Ok(differences) => {
                let setting = |Difference { setting, b, .. }: &Difference| format!("{setting} = {b}");
                differences.iter().map(setting).collect()
            }
            Err(_) => vec!["its scenario cannot be read".to_owned()],
        }
    }

    /// Says of every member why it is in no history.
    fn leave_out(&self, histories: &[Group<'_>]) -> Vec<LeftOut> {
        let name = &self.scenario().name;
        let too_few = format!("{} of {REPORTS_MIN} reports that a history of {name} needs", self.members.len());
        let reason = match histories.iter().find(|other| other.scenario().name == *name) {
            Some(history) => {
                format!("other work than the history of {name}: {}", self.settings_unlike(history).join(", "))
            }
            None => too_few,
        };
        self.members.iter().map(|(file, _)| LeftOut::new(file, reason.clone())).collect()
    }
}

impl LeftOut {
    /// A file and the reason in words.
    pub fn new(file: &Path, reason: String) -> Self {
        Self { file: file.display().to_string(), reason }
    }
}
