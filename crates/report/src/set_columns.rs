//! The columns about the members of a replica set.

use crate::number::figure;
use crate::result::{Measurement, MemberRecord, SetRecord};
use crate::step_columns::Column;
use crate::step_summary::{StepSummary, rate};

/// The columns of figures that only a replica set has.
pub(crate) const OF_SETS: &[Column] = &[
    Column {
        heading: "lag ms",
        about: "how long the primary had had a write, at the step's end, that a data member had not applied: of the member \
                that was furthest behind, in milliseconds",
        cell: |summary| summary.median(|run| milliseconds(run, SetRecord::lag_seconds)).map(figure),
    },
    Column {
        heading: "longest lag ms",
        about: "the longest such time during the step, in milliseconds",
        cell: |summary| summary.median(|run| milliseconds(run, SetRecord::longest_lag_seconds)).map(figure),
    },
    Column {
        heading: "caught up after ms",
        about: "milliseconds from the step's end until all data members had all of the primary's writes",
        cell: |summary| summary.median(|run| milliseconds(run, |set| set.catch_up_seconds)).map(figure),
    },
    Column { heading: "members us/doc", about: MEMBERS_ABOUT, cell: members_cost },
];

const MEMBERS_ABOUT: &str = "processor time of each member per document until all data members were equal, in \
                             microseconds, with the first letters of its state: PRImary, SECondary, ARBiter";

fn milliseconds(run: &Measurement, figure: impl Fn(&SetRecord) -> Option<f64>) -> Option<f64> {
    run.set.as_ref().and_then(figure).map(|seconds| seconds * 1e3)
}

/// `PRI 8.1 SEC 4.2 ARB 0.1`: for each member, the median of the repetitions.
fn members_cost(summary: &StepSummary<'_>) -> Option<String> {
    let members = &summary.step.measurements().find_map(|run| run.set.as_ref())?.members;
    let cost = |place: usize, run: &Measurement| {
        let member = run.set.as_ref()?.members.get(place)?;
        rate(member.cpu_seconds? * 1e6, run.documents as f64)
    };
    let cell = |(place, member): (usize, &MemberRecord)| {
        let state: String = member.state.chars().take(3).collect();
        let cost = summary.median(|run| cost(place, run));
        format!("{state} {}", cost.map_or_else(|| "-".to_owned(), figure))
    };
    Some(members.iter().enumerate().map(cell).collect::<Vec<_>>().join(" "))
}
