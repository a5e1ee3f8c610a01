//! The end of a process that was left alone. A server or a shell of init scripts ends with the server that started it.
//! Any shell ends once it has neither a parent nor a reader: a script that prints nothing, or waits for a server that
//! does not answer, never learns that the reader of its output is gone, and no other program is left to stop it.

use crate::exit_status;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::os::unix::process::parent_id;
use std::process::exit;
use std::thread;
use std::time::Duration;

/// Tells the server and the shells of init scripts which process started them.
pub const PARENT_VARIABLE: &str = "BUNKO_INITDB_PARENT";
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Lets this process end together with the process that started it for init scripts, if one did: a script may wait or
/// loop for ever, and the server that it speaks to ends as well.
/// # Errors
/// A sentence, if that process has ended already.
pub fn end_with_parent() -> Result<(), String> {
    let Ok(parent) = std::env::var(PARENT_VARIABLE) else { return Ok(()) };
    set_parent_process_death_signal(Some(Signal::TERM)).map_err(|error| format!("the end of the parent: {error}"))?;
    // The kernel sends no signal for a parent that ended before it was asked for one.
    if parent_id().to_string() == parent {
        return Ok(());
    }
    Err(format!("the server {parent} that runs the scripts has ended"))
}

/// Starts a thread that ends this process when its parent has ended and its standard output has no reader. A shell
/// whose output is a file, as with `nohup`, goes on without its parent.
/// # Errors
/// If no thread can be started.
pub fn end_when_abandoned() -> std::io::Result<()> {
    let parent = parent_id();
    let watch = move || {
        while parent_id() == parent || !is_output_without_reader() {
            thread::sleep(LOOK_AGAIN);
        }
        exit(exit_status::READER_GONE.number.into());
    };
    thread::Builder::new().name("abandonment".to_owned()).spawn(watch).map(drop)
}

/// Whether standard output is a pipe that no program reads any more.
pub fn is_output_without_reader() -> bool {
    let output = std::io::stdout();
    // The kernel reports errors and ends even if it is asked for no event.
    let mut watched = [PollFd::new(&output, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut watched, Some(&now)).is_ok() && watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}
