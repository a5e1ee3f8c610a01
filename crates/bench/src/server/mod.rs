//! What can be known of a server from outside.

mod description;
mod status;

pub use description::ServerDescription;
pub(crate) use description::{at, integer};
pub(crate) use status::StatusReading;

use bunko_bson::DocumentBuf;
use bunko_client::Connection;
use bunko_host::{LoopDevice, ProcessReading};
use std::path::PathBuf;

/// A connection of its own, and the process if it runs here.
pub(crate) struct Probe {
    connection: Connection,
    pid: Option<u32>,
    data_directory: Option<PathBuf>,
    loop_device: Option<LoopDevice>,
}

impl Probe {
    pub fn new(connection: Connection, pid: Option<u32>, data_directory: Option<PathBuf>) -> Self {
        let loop_device = data_directory.as_deref().and_then(LoopDevice::below);
        Self { connection, pid, data_directory, loop_device }
    }

    /// The process as it is now; `None` where it is on another machine.
    pub fn process(&self) -> Option<ProcessReading> {
        self.pid.and_then(ProcessReading::of)
    }

    /// What `serverStatus` counts; `None` where the server lacks it.
    pub fn status(&mut self) -> Option<StatusReading> {
        let command = DocumentBuf::new().with("serverStatus", 1_i32);
        let reply = self.connection.run_command("admin", command.as_ref()).ok()?;
        Some(StatusReading::read(reply.as_ref()))
    }

    /// The loop device that its files lie on, if they are on this machine and on one.
    pub fn loop_device(&self) -> Option<&LoopDevice> {
        self.loop_device.as_ref()
    }

    /// Where its files are, if they are on this machine.
    pub fn data_directory(&self) -> Option<&PathBuf> {
        self.data_directory.as_ref()
    }
}
