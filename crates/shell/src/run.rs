//! A run of the shell: connect, run what the command line gives, then what the user types.

use crate::completeness::Growing;
use crate::engine::{Engine, Failure, Limits, THREAD_STACK_BYTES};
use crate::host::Host;
use crate::interruption::Interruption;
use crate::line_editor::{Completions, LineEditor, Typed};
use crate::output::Output;
use crate::terminal::{Source, complain, print, print_line};
use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The status of a script that threw, or of a server that was not reached.
const FAILED: u8 = 1;
/// The status that a shell reports for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;
/// Script that runs before a user types anything.
const START_SCRIPT: &str = ".mongoshrc.js";

/// The server that a shell is connected to when it starts.
#[derive(Clone, Debug)]
pub enum Start {
    /// The server of this connection string, and the database that it names.
    Server(String),
    /// Nothing.
    Nothing,
}

/// A script that the command line names.
#[derive(Clone, Debug)]
pub enum Work {
    /// Its text; the result is printed.
    Text(String),
    /// The path of its file.
    File(String),
}

/// How a shell runs.
#[derive(Clone, Debug)]
pub struct Shell {
    /// The server, or none.
    pub start: Start,
    /// The scripts to run first.
    pub work: Vec<Work>,
    /// Whether a user types after the scripts; without scripts, always.
    pub stays: bool,
    /// How results are printed.
    pub output: Output,
    /// The connection string of a server that takes the place of the local host in all addresses.
    pub local: Option<String>,
    /// Whether a greeting is left out.
    pub is_quiet: bool,
    /// Whether `~/.mongoshrc.js` is left out.
    pub skips_start_script: bool,
    /// Limits of the scripts.
    pub limits: Limits,
}

impl Shell {
    /// Runs the shell to its end; returns the process's exit status.
    pub fn run(self, interruption: &Arc<Interruption>) -> u8 {
        let interruption = Arc::clone(interruption);
        let thread = std::thread::Builder::new().name("shell".to_owned()).stack_size(THREAD_STACK_BYTES);
        let session = move || match Session::open(self, &interruption) {
            Ok(session) => session.run(),
            Err(message) => {
                complain(&format!("{message}\n"));
                FAILED
            }
        };
        match thread.spawn(session).map(std::thread::JoinHandle::join) {
            Ok(Ok(status)) => status,
            Ok(Err(_)) => FAILED,
            Err(error) => {
                complain(&format!("bunko: cannot start a thread: {error}\n"));
                FAILED
            }
        }
    }
}

struct Session {
    shell: Shell,
    engine: Engine,
    host: Arc<Host>,
}

impl Session {
    fn open(shell: Shell, interruption: &Arc<Interruption>) -> Result<Self, String> {
        let is_typed = shell.work.is_empty() && io::stdin().is_terminal() || shell.stays;
        let source = if is_typed { Source::User } else { Source::Program };
        let host = Host::new(interruption, source, shell.local.clone());
        let engine = Engine::new(&host, shell.limits, shell.output)?;
        let session = Self { shell, engine, host };
        if let Start::Server(uri) = &session.shell.start {
            session.engine.call::<()>("connect", &[uri]).map_err(|failure| match failure {
                Failure::Thrown(text) => text,
                Failure::Interrupted => "interrupted".to_owned(),
            })?;
        }
        Ok(session)
    }

    fn run(self) -> u8 {
        let status = self.scripts().and_then(|()| {
            if !self.shell.work.is_empty() && !self.shell.stays {
                return Ok(());
            }
            if io::stdin().is_terminal() { self.interact() } else { self.read_scripts() }
        });
        if !self.host.interruption.is_rung() {
            // The server forgets the sessions by itself, later.
            let _ = self.engine.call::<()>("endSessions", &[]);
        }
        status.err().unwrap_or_else(|| self.host.exit_code.load(Ordering::Relaxed))
    }

    /// Runs the command line's scripts.
    fn scripts(&self) -> Result<(), u8> {
        let last = self.shell.work.len().saturating_sub(1);
        for (number, work) in self.shell.work.iter().enumerate() {
            let outcome = match work {
                Work::Text(text) => self.engine.evaluate(text, "--eval").and_then(|text| {
                    if number == last {
                        print_line(&text.unwrap_or_default());
                    }
                    self.engine.finish()
                }),
                Work::File(path) => self.engine.run_file(path),
            };
            outcome.map_err(|failure| self.report(failure, ""))?;
        }
        Ok(())
    }

    /// Prints why a script failed; returns the status for it.
    fn report(&self, failure: Failure, before: &str) -> u8 {
        match failure {
            // A program that reads JSON reads the error there, too.
            Failure::Thrown(text) if self.shell.output != Output::Text => {
                print_line(&text);
                FAILED
            }
            Failure::Thrown(text) => {
                complain(&format!("{before}{text}\n"));
                FAILED
            }
            Failure::Interrupted => {
                complain("interrupted\n");
                INTERRUPTED
            }
        }
    }

    /// Runs scripts of standard input, line by line, as if they were typed: with prompts, and on after an error.
    fn read_scripts(&self) -> Result<(), u8> {
        let mut script = Growing::new();
        self.prompt(script.text());
        for line in io::stdin().lock().lines() {
            let failed = |error| self.report(Failure::Thrown(format!("standard input: {error}")), "bunko: ");
            script.push(&(line.map_err(failed)? + "\n"));
            if !script.is_open() {
                self.run_typed(std::mem::replace(&mut script, Growing::new()).text())?;
            }
            self.prompt(script.text());
        }
        self.run_typed(script.text())
    }

    /// Prints the prompt of a script's first line, or of its next one.
    fn prompt(&self, script: &str) {
        let text = if script.is_empty() { self.prompt_text() } else { "... ".to_owned() };
        print(&text);
    }

    fn prompt_text(&self) -> String {
        self.engine.call("promptText", &[]).unwrap_or_else(|_| "> ".to_owned())
    }

    /// Runs what was typed. An error is printed where results are, and the next line runs all the same.
    fn run_typed(&self, script: &str) -> Result<(), u8> {
        if script.trim().is_empty() {
            return Ok(());
        }
        let outcome = self.engine.evaluate(script, "line").and_then(|text| {
            let text = text.unwrap_or_default();
            // The line of a prompt ends even without a result; a terminal has ended it already.
            if self.host.source == Source::Program {
                print(&format!("{text}\n"));
            } else {
                print_line(&text);
            }
            self.engine.finish()
        });
        match outcome {
            Ok(()) => {}
            // As mongosh writes it, where the error takes the place of the word unless it has several lines.
            Err(Failure::Thrown(text)) if text.contains('\n') => print_line(&format!("Uncaught:\n\r{text}")),
            Err(Failure::Thrown(text)) => print_line(&format!("Uncaught \r{text}")),
            Err(Failure::Interrupted) if self.host.source == Source::User => print_line("interrupted"),
            Err(Failure::Interrupted) => return Err(self.report(Failure::Interrupted, "")),
        }
        Ok(())
    }

    /// Runs what a user types at a terminal.
    fn interact(&self) -> Result<(), u8> {
        self.greet();
        self.run_start_script();
        let editor = LineEditor::new(|line: &str| self.complete(line));
        loop {
            self.host.interruption.reset();
            let typed = editor.read(&self.prompt_text());
            match typed.map_err(|message| self.report(Failure::Thrown(message), "bunko: "))? {
                Typed::Script(script) => self.run_typed(&script)?,
                Typed::Nothing => {}
                Typed::End => return Ok(()),
            }
        }
    }

    fn greet(&self) {
        let _ = self.engine.call::<()>("useTerminal", &[]);
        if self.shell.is_quiet {
            return;
        }
        if let Ok(greeting) = self.engine.call::<String>("greeting", &[]) {
            print(&greeting);
        }
    }

    fn run_start_script(&self) {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let script = home.map(|home| home.join(START_SCRIPT)).filter(|path| path.is_file());
        let Some(script) = script.filter(|_| !self.shell.skips_start_script) else { return };
        if let Err(failure) = self.engine.run_file(&script.display().to_string()) {
            self.report(failure, "Uncaught ");
        }
    }

    fn complete(&self, line: &str) -> Completions {
        // JavaScript counts in UTF-16: the prelude says how much of the end is to be replaced.
        let found: Result<(usize, Vec<String>), _> =
            self.engine.call::<Vec<String>>("completions", &[line]).map(|mut names| {
                let replaced = names.pop().and_then(|count| count.parse().ok()).unwrap_or(0);
                (line.len().saturating_sub(replaced), names)
            });
        found.unwrap_or((line.len(), Vec::new()))
    }
}
