//! Properties of a server that are visible from outside.

mod description;
mod set;
mod status;

pub use description::ServerDescription;
pub(crate) use description::{at, integer};
pub(crate) use set::{MemberKind, SetMember, SetProbe};
pub(crate) use status::StatusReading;

use bunko_bson::DocumentBuf;
use bunko_client::Connection;
use bunko_host::{LoopDevice, ProcessReading};
use std::path::PathBuf;

/// A separate connection to a server, and its process if it runs on this machine.
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

    /// Present readings of the process; `None` if it is on another machine.
    pub fn process(&self) -> Option<ProcessReading> {
        self.pid.and_then(ProcessReading::of)
    }

    /// The counters of `serverStatus`; `None` if the server lacks it.
    pub fn status(&mut self) -> Option<StatusReading> {
        let command = DocumentBuf::new().with("serverStatus", 1_i32);
        let reply = self.connection.run_command("admin", command.as_ref()).ok()?;
        Some(StatusReading::read(reply.as_ref()))
    }

    /// The loop device that holds the server's files, if they are on this machine and on such a device.
    pub fn loop_device(&self) -> Option<&LoopDevice> {
        self.loop_device.as_ref()
    }

    /// Directory of the server's files, if they are on this machine.
    pub fn data_directory(&self) -> Option<&PathBuf> {
        self.data_directory.as_ref()
    }
}
