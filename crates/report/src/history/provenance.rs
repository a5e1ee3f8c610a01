//! Differences in the origin of consecutive reports.

use super::Members;
use crate::result::{Report, TargetRecord};
use crate::text;

/// Change points of a metric and of the control within this many reports are one event: neither place is exact.
pub(super) const SAME_TIME_REPORTS: usize = 1;

/// Whether the previous report was made on another machine.
pub(super) fn is_other_machine(members: &Members<'_>, report: usize) -> bool {
    let machine = |index: usize| {
        let machine = &members[index].1.machine;
        (&machine.processor, machine.cores)
    };
    report > 0 && machine(report) != machine(report - 1)
}

/// Whether the generator's program changed near this report: its cost then says nothing about the machine.
pub(super) fn is_other_program(members: &Members<'_>, report: usize) -> bool {
    let begin = report.saturating_sub(SAME_TIME_REPORTS + 1);
    let end = members.len().min(report + SAME_TIME_REPORTS + 1);
    members[begin..end].windows(2).any(|pair| pair[0].1.lab_version != pair[1].1.lab_version)
}

/// The differences of a target from the previous report, one line each: `durability: w: 1 -> w: 1, j: true`.
pub(super) fn differences(members: &Members<'_>, report: usize, target: &str) -> Vec<String> {
    let Some(before) = report.checked_sub(1) else { return Vec::new() };
    let ((_, before), (_, after)) = (members[before], members[report]);
    let statements = |report: &Report| {
        let target = report.targets.iter().find(|other| other.label == target)?;
        Some(statements(report, target))
    };
    let (Some(before), Some(after)) = (statements(before), statements(after)) else { return Vec::new() };
    let differing = before.into_iter().zip(after).filter(|(before, after)| before != after);
    differing.map(|((what, before), (_, after))| format!("{what}: {before} -> {after}")).collect()
}

fn statements(report: &Report, target: &TargetRecord) -> [(&'static str, String); 7] {
    let stated = |statement: &Option<String>| statement.clone().unwrap_or_else(|| "not stated".to_owned());
    [
        ("lab", report.lab_version.clone()),
        ("kernel", report.machine.kernel.clone()),
        ("server", stated(&target.version)),
        ("engine", stated(&target.storage_engine)),
        ("transport", text::transports(target)),
        ("durability", target.durability.clone()),
        ("filesystem", stated(&target.filesystem)),
    ]
}
