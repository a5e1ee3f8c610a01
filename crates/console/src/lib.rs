//! A page in the browser that shows what the server does, and runs queries (`serve --console`):
//!
//! ```text
//! browser ── HTTP ── site ──┬── guard: is the request one of our own page?
//!                           ├── files: the page
//!                           ├── log_in ── `bunko_authority::log_in_by_password`
//!                           ├── reports: what the lab wrote into a directory
//!                           └── sessions ── link ── the server's own connection, as the user who logged in
//! ```
//!
//! The page has no way to the data but commands. Each runs on a connection of the server ([`bunko_server::Doorway`]),
//! as the user whose password the page sent, so privileges, limits, counters and the audit log are those of any client.
//!
//! **Invariant:** a server without the setting has neither the thread nor the socket.
//! **Invariant:** a request that may do something carries the token of a session, a header that other sites cannot
//! send, and the origin of this page. The token is in the page's memory only.
//! **Invariant:** sessions, their connections, and the bytes and times of requests and replies have limits, and memory
//! beyond a few kilobytes is drawn from the server's budget first.
#![forbid(unsafe_code)]

mod commands;
mod files;
mod guard;
mod link;
mod replies;
mod reports;
mod sessions;
mod site;

pub use site::ConsoleSite;

/// Maximum number of connections of browsers at once; others wait in the kernel's queue.
pub const CONNECTIONS_MAX: usize = 32;
