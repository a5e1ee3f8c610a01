//! Where the figures come from, and how to get them again.

use super::markup::Markup;
use crate::machine_pauses;
use crate::number::bytes;
use crate::result::{Report, TargetRecord, WorkerShare};
use crate::text::server;

pub(super) fn environment(report: &Report) -> Markup {
    let mut markup = Markup::new();
    for target in &report.targets {
        markup.element("h3", &[], &format!("Target {}", target.label));
        definitions(&mut markup, &of_target(target));
    }
    let machine = &report.machine;
    markup.element("h3", &[], "Generator");
    let mut entries = vec![
        ("Processor", format!("{}, {} usable", machine.processor, machine.cores)),
        ("Memory", bytes(machine.memory_bytes as f64)),
        ("System", machine.kernel.clone()),
        ("Lab", format!("version {}", report.lab_version)),
    ];
    entries.extend(machine_pauses::watched(report).map(|watched| ("Pauses", watched)));
    entries.extend(report.worker.map(|worker| ("Share", share(worker))));
    definitions(&mut markup, &entries);
    markup
}

fn of_target(target: &TargetRecord) -> Vec<(&'static str, String)> {
    let mut entries = vec![("Durability", target.durability.clone()), ("Server", server(target))];
    entries.extend(target.data_directory.clone().map(|directory| ("Data directory", directory)));
    entries
}

fn share(worker: WorkerShare) -> String {
    match worker {
        WorkerShare::Share { index, count, clock_offset_ms } => {
            format!("worker {index} of {count}, clock {clock_offset_ms:+.1} ms against the server's")
        }
        WorkerShare::Merged { count } => format!("{count} workers merged"),
    }
}

pub(super) fn repetition(report: &Report) -> Markup {
    let mut markup = command(report);
    let entries =
        [("Seed", report.scenario.seed.to_string()), ("Scenario", format!("SHA-256 {}", report.scenario.hash))];
    definitions(&mut markup, &entries);
    markup
}

/// The command line, ready for a shell.
pub(super) fn command(report: &Report) -> Markup {
    let mut markup = Markup::new();
    let command: Vec<_> = report.command.iter().map(|argument| quoted(argument)).collect();
    markup.within("div", &[("class", "command")], |line| {
        line.within("pre", &[("class", "listing")], |listing| {
            listing.element("code", &[("id", "command")], &command.join(" "));
        });
        let attributes = [("id", "copy-command"), ("type", "button"), ("data-needs-script", ""), ("hidden", "")];
        line.element("button", &attributes, "Copy");
    });
    markup
}

/// Quotes an argument so that a POSIX shell reads it as one word.
fn quoted(argument: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "_-./:=,@%+".contains(character);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

pub(super) fn scenario(report: &Report) -> Markup {
    let scenario = &report.scenario;
    let mut markup = Markup::new();
    for paragraph in scenario.prose.split("\n\n") {
        markup.element("p", &[], paragraph.trim());
    }
    markup.within("details", &[], |details| {
        details.element("summary", &[], "The scenario as it was run (TOML)");
        details.within("pre", &[("class", "listing"), ("tabindex", "0")], |listing| {
            listing.element("code", &[], &scenario.resolved);
        });
    });
    markup
}

pub(super) fn raw(_: &Report) -> Markup {
    let mut markup = Markup::new();
    markup.element(
        "p",
        &[],
        "This file carries the whole result as JSON, in the element report-json near its end. Only the histograms \
         of single seconds are left out, and figures of single seconds are rounded to six digits; the JSON file of the \
         same run has everything.",
    );
    markup
}

fn definitions(markup: &mut Markup, entries: &[(&str, String)]) {
    markup.within("dl", &[], |list| {
        for (name, value) in entries {
            list.element("dt", &[], name).element("dd", &[], value);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn arguments_survive_a_shell() {
        let shown = ["--set", "seed=7", "", "two words", "it's", "$(rm -r /)"].map(quoted);
        assert_eq!(shown, ["--set", "seed=7", "''", "'two words'", r"'it'\''s'", "'$(rm -r /)'"]);
    }
}
