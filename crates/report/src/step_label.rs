//! Names of steps.

use crate::result::{Report, Step};

/// The full name of a step: `lsm: bytes 400, insert, 100 x 1`.
pub(crate) fn full(report: &Report, step: &Step) -> String {
    match target(report, step) {
        Some(target) => format!("{target}: {}", step.label()),
        None => step.label(),
    }
}

/// The group of a step in long lists: `lsm: insert`.
pub(crate) fn group(report: &Report, step: &Step) -> String {
    target(report, step).map_or_else(|| step.phase.clone(), |target| format!("{target}: {}", step.phase))
}

/// The target's label if there are several targets.
pub(crate) fn target<'a>(report: &'a Report, step: &Step) -> Option<&'a str> {
    (report.targets.len() > 1).then(|| target_label(report, step.target))
}

/// The label of a target, by index.
pub(crate) fn target_label(report: &Report, target: usize) -> &str {
    report.targets.get(target).map_or("?", |target| target.label.as_str())
}

/// The settings of all variants, in order of appearance.
pub(crate) fn settings(report: &Report) -> Vec<&str> {
    let mut settings = Vec::new();
    for (setting, _) in report.steps.iter().flat_map(|step| &step.variant) {
        if !settings.contains(&setting.as_str()) {
            settings.push(setting.as_str());
        }
    }
    settings
}

/// The value of a setting in the step's variant; `None` if the variant does not vary the setting.
pub(crate) fn setting<'a>(step: &'a Step, setting: &str) -> Option<&'a str> {
    step.variant.iter().find(|(name, _)| name == setting).map(|(_, value)| value.as_str())
}
