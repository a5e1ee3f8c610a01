//! Merges the workers' findings.

use super::run_share::RunShare;
use crate::result::Finding;

/// The findings of all workers. A finding with the same text in all workers appears once; any other finding has its
/// worker's index. Two kinds are left out and judged again on the sum: whether the rate was kept, because one worker's
/// backlog does not matter if the sum was sent in time; and the machines' pauses, because one machine of many is as
/// small a part of all latencies as of all pauses.
pub(super) fn unite(parts: &[RunShare<'_>]) -> Vec<Finding> {
    let mut united: Vec<Finding> = Vec::new();
    for part in parts {
        for finding in &part.measurement.findings {
            let of_all = parts.iter().all(|other| other.measurement.findings.contains(finding));
            add(&mut united, if of_all { finding.clone() } else { attribute(finding, part.worker) });
        }
    }
    united
}

fn add(united: &mut Vec<Finding>, finding: Finding) {
    match finding {
        Finding::RateNotKept { .. } | Finding::MachinePauses { .. } => {}
        Finding::Errors { count, first } => {
            let earlier = united.iter_mut().find_map(|known| match known {
                Finding::Errors { count, .. } => Some(count),
                _ => None,
            });
            match earlier {
                Some(sum) => *sum += count,
                None => united.push(Finding::Errors { count, first }),
            }
        }
        Finding::Short { seconds } => {
            let known = united.iter_mut().find_map(|known| match known {
                Finding::Short { seconds } => Some(seconds),
                _ => None,
            });
            match known {
                Some(shortest) => *shortest = shortest.min(seconds),
                None => united.push(Finding::Short { seconds }),
            }
        }
        other if united.contains(&other) => {}
        other => united.push(other),
    }
}

fn attribute(finding: &Finding, worker: u32) -> Finding {
    let of_worker = |detail: &str| format!("worker {worker}: {detail}");
    match finding {
        Finding::CountsDiffer { what, expected, found } => {
            Finding::CountsDiffer { what: format!("{what} (worker {worker})"), expected: *expected, found: *found }
        }
        Finding::ContentsDiffer { detail } => Finding::ContentsDiffer { detail: of_worker(detail) },
        Finding::GeneratorBound { detail } => Finding::GeneratorBound { detail: of_worker(detail) },
        Finding::NotSteady { detail } => Finding::NotSteady { detail: of_worker(detail) },
        Finding::CacheNotAsDeclared { detail } => Finding::CacheNotAsDeclared { detail: of_worker(detail) },
        Finding::MembersBehind { detail } => Finding::MembersBehind { detail: of_worker(detail) },
        Finding::LimitExceeded { detail } => Finding::LimitExceeded { detail: of_worker(detail) },
        Finding::LimitUnchecked { detail } => Finding::LimitUnchecked { detail: of_worker(detail) },
        Finding::Errors { .. }
        | Finding::FewRuns { .. }
        | Finding::LoopDevice(_)
        | Finding::RateNotKept { .. }
        | Finding::MachinePauses { .. }
        | Finding::Short { .. }
        | Finding::NotSettled { .. } => finding.clone(),
    }
}
