//! Writers that record acknowledged writes, and the check that exactly these exist after a crash.
//!
//! The load exercises a storage engine's background work: documents are replaced and deleted soon enough for segments
//! to be emptied, extents to be rewritten and pages to be freed, under checkpoints and `compact`.

mod check;
mod collection;
mod document;
mod ledger;
mod load;
mod moment;

pub use check::check;
pub use collection::{compact, prepare};
pub use ledger::{Documents, Ledger, exactly};
pub use load::{Evidence, Level, Load};
pub use moment::{Moment, Watch};

use crate::peer::binary;
use bunko_client::{Connection, Uri};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_store::Survival;
use bunko_testkit::process::Server;
use std::net::SocketAddr;
use std::path::Path;

/// Beginning of every failure's message; `tests/planted/run` looks for it.
const BROKEN: &str = "a promise is broken";

/// Names of the engines that survive crashes, or the one in `BUNKO_ENGINE`.
pub fn durable_engines() -> Vec<&'static str> {
    let options = EngineOptions::default();
    let durable = ENGINES.iter().filter(|entry| (entry.kind)(&options).survival == Survival::Durable);
    let picked = std::env::var("BUNKO_ENGINE").ok();
    let names: Vec<_> =
        durable.map(|entry| entry.name).filter(|name| picked.as_ref().is_none_or(|picked| picked == name)).collect();
    assert!(!names.is_empty(), "BUNKO_ENGINE is {picked:?}, which is not an engine that keeps data on disk");
    names
}

/// Whether the engine with that name is tested.
pub fn is_tested(engine: &str) -> bool {
    durable_engines().contains(&engine)
}

/// Starts a server with the shortest checkpoint interval that it accepts.
/// # Errors
/// [`BROKEN`], and the error of [`Server::start`].
pub fn start(engine: &str, dbpath: &Path) -> Result<Server, String> {
    let settings = ["--storage-engine", engine, "--sync-delay", "1", "--cache-size-gb", "0.25"];
    Server::start(&binary(), dbpath, &settings).map_err(|error| format!("{BROKEN}: {error}"))
}

pub fn connect(address: SocketAddr) -> Connection {
    let uri: Uri = format!("mongodb://{address}/?connectTimeoutMS=10000").parse().expect("a valid URI");
    Connection::connect(&uri).expect("the server accepts connections")
}
