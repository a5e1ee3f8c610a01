//! The thread that reports progress.

use super::{Progress, Snapshot, render};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Form of progress reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Text for a terminal: every second.
    Terminal,
    /// Text for a file: every three seconds.
    Lines,
    /// One JSON object per line, every three seconds.
    JsonLines,
}

impl Style {
    fn interval(self) -> Duration {
        match self {
            Self::Terminal => Duration::from_secs(1),
            Self::Lines | Self::JsonLines => Duration::from_secs(3),
        }
    }

    /// Text of the notes added since the last call.
    fn notes(self, progress: &Progress) -> String {
        let line = |note: String| match self {
            Self::Terminal | Self::Lines => note + "\n",
            Self::JsonLines => render::note_json(&note),
        };
        progress.take_notes().into_iter().map(line).collect()
    }
}

/// Number of intervals over which pace and remaining time are measured: a single interval fluctuates.
const INTERVALS: usize = 5;

#[derive(Default)]
struct Stop {
    is_asked_for: Mutex<bool>,
    asked: Condvar,
}

/// Reports the state of a run at intervals, and at its end how the time was spent.
pub struct Reporter {
    progress: Arc<Progress>,
    stop: Arc<Stop>,
    style: Style,
    thread: Option<JoinHandle<Box<dyn Write + Send>>>,
}

impl Reporter {
    /// Starts the thread that writes progress to `out`; errors of `out` are ignored.
    pub fn start(progress: Arc<Progress>, style: Style, out: Box<dyn Write + Send>) -> Self {
        let stop = Arc::new(Stop::default());
        let thread = std::thread::spawn({
            let (progress, stop) = (Arc::clone(&progress), Arc::clone(&stop));
            move || report(&progress, &stop, style, out)
        });
        Self { progress, stop, style, thread: Some(thread) }
    }

    /// Stops the thread and writes the report of the whole run.
    pub fn finish(mut self) {
        if let Some(mut out) = self.stop_thread() {
            let end = self.progress.snapshot();
            let mut text = self.style.notes(&self.progress);
            text += &match self.style {
                Style::Terminal | Style::Lines => render::end_report(&end),
                Style::JsonLines => render::end_report_json(&end),
            };
            // Errors are ignored: the terminal may have been closed.
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        }
    }

    fn stop_thread(&mut self) -> Option<Box<dyn Write + Send>> {
        *self.stop.is_asked_for.lock() = true;
        self.stop.asked.notify_all();
        self.thread.take()?.join().ok()
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.stop_thread();
    }
}

fn report(progress: &Progress, stop: &Stop, style: Style, mut out: Box<dyn Write + Send>) -> Box<dyn Write + Send> {
    let mut earlier: VecDeque<Snapshot> = VecDeque::from([progress.snapshot()]);
    let mut is_asked_for = stop.is_asked_for.lock();
    while !*is_asked_for {
        if !stop.asked.wait_for(&mut is_asked_for, style.interval()).timed_out() {
            continue;
        }
        let now = progress.snapshot();
        let before = earlier.front().expect("one is always kept");
        let mut text = style.notes(progress);
        text += &match style {
            Style::Terminal | Style::Lines => render::lines(before, &now),
            Style::JsonLines => render::json_line(before, &now),
        };
        // Errors are ignored: the terminal may have been closed.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        earlier.push_back(now);
        if earlier.len() > INTERVALS {
            earlier.pop_front();
        }
    }
    drop(is_asked_for);
    out
}
