//! The verdict on a report's figures.

use crate::number::bytes;
use crate::result::{AllocationRecord, Badge, Completion, Finding, Measurement, Outcome, Report, Severity, Step};
use crate::step_label;
use std::fmt;

/// Rows that a flaw names; further rows are only counted.
const PLACES_MAX: usize = 6;

/// A kind of finding, and all rows that have it.
pub(crate) struct Flaw {
    /// The first of its kind.
    pub(crate) finding: Finding,
    /// Its row and the other rows: the step and, if it was repeated, the repetitions.
    pub(crate) places: Vec<String>,
    /// Whether the finding has the same text in all rows.
    pub(crate) says_the_same: bool,
    /// Whether all runs of all rows have it.
    is_everywhere: bool,
}

impl Report {
    /// One sentence: valid, or the worst reason to doubt the figures.
    pub fn verdict(&self) -> String {
        let judgement = self.judgement();
        match &self.completion {
            Completion::Complete => judgement,
            Completion::Interrupted => {
                let measured = self.steps.iter().filter(|step| step.measurements().next().is_some()).count();
                format!("interrupted: {measured} of {} steps have figures, {judgement}", self.steps.len())
            }
            Completion::Failed { reason } => format!("not valid: the run failed: {reason}"),
        }
    }

    /// All distinct badges of the steps, the worst first; `valid` if there is none.
    pub fn badges(&self) -> Vec<Badge> {
        let mut badges = match self.completion {
            Completion::Complete => Vec::new(),
            Completion::Interrupted => vec![badge("interrupted", Severity::Caution)],
            Completion::Failed { .. } => vec![badge("failed", Severity::Invalid)],
        };
        self.steps.iter().for_each(|step| add_distinct(&mut badges, step.all_badges()));
        let of_allocations = self.allocations.iter().flat_map(AllocationRecord::findings);
        add_distinct(&mut badges, of_allocations.map(|finding| finding.badge()));
        finish(badges)
    }

    /// The worst severity of the steps and of the run as a whole.
    pub(crate) fn severity(&self) -> Severity {
        let badges = self.badges().into_iter().map(|badge| badge.severity);
        let nothing = if self.measured_nothing() { Severity::Invalid } else { Severity::Good };
        badges.max().unwrap_or(Severity::Good).max(nothing)
    }

    /// All findings, the worst first, otherwise in the order of running. Findings of one kind are merged.
    pub(crate) fn flaws(&self) -> Vec<Flaw> {
        let mut flaws: Vec<Flaw> = Vec::new();
        for step in &self.steps {
            let label = step_label::full(self, step);
            for (repetitions, finding) in findings_of(step) {
                let is_whole = repetitions.len() == step.measurements().count();
                let place = match finding {
                    // The finding is about the step, not about a run.
                    Finding::FewRuns { .. } => label.clone(),
                    _ => place(&label, step, &repetitions),
                };
                add(&mut flaws, finding, place, is_whole);
            }
        }
        for record in &self.allocations {
            for finding in record.findings() {
                add(&mut flaws, finding, format!("allocation on {}", record.label()), true);
            }
        }
        let steps = self.steps.iter().filter(|step| step.measurements().next().is_some()).count();
        let rows = steps + self.allocations.iter().filter(|record| !record.seconds.is_empty()).count();
        for flaw in &mut flaws {
            flaw.is_everywhere &= flaw.places.len() == rows;
        }
        flaws.sort_by_key(|flaw| std::cmp::Reverse(flaw.finding.severity()));
        flaws
    }

    /// Whether the run completed with figures, and no finding is worse than a caution.
    pub fn is_valid(&self) -> bool {
        let is_invalid = |badge: &Badge| badge.severity == Severity::Invalid;
        self.completion == Completion::Complete && !self.measured_nothing() && !self.badges().iter().any(is_invalid)
    }

    /// Whether every figure keeps the limits of the scenario, as far as the lab can tell.
    pub fn keeps_limits(&self) -> bool {
        !self.badges().iter().any(|badge| badge.severity == Severity::Exceeded)
    }

    /// The sentence about the figures, whether or not the run completed.
    fn judgement(&self) -> String {
        if self.measured_nothing() {
            return "not valid: nothing was measured".to_owned();
        }
        let flaws = self.flaws();
        let Some(first) = flaws.first() else { return format!("valid: {}", self.praise()) };
        let word = match first.finding.severity() {
            Severity::Invalid => "not valid",
            Severity::Exceeded => "valid, but beyond its limits",
            Severity::Caution | Severity::Good => "valid with cautions",
        };
        let rows = match first.places.len() - 1 {
            0 => None,
            rows => Some(format!("{rows} more {}", if rows == 1 { "row" } else { "rows" })),
        };
        let others = match flaws.len() - 1 {
            0 => None,
            1 => Some("1 more finding".to_owned()),
            others => Some(format!("{others} more findings")),
        };
        let more: Vec<_> = rows.into_iter().chain(others).collect();
        let more = if more.is_empty() { String::new() } else { format!(" (and {}, below)", more.join(" and ")) };
        format!("{word}: {}: {}{more}", first.places[0], first.finding)
    }

    fn praise(&self) -> String {
        let skipped = self.steps.iter().filter(|step| step.is_skipped()).count();
        let skipped = match skipped {
            0 => String::new(),
            skipped => format!("; {skipped} of {} steps were skipped", self.steps.len()),
        };
        if self.steps.is_empty() {
            return "file allocation was timed, no load was run".to_owned();
        }
        let verified: u64 = self.steps.iter().flat_map(Step::measurements).map(|run| run.verified_documents).sum();
        let contents = match verified {
            0 => String::new(),
            documents => format!(", contents of {} verified", crate::number::thousands(documents as f64)),
        };
        // A dump or restore tool is itself measured, so it may use all the time.
        let is_transfer = |run: &Measurement| run.transfer.is_some();
        let has_generator = !self.steps.iter().flat_map(Step::measurements).all(is_transfer);
        let generator = if has_generator { ", the generator had time to spare" } else { "" };
        format!("no errors, counts verified{contents}{generator}{skipped}")
    }

    fn measured_nothing(&self) -> bool {
        let allocated = self.allocations.iter().any(|allocation| !allocation.seconds.is_empty());
        !allocated && self.steps.iter().all(|step| step.measurements().next().is_none())
    }
}

/// Adds a finding and its row. `is_whole` if all runs of the row have it.
fn add(flaws: &mut Vec<Flaw>, finding: Finding, place: String, is_whole: bool) {
    match flaws.iter_mut().find(|flaw| flaw.finding.badge() == finding.badge()) {
        Some(flaw) => {
            flaw.says_the_same &= flaw.finding.to_string() == finding.to_string();
            flaw.is_everywhere &= is_whole;
            flaw.places.push(place);
        }
        None => flaws.push(Flaw { finding, places: vec![place], says_the_same: true, is_everywhere: is_whole }),
    }
}

/// The findings of a step's runs, the first of each kind, with its repetitions. The finding on the number of runs comes
/// last.
fn findings_of(step: &Step) -> Vec<(Vec<u32>, Finding)> {
    let mut found: Vec<(Vec<u32>, Finding)> = Vec::new();
    for run in &step.runs {
        for finding in run.measurement().into_iter().flat_map(|measurement| &measurement.findings) {
            match found.iter_mut().find(|(_, known)| known.badge() == finding.badge()) {
                Some((repetitions, _)) => repetitions.push(run.repetition),
                None => found.push((vec![run.repetition], finding.clone())),
            }
        }
    }
    let measured = step.runs.iter().filter(|run| run.measurement().is_some());
    let repetitions: Vec<u32> = measured.map(|run| run.repetition).collect();
    found.extend(Finding::of_runs(repetitions.len()).map(|finding| (repetitions, finding)));
    found
}

/// A row, with its repetitions if there are several.
fn place(label: &str, step: &Step, repetitions: &[u32]) -> String {
    let numbers: Vec<_> = repetitions.iter().map(ToString::to_string).collect();
    match numbers.as_slice() {
        _ if step.runs.len() == 1 => label.to_owned(),
        [one] => format!("{label}, repetition {one}"),
        _ if numbers.len() == step.runs.len() => format!("{label}, all repetitions"),
        several => format!("{label}, repetitions {}", several.join(", ")),
    }
}

impl Flaw {
    /// The rows, without the first `skipped` ones; many rows are only counted.
    pub(crate) fn rows(&self, skipped: usize) -> String {
        let places = &self.places[skipped..];
        if self.is_everywhere && places.len() > PLACES_MAX {
            return if skipped == 0 { format!("all {} rows", places.len()) } else { "all other rows".to_owned() };
        }
        let named = places.iter().take(PLACES_MAX).map(String::as_str).collect::<Vec<_>>().join("; ");
        match places.len().saturating_sub(PLACES_MAX) {
            0 => named,
            1 => format!("{named}; and 1 more row"),
            more => format!("{named}; and {more} more rows"),
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.places.as_slice() {
            [place] => write!(f, "{place}: {}", self.finding),
            [first, ..] if !self.says_the_same => {
                write!(f, "{first}: {}; likewise with other figures {}", self.finding, self.rows(1))
            }
            _ => write!(f, "{}: {}", self.finding, self.rows(0)),
        }
    }
}

impl AllocationRecord {
    /// `ext3, zero-fill, 2.15 GB`
    pub(crate) fn label(&self) -> String {
        format!("{}, {}, {}", self.filesystem, self.method, bytes(self.bytes as f64))
    }

    /// The badges beside its figures; none without figures.
    pub(crate) fn badges(&self) -> Vec<Badge> {
        if self.seconds.is_empty() { Vec::new() } else { finish(self.findings().iter().map(Finding::badge).collect()) }
    }
}

impl Step {
    /// The distinct badges of its runs, the worst first; `valid` if there is none.
    pub fn badges(&self) -> Vec<Badge> {
        finish(self.all_badges())
    }

    /// Whether all repetitions were skipped.
    pub(crate) fn is_skipped(&self) -> bool {
        !self.runs.is_empty() && self.measurements().next().is_none()
    }

    /// The first reason why a repetition was skipped; `None` if none was.
    pub(crate) fn skip_reason(&self) -> Option<&str> {
        self.runs.iter().find_map(|run| match &run.outcome {
            Outcome::Skipped { reason } => Some(reason.as_str()),
            Outcome::Measured(_) => None,
        })
    }

    fn all_badges(&self) -> Vec<Badge> {
        let mut badges = Vec::new();
        if self.skip_reason().is_some() {
            badges.push(badge("skipped", Severity::Caution));
        }
        if self.runs.is_empty() {
            badges.push(badge("not run", Severity::Caution));
        }
        add_distinct(&mut badges, findings_of(self).iter().map(|(_, finding)| finding.badge()));
        badges
    }
}

fn badge(text: &str, severity: Severity) -> Badge {
    Badge { text: text.to_owned(), severity }
}

fn add_distinct(badges: &mut Vec<Badge>, more: impl IntoIterator<Item = Badge>) {
    for badge in more {
        if !badges.contains(&badge) {
            badges.push(badge);
        }
    }
}

fn finish(mut badges: Vec<Badge>) -> Vec<Badge> {
    if badges.is_empty() {
        badges.push(badge("valid", Severity::Good));
    }
    badges.sort_by_key(|badge| std::cmp::Reverse(badge.severity));
    badges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_sentence_names_the_worst() {
        let mut report = fixture::plain();
        assert_eq!(
            report.verdict(),
            "valid: no errors, counts verified, contents of 3,000 verified, the generator had time to spare"
        );
        assert_eq!(report.badges(), [badge("valid", Severity::Good)]);

        fixture::measurement(&mut report.steps[0]).findings = vec![Finding::Short { seconds: 2.4 }];
        assert_eq!(
            report.verdict(),
            "valid with cautions: insert, 1 x 1, repetition 1: short: 2.4 s do not show a steady state"
        );
        fixture::measurement(&mut report.steps[0])
            .findings
            .push(Finding::Errors { count: 3, first: "E11000 duplicate key".into() });
        assert_eq!(
            report.verdict(),
            "not valid: insert, 1 x 1, repetition 1: 3 errors, the first: E11000 duplicate key (and 1 more finding, below)"
        );
        assert_eq!(report.badges(), [badge("errors", Severity::Invalid), badge("short", Severity::Caution)]);
        assert_eq!(report.severity(), Severity::Invalid);
    }

    #[test]
    fn findings_shared_by_many_rows_are_said_once() {
        let mut report = fixture::engines();
        let short = |seconds| Finding::Short { seconds };
        for step in &mut report.steps[..2] {
            for run in &mut step.runs {
                let Outcome::Measured(measurement) = &mut run.outcome else { unreachable!("just made") };
                measurement.findings = vec![short(2.0)];
            }
        }
        let Outcome::Measured(measurement) = &mut report.steps[3].runs[1].outcome else { unreachable!("just made") };
        measurement.findings = vec![short(2.0)];
        let said = |report: &Report| report.flaws().iter().map(ToString::to_string).collect::<Vec<_>>();
        let rows = "lsm: insert, 1 x 1, all repetitions; lsm: insert, 1 x 100, all repetitions; \
                    lsm: insert, 100 x 100, repetition 2";
        assert_eq!(said(&report), [format!("short: 2.0 s do not show a steady state: {rows}")]);
        assert!(report.verdict().ends_with("steady state (and 2 more rows, below)"), "{}", report.verdict());
        let Outcome::Measured(measurement) = &mut report.steps[3].runs[1].outcome else { unreachable!("just made") };
        measurement.findings = vec![short(3.0)];
        assert!(said(&report)[0].contains("steady state; likewise with other figures lsm: insert, 1 x 100, all"));
    }

    /// One or two runs do not show the spread, so such a step is never just `valid`.
    #[test]
    fn a_step_with_fewer_than_three_runs_says_so() {
        let mut report = fixture::plain();
        report.steps[0].runs.truncate(2);
        assert_eq!(report.verdict(), "valid with cautions: insert, 1 x 1: two runs: an interval needs three");
        report.steps[0].runs.truncate(1);
        let expected =
            "valid with cautions: insert, 1 x 1: single run: it does not show how far a second one would differ";
        assert_eq!(report.verdict(), expected);
        assert_eq!(report.badges(), [badge("single run", Severity::Caution)]);
        // A skipped repetition does not count.
        let mut report = fixture::plain();
        report.steps[0].runs[1].outcome = Outcome::Skipped { reason: "interrupted".into() };
        assert_eq!(report.steps[0].badges(), ["skipped", "two runs"].map(|text| badge(text, Severity::Caution)));
    }

    #[test]
    fn findings_shared_by_all_rows_name_none_of_them() {
        let mut report = fixture::sizes();
        let said = |report: &Report| report.flaws().iter().map(ToString::to_string).collect::<Vec<_>>();
        let single = "single run: it does not show how far a second one would differ";
        assert!(said(&report).contains(&format!("{single}: all 24 rows")), "{:?}", said(&report));
        let more = report.steps[0].runs[0].clone();
        report.steps[0].runs.extend([more.clone(), more]);
        let named = said(&report).into_iter().find(|flaw| flaw.starts_with(single)).unwrap();
        assert!(named.ends_with("; and 17 more rows"), "{named}");
    }

    #[test]
    fn allocation_is_judged_too() {
        let mut report = fixture::allocation();
        report.steps.clear();
        let badges: Vec<_> = report.badges().into_iter().map(|badge| badge.text).collect();
        assert_eq!(badges, ["loop device", "single run"]);
        assert!(
            report.verdict().starts_with("valid with cautions: allocation on ext3, zero-fill, 2.15 GB: loop device: ")
        );
    }

    #[test]
    fn an_end_before_its_time_is_said_first() {
        let mut report = fixture::plain();
        report.completion = Completion::Interrupted;
        assert!(report.verdict().starts_with("interrupted: 1 of 1 steps have figures, valid: no errors"));
        report.steps[0].runs.clear();
        assert_eq!(report.verdict(), "interrupted: 0 of 1 steps have figures, not valid: nothing was measured");
        report.completion = Completion::Failed { reason: "connection refused".into() };
        assert_eq!(report.verdict(), "not valid: the run failed: connection refused");
        assert_eq!(report.badges()[0], badge("failed", Severity::Invalid));
    }

    #[test]
    fn skipped_steps_are_counted_and_shown() {
        let mut report = fixture::plain();
        let mut skipped = report.steps[0].clone();
        for run in &mut skipped.runs {
            run.outcome = Outcome::Skipped { reason: "the server has no majority".into() };
        }
        report.steps.push(skipped);
        assert!(report.verdict().ends_with("to spare; 1 of 2 steps were skipped"), "{}", report.verdict());
        assert_eq!(report.steps[1].badges(), [badge("skipped", Severity::Caution)]);
        assert_eq!(report.steps[1].skip_reason(), Some("the server has no majority"));
    }
}
