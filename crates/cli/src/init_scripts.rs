//! Scripts that MongoDB's images run on an empty data directory, in the order of their names: `.js` files through
//! `bunko shell`, `.sh` files through `sh` or as the programs that they are. A server without the users and data that
//! they make would look healthy, so a start without them is refused: where a script cannot be run, where one fails, and
//! where an earlier start ended before the last one.
//!
//! The scripts run before any client can connect. A server of their own, this program once more, listens at a socket in
//! the data directory and nowhere else; it stops in order, and the start goes on. To the shells and tools that scripts
//! start, the local host is that socket ([`LOCAL_VARIABLE`]).
//!
//! Source: the documentation of Docker's official image `mongo`, "Initializing a fresh instance".

use crate::abandonment::{PARENT_VARIABLE, end_with_parent};
use crate::configuration::Settings;
use crate::init_stop::StopSignals;
use crate::local_server::LOCAL_VARIABLE;
use crate::shell::URI_VARIABLE;
use bunko_client::{Connection, Uri, UriError, percent_encoded};
use bunko_server::ListeningSockets;
use bunko_store::Survival;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Where MongoDB's images look for scripts.
const DIRECTORY: &str = "/docker-entrypoint-initdb.d";
/// Names another directory.
const DIRECTORY_VARIABLE: &str = "BUNKO_INITDB_DIRECTORY";
/// The database of the scripts.
const DATABASE_VARIABLE: &str = "MONGO_INITDB_DATABASE";
/// Tells a server that it is the scripts' own, and where it listens.
const SOCKET_VARIABLE: &str = "BUNKO_INITDB_SOCKET";
/// The running program, even if its file has been replaced.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// File of a data directory whose scripts have not all run.
const UNFINISHED: &str = "unfinished-initialization";
/// Longest wait for the scripts' server: it opens an empty directory.
const SERVER_WAIT_MAX: Duration = Duration::from_mins(1);
/// Longest wait for one answer of the scripts' server.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Bytes of a program that tell what runs it.
const HEAD_BYTES: u64 = 256;

/// The scripts of an empty data directory; none for any other.
pub struct InitScripts {
    scripts: Vec<Script>,
    dbpath: PathBuf,
}

/// Which scripts have run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    Nothing,
    All,
}

struct Script {
    path: PathBuf,
    runner: Runner,
}

/// The program that runs a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runner {
    /// `bunko shell`.
    Shell,
    /// `sh`.
    Sh,
    /// The script itself, which is a program.
    Itself,
}

impl InitScripts {
    /// Finds the scripts to run. As in MongoDB's images, a directory with data needs none.
    /// # Errors
    /// A sentence that names the first script that cannot be run, or the directory that an earlier start left
    /// unfinished.
    pub fn find(settings: &Settings) -> Result<Self, String> {
        let none = Self { scripts: Vec::new(), dbpath: settings.dbpath.clone() };
        if std::env::var_os(SOCKET_VARIABLE).is_some() {
            return Ok(none);
        }
        let directory = std::env::var_os(DIRECTORY_VARIABLE).map_or_else(|| PathBuf::from(DIRECTORY), PathBuf::from);
        let (scripts, dbpath) = (scripts(&directory), &settings.dbpath);
        if dbpath.join(UNFINISHED).exists() {
            return Err(format!(
                "an earlier start ended before all scripts in {} had run: {} is half made; empty it, and start again",
                directory.display(),
                dbpath.display()
            ));
        }
        let (Some(first), true) = (scripts.first(), is_new(dbpath)) else { return Ok(none) };
        if settings.survival == Survival::Volatile {
            return Err(format!(
                "{}: the engine '{}' keeps nothing that a script makes",
                first.display(),
                settings.asked_engine
            ));
        }
        let has_sh = programs().any(|directory| directory.join("sh").is_file());
        let scripts: Result<Vec<_>, _> = scripts.into_iter().map(|path| Script::of(path, has_sh)).collect();
        Ok(Self { scripts: scripts?, ..none })
    }

    /// Runs the scripts, as the first user if there is one.
    /// # Errors
    /// A sentence that names the script that failed, or the signal that ended it.
    pub fn run(&self, user: Option<(&str, &str)>) -> Result<Ran, String> {
        if self.scripts.is_empty() {
            return Ok(Ran::Nothing);
        }
        let signals = StopSignals::hear()?;
        let socket = self.dbpath.join("initialization.sock");
        let unfinished = self.dbpath.join(UNFINISHED);
        let failed = |path: &Path, error: &std::io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(&self.dbpath).map_err(|error| failed(&self.dbpath, &error))?;
        fs::write(&unfinished, "").and_then(|()| self.sync()).map_err(|error| failed(&unfinished, &error))?;
        let mut server = start_server(&socket)?;
        let outcome = wait_for(&mut server, &socket, &signals).and_then(|()| {
            let uri = uri(&socket, user);
            self.scripts.iter().try_for_each(|script| script.run(&uri, &signals))
        });
        let outcome = outcome.and_then(|()| signals.check(&"all scripts had run"));
        let stopped = stop(&mut server);
        let advice = |error| format!("{error}; {} is half made: empty it before the next start", self.dbpath.display());
        outcome.and(stopped).map_err(advice)?;
        // The server removes its socket only if it stops in order.
        let _ = fs::remove_file(&socket);
        fs::remove_file(&unfinished).and_then(|()| self.sync()).map_err(|error| failed(&unfinished, &error))?;
        // The program that runs anew would not know of a signal that this one has heard.
        signals.check(&"the start of the server")?;
        Ok(Ran::All)
    }

    /// Makes a file's name, or its absence, survive a crash: the next start must know whether all scripts have run.
    fn sync(&self) -> std::io::Result<()> {
        File::open(&self.dbpath)?.sync_all()
    }
}

/// The socket of the server that is only for scripts; `None` for any other server.
/// # Errors
/// A sentence that names the socket.
pub fn own_socket() -> Result<Option<ListeningSockets>, String> {
    let Some(path) = std::env::var_os(SOCKET_VARIABLE).map(PathBuf::from) else { return Ok(None) };
    // Only the scripts know the socket: without the process that runs them, the server has no use.
    end_with_parent()?;
    // A server that starts again, as a new member of a set does, left its socket's file, which would prevent a new one.
    let _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    ListeningSockets::of_manager(vec![listener.into()]).map(Some)
}

/// This program once more, as a child that ends with it.
fn own_program() -> Command {
    let mut command = Command::new(OWN_PROGRAM);
    command.env(PARENT_VARIABLE, std::process::id().to_string()).stdin(Stdio::null());
    command
}

fn start_server(socket: &Path) -> Result<Child, String> {
    // The command line of a program called `mongod` lacks the word `serve`.
    let flags = std::env::args_os().skip(1).skip_while(|argument| argument == "serve");
    let mut command = own_program();
    command.arg("serve").args(flags).env(SOCKET_VARIABLE, socket);
    for of_manager in ["NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"] {
        command.env_remove(of_manager);
    }
    command.spawn().map_err(|error| format!("the server for the scripts cannot be started: {error}"))
}

/// Waits until the server answers.
fn wait_for(server: &mut Child, socket: &Path, signals: &StopSignals) -> Result<(), String> {
    let mut without_login: Uri =
        uri(socket, None).parse().map_err(|error: UriError| format!("{}: {error}", socket.display()))?;
    without_login.connect_timeout = ANSWER_WAIT_MAX;
    let attempts = SERVER_WAIT_MAX.as_millis() / LOOK_AGAIN.as_millis();
    for _ in 0..attempts {
        signals.check(&"the first script")?;
        // The kernel accepts connections before the server can be stopped in order: an answer says that it can.
        if UnixStream::connect(socket).is_ok() && Connection::connect(&without_login).is_ok() {
            return Ok(());
        }
        if let Ok(Some(status)) = server.try_wait() {
            return Err(format!("the server for the scripts ended: {status}"));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Err("the server for the scripts does not listen".to_owned())
}

fn uri(socket: &Path, user: Option<(&str, &str)>) -> String {
    let database = std::env::var(DATABASE_VARIABLE).ok().filter(|name| !name.is_empty());
    let login = user.map(|(name, password)| format!("{}:{}@", percent_encoded(name), percent_encoded(password)));
    format!(
        "mongodb://{}{}/{}{}",
        login.as_deref().unwrap_or_default(),
        percent_encoded(socket.as_os_str().as_encoded_bytes()),
        percent_encoded(database.as_deref().unwrap_or("test")),
        if login.is_some() { "?authSource=admin" } else { "" }
    )
}

impl Script {
    /// # Errors
    /// A sentence, if nothing runs the script.
    fn of(path: PathBuf, has_sh: bool) -> Result<Self, String> {
        let is_javascript = path.extension().is_some_and(|end| end == "js");
        let runner = match is_javascript {
            true => Runner::Shell,
            false if is_program(&path) => Runner::Itself,
            false if has_sh => Runner::Sh,
            false => {
                return Err(format!(
                    "{} cannot be run: there is no sh here (an image without a shell has none), and the file is not a \
                     program that runs by itself. Write it in JavaScript as a .js file, or start without it and do its \
                     work from a client, for example: bunko shell mongodb://HOST:PORT/DATABASE --file SCRIPT.js",
                    path.display()
                ));
            }
        };
        Ok(Self { path, runner })
    }

    fn run(&self, uri: &str, signals: &StopSignals) -> Result<(), String> {
        let shown = self.path.display();
        signals.check(&shown)?;
        eprintln!("bunko: running {shown}");
        let mut command = match self.runner {
            Runner::Shell => {
                let mut shell = own_program();
                shell.args(["shell", "--quiet", "--file"]).arg(&self.path).env(URI_VARIABLE, uri);
                shell
            }
            Runner::Sh => Command::new("sh"),
            Runner::Itself => Command::new(&self.path),
        };
        if self.runner == Runner::Sh {
            command.arg(&self.path);
        }
        // A group of its own, so that a signal ends the programs that the script runs, too.
        let child = command.env(LOCAL_VARIABLE, uri).stdin(Stdio::null()).process_group(0).spawn();
        let mut child = child.map_err(|error| format!("{shown} cannot be run: {error}"))?;
        let status = signals.while_running(&mut child);
        signals.check(&format!("{shown} had ended"))?;
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{shown} failed: {status}")),
            Err(error) => Err(format!("{shown} cannot be waited for: {error}")),
        }
    }
}

/// The directories of programs.
fn programs() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect::<Vec<_>>().into_iter()
}

/// Whether the system can run a file: it may be executed, and is a program or names an interpreter that exists.
fn is_program(path: &Path) -> bool {
    let may_run = fs::metadata(path).is_ok_and(|facts| facts.permissions().mode() & 0o111 != 0);
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    if !may_run || read.is_err() {
        return false;
    }
    let Some(line) = head.strip_prefix(b"#!") else { return head.starts_with(b"\x7fELF") };
    let words = line.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    let interpreter = words.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    Path::new(OsStr::from_bytes(interpreter)).is_file()
}

fn stop(server: &mut Child) -> Result<(), String> {
    if let Some(pid) = Pid::from_raw(server.id().cast_signed()) {
        // The process may have ended by itself.
        let _ = kill_process(pid, Signal::TERM);
    }
    match server.wait() {
        Ok(status) if ExitStatus::success(&status) => Ok(()),
        Ok(status) => Err(format!("the server for the scripts did not stop in order: {status}")),
        Err(error) => Err(format!("the server for the scripts is lost: {error}")),
    }
}

/// The scripts in a directory in the order of their names.
fn scripts(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_script = |path: &PathBuf| path.extension().is_some_and(|end| end == "js" || end == "sh");
    let mut scripts: Vec<_> = entries.map(|entry| entry.path()).filter(is_script).collect();
    scripts.sort();
    scripts
}

/// Whether a data directory has nothing in it but what a new filesystem has.
fn is_new(dbpath: &Path) -> bool {
    let entries = fs::read_dir(dbpath).into_iter().flatten().flatten();
    entries.into_iter().all(|entry| entry.file_name() == "lost+found")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_in_order_and_other_files_are_not() {
        let directory = tempfile::tempdir().expect("writable");
        assert!(scripts(&directory.path().join("missing")).is_empty());
        for name in ["20-data.sh", "10-users.js", "README.md", "js", "30.js.bak"] {
            fs::write(directory.path().join(name), "").expect("written");
        }
        let found = scripts(directory.path());
        let names: Vec<_> = found.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        assert_eq!(names, ["10-users.js", "20-data.sh"]);
    }

    #[test]
    fn a_directory_with_files_is_not_new() {
        let directory = tempfile::tempdir().expect("writable");
        assert!(is_new(directory.path()) && is_new(&directory.path().join("missing")));
        fs::create_dir(directory.path().join("lost+found")).expect("made");
        assert!(is_new(directory.path()));
        fs::write(directory.path().join("bunko.lock"), "").expect("written");
        assert!(!is_new(directory.path()));
    }

    #[test]
    fn the_scripts_log_in_as_the_first_user() {
        let made = uri(Path::new("/data/db/i.sock"), Some(("me@x", "p:w")));
        assert_eq!(made, "mongodb://me%40x:p%3Aw@%2Fdata%2Fdb%2Fi.sock/test?authSource=admin");
        assert_eq!(uri(Path::new("/i.sock"), None), "mongodb://%2Fi.sock/test");
    }
}
