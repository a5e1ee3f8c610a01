//! Describes how the machine was watched for pauses.

use crate::result::{Report, SleepPriority, Step};

/// `watched at real-time priority, for 0.18 % of each processor`; `None` if no run was watched.
pub(crate) fn watched(report: &Report) -> Option<String> {
    let runs = || report.steps.iter().flat_map(Step::measurements).filter_map(|run| Some((run, run.pauses.as_ref()?)));
    let weakest = runs().map(|(_, pauses)| pauses.priority).min()?;
    let used: f64 = runs().map(|(_, pauses)| pauses.cpu_seconds).sum();
    let had: f64 = runs().map(|(run, pauses)| run.elapsed_seconds * pauses.threads as f64).sum();
    let share = used / had.max(f64::MIN_POSITIVE) * 100.0;
    Some(format!("watched at {} priority, for {share:.2} % of each processor", priority(weakest)))
}

/// A priority's name.
pub(crate) fn priority(priority: SleepPriority) -> &'static str {
    match priority {
        SleepPriority::RealTime => "real-time",
        SleepPriority::Ordinary => "ordinary",
    }
}
