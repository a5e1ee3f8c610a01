//! The server that stands for the local host: while init scripts run, that is their own one, which has a socket and no
//! port.

use bunko_shell::at_local;

/// The connection string of the server that init scripts are run for. It takes the place of the local host in the
/// addresses of shells and tools.
pub const LOCAL_VARIABLE: &str = "BUNKO_INITDB_URI";

/// The connection string in [`LOCAL_VARIABLE`]; `None` outside of init scripts.
pub fn of_scripts() -> Option<String> {
    std::env::var(LOCAL_VARIABLE).ok()
}

/// The connection string `text`, with the scripts' server in the place of the local host.
pub fn reached_by(text: &str) -> String {
    of_scripts().map_or_else(|| text.to_owned(), |local| at_local(text, &local))
}
