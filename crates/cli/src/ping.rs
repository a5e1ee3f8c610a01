//! `bunko ping`: whether a server answers. An image without a shell has no other program for its health check.

use crate::exit_status;
use crate::local_server;
use bunko_bson::DocumentBuf;
use bunko_client::{ClientError, Connection, Uri};
use clap::Args;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Args)]
pub struct PingArguments {
    /// The server, with the TLS options that it needs; no login is needed
    #[arg(value_name = "URI", default_value = "mongodb://127.0.0.1:27017")]
    uri: String,
    /// Seconds after which a server that does not answer is given up
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=3600))]
    timeout: u32,
}

impl PingArguments {
    /// Asks once.
    /// # Errors
    /// A sentence that names the server and why it did not answer.
    pub fn run(&self) -> Result<ExitCode, String> {
        let mut uri: Uri = match local_server::reached_by(&self.uri).parse() {
            Ok(uri) => uri,
            Err(error) => {
                eprintln!("bunko: {error}");
                return Ok(ExitCode::from(exit_status::WRONG_CONFIGURATION.number));
            }
        };
        let patience = Duration::from_secs(self.timeout.into());
        uri.connect_timeout = patience;
        uri.server_selection_timeout = patience;
        uri.socket_timeout = Some(patience);
        ping(&uri).map_err(|error| format!("{}: {error}", uri.address()))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn ping(uri: &Uri) -> Result<(), ClientError> {
    Connection::connect(uri)?.run_command("admin", DocumentBuf::new().with("ping", 1_i32).as_ref()).map(drop)
}
