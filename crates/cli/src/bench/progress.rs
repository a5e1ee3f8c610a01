//! Live progress on stderr: one line that is rewritten on a terminal, plain lines elsewhere.

use bunko_bench::{Observer, Pace, StepName, Tick};
use bunko_report::result::{Outcome, Run, Step};
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// Watches a run for the user.
pub struct Progress {
    style: Style,
    /// The current step, at the front of every line.
    step: String,
    is_line_open: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// One line, rewritten, in colour.
    Colour,
    /// One line, rewritten, without colour.
    Plain,
    /// A line for each step.
    Lines,
    /// No output.
    Quiet,
}

impl Progress {
    /// Chooses the style by the kind of stderr and by NO_COLOR.
    pub fn new(quiet: bool) -> Self {
        let is_colour_wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let style = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Style::Quiet,
            (false, false) => Style::Lines,
            (false, true) if is_colour_wanted => Style::Colour,
            (false, true) => Style::Plain,
        };
        Self { style, step: String::new(), is_line_open: false }
    }

    /// Erases the live line.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_line_open) {
            eprint!("\r\x1b[K");
        }
    }

    fn rewrite(&mut self, text: &str) {
        let text = match self.style {
            Style::Colour => format!("\r\x1b[K\x1b[1m{}\x1b[0m {text}", self.step),
            Style::Plain => format!("\r\x1b[K{} {text}", self.step),
            Style::Lines | Style::Quiet => return,
        };
        self.is_line_open = true;
        eprint!("{text}");
        // A failure to show progress does not stop the measurement.
        let _ = std::io::stderr().flush();
    }

    fn line(&mut self, text: &str) {
        self.clear();
        if self.style != Style::Quiet {
            eprintln!("{text}");
        }
    }
}

impl Observer for Progress {
    fn begin(&mut self, step: &StepName<'_>, number: usize, of: usize) {
        let mut words = format!("[{number}/{of}]");
        if !step.target.is_empty() {
            let _ = write!(words, " {}", step.target);
        }
        for (name, value) in step.variant {
            let short = name.rsplit('.').next().unwrap_or(name);
            if short != "connections" {
                let _ = write!(words, " {short}={value}");
            }
        }
        let _ = write!(words, " {} x {} (repetition {})", step.phase, step.connections, step.repetition);
        self.step = words;
        self.rewrite("...");
    }

    fn tick(&mut self, tick: &Tick) {
        let mut text = match tick.pace {
            Pace::Requests(requests) => format!("{requests} requests/s"),
            Pace::Documents(documents) => format!("{documents} docs/s"),
        };
        if let Some(p99) = tick.p99_us {
            let _ = write!(text, ", p99 {:.2} ms", p99 / 1e3);
        }
        match tick.remaining {
            Some(remaining) => {
                let _ = write!(text, ", {} left", shown(remaining));
            }
            None => {
                let _ = write!(text, ", {} so far", shown(tick.elapsed));
            }
        }
        self.rewrite(&text);
    }

    fn end(&mut self, _step: &Step, run: &Run) {
        let text = match &run.outcome {
            Outcome::Measured(measurement) => {
                let p99 = measurement.latency.p99_us.map_or(String::new(), |us| format!(", p99 {:.2} ms", us / 1e3));
                let badges = measurement.findings.iter().map(|finding| format!(", {}", finding.badge().text));
                let badges: String = badges.collect();
                format!("{:.0} docs/s{p99}{badges}", measurement.documents_per_second)
            }
            Outcome::Skipped { reason } => format!("skipped: {reason}"),
        };
        let line = format!("{} {text}", self.step);
        self.line(&line);
    }

    fn note(&mut self, text: &str) {
        self.step = String::new();
        if self.style == Style::Lines {
            self.line(text);
        } else {
            self.rewrite(text);
        }
    }
}

fn shown(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 60 { format!("{seconds} s") } else { format!("{} min {} s", seconds / 60, seconds % 60) }
}
