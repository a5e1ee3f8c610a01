//! Lines that a user types: editing, history, completion, and scripts of several lines.

use crate::completeness;
use crate::history;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};

/// The act of a user at the prompt.
pub(crate) enum Typed {
    Script(String),
    /// Ctrl-C.
    Nothing,
    /// Ctrl-D, or the terminal is gone.
    End,
}

/// Where the completed word begins, in bytes of the line, and the words that may stand there.
pub(crate) type Completions = (usize, Vec<String>);

/// The editor of a terminal. `C` completes.
pub(crate) struct LineEditor<C: Fn(&str) -> Completions> {
    complete: C,
}

impl<C: Fn(&str) -> Completions> LineEditor<C> {
    pub fn new(complete: C) -> Self {
        Self { complete }
    }

    /// Reads a script.
    /// # Errors
    /// A sentence, if the terminal cannot be used.
    pub fn read(&self, prompt: &str) -> Result<Typed, String> {
        // The library takes SIGINT for as long as an editor lives, so each lives for one prompt.
        let mut editor = self.editor().map_err(|error| format!("the terminal: {error}"))?;
        match editor.readline(prompt) {
            Ok(text) => {
                if !text.trim().is_empty() && history::may_keep(&text) {
                    // A history that cannot be kept is missing only in the next session.
                    let _ = editor.add_history_entry(text.as_str());
                    save(&mut editor);
                }
                Ok(Typed::Script(text))
            }
            Err(ReadlineError::Interrupted) => Ok(Typed::Nothing),
            Err(_) => Ok(Typed::End),
        }
    }

    fn editor(&self) -> rustyline::Result<Editor<Assistant<&C>, FileHistory>> {
        let config = Config::builder().max_history_size(history::LINES_MAX)?.history_ignore_space(true);
        let config = config.completion_type(CompletionType::List).auto_add_history(false);
        let mut editor = Editor::with_config(config.build())?;
        editor.set_helper(Some(Assistant { complete: &self.complete }));
        if let Some(file) = history::file() {
            // There is no file before the first session.
            let _ = editor.load_history(&file);
        }
        Ok(editor)
    }
}

fn save<H: Helper>(editor: &mut Editor<H, FileHistory>) {
    let Some(file) = history::file() else { return };
    if let Some(directory) = file.parent() {
        // If this fails, saving the history fails too, which loses nothing else.
        let _ = std::fs::create_dir_all(directory);
    }
    let _ = editor.save_history(&file);
}

struct Assistant<C> {
    complete: C,
}

impl<C: Fn(&str) -> Completions> Completer for Assistant<C> {
    type Candidate = String;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok((self.complete)(&line[..position]))
    }
}

impl<C> Validator for Assistant<C> {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let is_open = completeness::is_open(context.input());
        Ok(if is_open { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl<C> Hinter for Assistant<C> {
    type Hint = String;
}

impl<C> Highlighter for Assistant<C> {}

impl<C: Fn(&str) -> Completions> Helper for Assistant<C> {}
