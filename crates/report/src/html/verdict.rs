//! The top of the page: the scenario and the verdict.

use super::badge;
use super::markup::Markup;
use crate::number::{duration, utc};
use crate::result::Report;
use crate::step_label;

pub(super) fn header(report: &Report) -> Markup {
    let scenario = &report.scenario;
    let kicker = match &scenario.experiment {
        Some(experiment) => format!("Benchmark report · experiment {experiment}"),
        None => "Benchmark report".to_owned(),
    };
    let took = report.ended_at_ms.saturating_sub(report.started_at_ms) as f64 / 1e3;
    let targets: Vec<_> = report.targets.iter().map(|target| target.label.as_str()).collect();
    let when = [utc(report.started_at_ms), duration(took), targets.join(" and ")];
    let when: Vec<_> = when.into_iter().filter(|part| !part.is_empty()).collect();
    let mut markup = Markup::new();
    markup.classed("p", "kicker", &kicker).element("h1", &[], &scenario.name);
    markup.classed("p", "about", &scenario.about).classed("p", "when", &when.join(" · "));
    let class = format!("verdict {}", badge::class(report.severity()));
    markup.within("div", &[("class", &class), ("id", "verdict")], |verdict| {
        verdict.element("p", &[], &sentence(&report.verdict()));
        badge::list(verdict, &report.badges());
    });
    markup
}

/// The text with a capital first letter.
pub(super) fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(characters).chain(['.']).collect()
}

/// All findings, and the reasons why steps were skipped.
pub(super) fn findings(report: &Report) -> Markup {
    let flaws = report.flaws();
    let skipped: Vec<_> = report.steps.iter().filter_map(|step| Some((step, step.skip_reason()?))).collect();
    if flaws.is_empty() && skipped.is_empty() {
        return Markup::new();
    }
    let mut markup = Markup::new();
    markup.within("ul", &[("class", "findings")], |list| {
        let mut item = |class: &str, badge: &str, place: &str, what: &str| {
            list.within("li", &[], |item| {
                item.classed("span", &format!("badge {class}"), badge);
                item.classed("span", "place", place).element("span", &[], what);
            });
        };
        for flaw in &flaws {
            let found = flaw.finding.badge();
            // The badge already contains the first words.
            let finding = flaw.finding.to_string();
            let rest = finding.strip_prefix(&format!("{}: ", found.text)).unwrap_or(&finding);
            let of_first = if flaw.says_the_same { "" } else { " (the first; the others with other figures)" };
            let rest = format!("{rest}{of_first}");
            item(badge::class(found.severity), &found.text, &flaw.rows(0), &rest);
        }
        for (step, reason) in &skipped {
            item("caution", "skipped", &step_label::full(report, step), reason);
        }
    });
    markup
}
