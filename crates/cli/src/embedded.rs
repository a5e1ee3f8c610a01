//! A server in a child process on a temporary directory, for the lab.

use bunko_bench::{Data, EmbeddedServer, Running};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The storage engines that there are. A server takes the only one.
pub const ENGINES: [&str; 1] = ["lsm"];

/// A server that is started and stopped as a scenario asks; its data is removed with it.
pub struct ChildServer {
    /// Where its data directory is made.
    directory: PathBuf,
    child: Option<Child>,
    data: Option<TempDir>,
}

impl ChildServer {
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, child: None, data: None }
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
}

impl EmbeddedServer for ChildServer {
    fn start(&mut self, data: Data) -> Result<Running, String> {
        self.stop();
        let data_directory = self.data_directory(data)?;
        let program = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
        let mut command = Command::new(program);
        command.args(["serve", "--port", "0", "--log-format", "json", "--dbpath"]).arg(&data_directory);
        // Ctrl-C is for the lab, which stops its servers itself once it has its figures.
        command.process_group(0).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("the server cannot be started: {error}"))?;
        let stderr = child.stderr.take().ok_or("the server has no stderr")?;
        let pid = child.id();
        self.child = Some(child);
        Ok(Running { uri: wait_for_uri(stderr)?, pid, data_directory })
    }

    fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        if let Some(pid) = rustix::process::Pid::from_raw(child.id() as i32) {
            // A server that is gone already has stopped.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = child.wait();
    }
}

impl Drop for ChildServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Reads log lines up to the one with the connection string; a thread swallows the rest.
fn wait_for_uri(stderr: impl Read + Send + 'static) -> Result<String, String> {
    let mut lines = BufReader::new(stderr).lines();
    let mut said = String::new();
    for line in lines.by_ref() {
        let line = line.map_err(|error| format!("the server's log cannot be read: {error}"))?;
        if let Some((_, rest)) = line.split_once("mongodb://") {
            let address = rest.split(['"', '/', ' ']).next().unwrap_or_default();
            let uri = format!("mongodb://{address}/");
            std::thread::spawn(move || lines.for_each(drop));
            return Ok(uri);
        }
        said.push_str(&line);
        said.push('\n');
    }
    Err(format!("the server did not start:\n{said}"))
}
