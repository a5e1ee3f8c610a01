//! A server in a child process on a temporary directory, for the lab.

use bunko_bench::{EmbeddedServer, Running};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// Started when a scenario begins, stopped and removed when it ends.
#[derive(Default)]
pub struct ChildServer {
    running: Option<(Child, tempfile::TempDir)>,
}

impl EmbeddedServer for ChildServer {
    fn start(&mut self) -> Result<Running, String> {
        let directory = tempfile::tempdir().map_err(|error| format!("no temporary directory: {error}"))?;
        let program = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
        let mut child = Command::new(program)
            .args(["serve", "--port", "0", "--log-format", "json", "--dbpath"])
            .arg(directory.path())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the server cannot be started: {error}"))?;
        let stderr = child.stderr.take().ok_or("the server has no stderr")?;
        let pid = child.id();
        self.running = Some((child, directory));
        Ok(Running { uri: wait_for_uri(stderr)?, pid })
    }

    fn stop(&mut self) {
        if let Some((mut child, _directory)) = self.running.take() {
            // Its data is thrown away: no need for a checkpoint.
            let _ = child.kill();
            let _ = child.wait();
        }
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
