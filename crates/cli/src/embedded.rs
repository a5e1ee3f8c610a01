//! Servers in child processes on temporary directories, for the lab: one alone, or the members of a replica set.

mod set;

use bunko_bench::scenario::{ServerSettings, TransportSetting};
use bunko_bench::{Data, EmbeddedServer, Running};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

/// Arguments of a server beyond its defaults.
#[derive(Clone, Debug, Default)]
pub struct ServerChoice {
    /// Its storage engine, by our name; `None` for the default one.
    pub engine: Option<&'static str>,
    /// Flags of `bunko serve` with their values.
    pub options: Vec<ServerOption>,
}

/// A flag of `bunko serve` and its value, written `NAME=VALUE`: `cacheSizeGB=1` or `cache-size-gb=1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOption {
    name: String,
    value: String,
}

/// Flags that the lab sets itself.
const RESERVED: [&str; 11] = [
    "dbpath",
    "port",
    "log-format",
    "config",
    "storage-engine",
    "bind-ip",
    "print-config",
    "unix-socket",
    "no-unix-socket",
    "nounixsocket",
    "unix-socket-prefix",
];
/// Longest path of a socket in bytes, without the terminating zero.
/// Source: unix(7), `sun_path`.
const SOCKET_PATH_BYTES_MAX: usize = 107;
/// The longest name that a server gives its socket.
const SOCKET_NAME: &str = "mongodb-65535.sock";

impl FromStr for ServerOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(format!("'{text}' is not NAME=VALUE"));
        };
        let option = Self { name: name.to_owned(), value: value.to_owned() };
        if !name.chars().all(|character| character.is_ascii_alphanumeric() || character == '-') {
            return Err(format!("'{name}' is not the name of a flag of 'bunko serve'"));
        }
        if RESERVED.contains(&option.flag().trim_start_matches('-')) {
            return Err(format!("'{name}' is the lab's own business"));
        }
        Ok(option)
    }
}

impl ServerOption {
    /// The flag as the command line spells it: lowercase words joined by hyphens.
    fn flag(&self) -> String {
        let mut flag = "--".to_owned();
        let mut before = '-';
        for character in self.name.chars() {
            if character.is_ascii_uppercase() && before.is_ascii_lowercase() {
                flag.push('-');
            }
            flag.push(character.to_ascii_lowercase());
            before = character;
        }
        flag
    }
}

/// Running servers with their directories: a process that ends at once has to kill and remove them.
static RUNNING: Mutex<Vec<(u32, Vec<PathBuf>)>> = Mutex::new(Vec::new());

/// Kills all servers and removes their directories, in a process that ends now: it starts no server any more.
pub fn kill_all() {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    for (pid, directories) in running.drain(..) {
        if let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
            // A server that has ended already needs no signal.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        for directory in directories {
            // A server that has not quite ended may still write; such files are left in the directory for temporary
            // files.
            let _ = std::fs::remove_dir_all(directory);
        }
    }
    // Another thread may be about to start the next member of a set, and waits for this lock.
    std::mem::forget(running);
}

/// Servers that are started and stopped as a scenario asks: one, or the members of a set.
pub struct ChildServer {
    /// The directory in which data directories are made.
    directory: PathBuf,
    choice: ServerChoice,
    /// Each server that was started; the first one is the one to reach.
    servers: Vec<ChildProcess>,
}

impl ChildServer {
    pub fn new(directory: PathBuf, choice: ServerChoice) -> Self {
        Self { directory, choice, servers: Vec::new() }
    }

    /// Starts one server that is in no set.
    fn start_one(&mut self, data: Data, transport: TransportSetting) -> Result<Running, String> {
        if self.servers.is_empty() {
            self.servers.push(ChildProcess::new(self.directory.clone(), self.choice.clone()));
        }
        let server = &mut self.servers[0];
        server.stop();
        let mut own = vec!["--port=0".into()];
        match transport {
            TransportSetting::Tcp => own.push("--no-unix-socket".into()),
            TransportSetting::Unix => {
                let mut flag = OsString::from("--unix-socket-prefix=");
                flag.push(server.socket_directory()?);
                own.push(flag);
            }
        }
        let Started { uri, pid, data_directory } = server.start(data, transport, &own)?;
        Ok(Running { uri, pid, data_directory, settings: self.settings() })
    }

    /// The settings that the command line gives to each server.
    fn settings(&self) -> Vec<(String, String)> {
        self.choice.options.iter().map(|option| (option.name.clone(), option.value.clone())).collect()
    }
}

impl EmbeddedServer for ChildServer {
    fn start(&mut self, data: Data, settings: &ServerSettings) -> Result<Running, String> {
        let transport = settings.transport.unwrap_or_default();
        if settings.members.is_empty() {
            self.servers.truncate(1);
            return self.start_one(data, transport);
        }
        self.stop();
        self.servers.clear();
        self.start_set(&settings.members)
    }

    fn stop(&mut self) {
        // The first one is the primary, which hands over to no other one once they are gone.
        self.servers.iter_mut().rev().for_each(ChildProcess::stop);
    }
}

impl Drop for ChildServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A server in a process of its own. Its data is removed with it.
struct ChildProcess {
    /// The directory in which its data directory is made.
    directory: PathBuf,
    choice: ServerChoice,
    child: Option<Child>,
    data: Option<TempDir>,
    /// Directory of its socket, in the system's directory for temporary files: the path of the data directory may be
    /// too long for a socket.
    sockets: Option<TempDir>,
}

/// A server that has started.
struct Started {
    uri: String,
    pid: u32,
    data_directory: PathBuf,
}

impl ChildProcess {
    fn new(directory: PathBuf, choice: ServerChoice) -> Self {
        Self { directory, choice, child: None, data: None, sockets: None }
    }

    fn data_directory(&mut self, data: Data) -> Result<PathBuf, String> {
        if data == Data::Empty {
            self.data = None;
        }
        if let Some(data) = &self.data {
            return Ok(data.path().to_owned());
        }
        let made = tempfile::Builder::new().prefix("bunko-bench-").tempdir_in(&self.directory);
        let made = made.map_err(|error| format!("no directory in {}: {error}", self.directory.display()))?;
        Ok(self.data.insert(made).path().to_owned())
    }

    fn socket_directory(&mut self) -> Result<PathBuf, String> {
        if let Some(sockets) = &self.sockets {
            return Ok(sockets.path().to_owned());
        }
        let parent = std::env::temp_dir();
        let made = tempfile::Builder::new().prefix("bunko-bench-").tempdir_in(&parent);
        let made = made.map_err(|error| format!("no directory in {}: {error}", parent.display()))?;
        let bytes = made.path().join(SOCKET_NAME).as_os_str().len();
        if bytes > SOCKET_PATH_BYTES_MAX {
            let parent = parent.display();
            return Err(format!(
                "server.transport: a socket in {parent} has a path of {bytes} bytes, more than {SOCKET_PATH_BYTES_MAX}; \
                 TMPDIR may name another directory"
            ));
        }
        Ok(self.sockets.insert(made).path().to_owned())
    }
}

impl ChildProcess {
    /// Starts the server with these flags and those of the command line, and waits until it accepts connections.
    fn start(&mut self, data: Data, transport: TransportSetting, own: &[OsString]) -> Result<Started, String> {
        let data_directory = self.data_directory(data)?;
        let program = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
        let mut command = Command::new(program);
        command.args(["serve", "--log-format", "json", "--dbpath"]).arg(&data_directory).args(own);
        command.args(self.choice.engine.map(|engine| format!("--storage-engine={engine}")));
        command.args(self.choice.options.iter().map(|option| format!("{}={}", option.flag(), option.value)));
        // The lab handles Ctrl-C: it stops its servers itself once it has its figures.
        command.process_group(0).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut child = command.spawn().map_err(|error| format!("the server cannot be started: {error}"))?;
        let stderr = child.stderr.take().ok_or("the server has no stderr")?;
        let pid = child.id();
        self.child = Some(child);
        let directories = self.data.iter().chain(&self.sockets).map(|directory| directory.path().to_owned()).collect();
        running.push((pid, directories));
        drop(running);
        Ok(Started { uri: wait_for_uri(stderr, transport)?, pid, data_directory })
    }

    fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        if let Some(pid) = rustix::process::Pid::from_raw(child.id() as i32) {
            // A server that has ended already is stopped.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = child.wait();
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).retain(|(pid, _)| *pid != child.id());
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Reads log lines up to the connection string for that transport; a thread discards the rest.
fn wait_for_uri(stderr: impl Read + Send + 'static, transport: TransportSetting) -> Result<String, String> {
    let mut lines = BufReader::new(stderr).lines();
    let mut said = String::new();
    for line in lines.by_ref() {
        let line = line.map_err(|error| format!("the server's log cannot be read: {error}"))?;
        let address =
            line.split_once("mongodb://").map(|(_, rest)| rest.split(['"', '/', ' ']).next().unwrap_or_default());
        // The address of a Unix socket is its path, percent-encoded: it begins with `%2F`.
        let is_it = |address: &&str| address.starts_with("%2F") == (transport == TransportSetting::Unix);
        if let Some(address) = address.filter(is_it) {
            let uri = format!("mongodb://{address}/");
            std::thread::spawn(move || lines.for_each(drop));
            return Ok(uri);
        }
        said.push_str(&line);
        said.push('\n');
    }
    Err(format!("the server did not start:\n{said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_flags_in_either_spelling() {
        let flag =
            |text: &str| text.parse::<ServerOption>().map(|option| format!("{}={}", option.flag(), option.value));
        assert_eq!(flag("cacheSizeGB=1").as_deref(), Ok("--cache-size-gb=1"));
        assert_eq!(flag("cache-size-gb=0.5").as_deref(), Ok("--cache-size-gb=0.5"));
        assert_eq!(flag("blockCompressor=zstd").as_deref(), Ok("--block-compressor=zstd"));
        assert!(flag("cacheSizeGB").is_err_and(|error| error.contains("NAME=VALUE")));
        assert!(flag("=1").is_err() && flag("a b=1").is_err());
        assert!(flag("storageEngine=memory").is_err_and(|error| error.contains("the lab's own")));
        assert!(flag("dbpath=/").is_err());
        assert!(flag("unixSocketPrefix=/tmp").is_err() && flag("unix-socket=false").is_err());
    }
}
