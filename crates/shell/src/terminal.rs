//! Standard output, standard error, and questions for passwords.

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, BufRead, ErrorKind, IsTerminal, Read, Write};

/// The status that a shell reports for a program whose reader is gone.
const BROKEN_PIPE: i32 = 141;
/// The status if output could not be written.
const OUTPUT_LOST: i32 = 1;

/// Maximum number of bytes of a line that a terminal gives to a program.
/// Source: Linux, `termios(3)`, "Canonical and noncanonical mode".
const TYPED_BYTES_MAX: usize = 4096;
/// The character that Ctrl-C types.
const CTRL_C: u8 = 3;

/// The source of a shell's scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A user types them.
    User,
    /// The command line, or standard input that is not a terminal.
    Program,
}

/// Prints a text. The process ends if its reader is gone, or if the text cannot be written: output of which a part is
/// missing would look whole.
pub(crate) fn print(text: &str) {
    let mut output = io::stdout().lock();
    let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    end_without_reader(&written);
    if let Err(error) = written {
        complain(&format!("bunko: standard output: {error}\n"));
        std::process::exit(OUTPUT_LOST);
    }
}

/// Prints a result and ends its line; an empty result has none.
pub(crate) fn print_line(text: &str) {
    if !text.is_empty() {
        print(&format!("{text}\n"));
    }
}

/// Prints a text to standard error.
pub(crate) fn complain(text: &str) {
    end_without_reader(&io::stderr().lock().write_all(text.as_bytes()));
}

/// Asks for a password at the terminal, which does not show it. If standard input is no terminal, its next line is the
/// password.
/// # Errors
/// If there is neither, and at Ctrl-C.
pub fn ask_password(question: &str) -> io::Result<String> {
    if io::stdin().is_terminal() {
        match ask_at_terminal(question) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            outcome => return outcome,
        }
    }
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        return Err(io::Error::new(ErrorKind::UnexpectedEof, "standard input has ended"));
    }
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// Asks for a password at the terminal of this process, which does not show it. Standard input may be something else.
/// # Errors
/// `NotFound` if there is no terminal; and at Ctrl-C.
pub fn ask_at_terminal(question: &str) -> io::Result<String> {
    let terminal = File::options().read(true).write(true).open("/dev/tty");
    let mut terminal = terminal.map_err(|_| io::Error::new(ErrorKind::NotFound, "there is no terminal to ask at"))?;
    let before = tcgetattr(&terminal)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    silent.local_modes.insert(LocalModes::ECHONL);
    // A signal would end the process, and leave a terminal that shows nothing: Ctrl-C ends the line instead.
    silent.local_modes.remove(LocalModes::ISIG);
    silent.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
    // Before the question: an answer that is typed at once would be shown, and flushed.
    tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
    let mut typed = [0; TYPED_BYTES_MAX];
    let asked = terminal.write_all(question.as_bytes());
    let read = asked.and_then(|()| read_typed(&terminal, &mut typed));
    tcsetattr(&terminal, OptionalActions::Flush, &before)?;
    let line = typed_line(&typed[..read?])?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// Reads one line, as a terminal gives it. Returns its length.
fn read_typed(mut terminal: &File, typed: &mut [u8]) -> io::Result<usize> {
    loop {
        match terminal.read(typed) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

fn typed_line(typed: &[u8]) -> io::Result<String> {
    match typed {
        [] => Err(io::Error::new(ErrorKind::UnexpectedEof, "the terminal gives no line")),
        [.., CTRL_C] => Err(io::Error::other("interrupted")),
        line => String::from_utf8(line.to_vec()).map_err(|_| io::Error::new(ErrorKind::InvalidData, "no UTF-8")),
    }
}

fn end_without_reader(written: &io::Result<()>) {
    if written.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        std::process::exit(BROKEN_PIPE);
    }
}

#[cfg(test)]
mod tests {
    use super::typed_line;

    #[test]
    fn ctrl_c_and_the_end_of_input_are_no_password() {
        assert_eq!(typed_line("pässword\n".as_bytes()).expect("a line"), "pässword\n");
        assert!(typed_line(b"").is_err() && typed_line(b"pass\x03").is_err() && typed_line(b"\xff\n").is_err());
    }
}
