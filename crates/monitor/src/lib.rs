//! Metrics, health and readiness over HTTP, on a port of its own (`serve --monitor-port`):
//!
//! | Path | Reply |
//! |---|---|
//! | `/metrics` | metrics, in OpenMetrics text or in the older format of Prometheus |
//! | `/healthz` | 200 while the process serves HTTP |
//! | `/readyz` | 200 while clients are served; 503 once the server stops |
//!
//! One thread with a runtime of its own serves them, so a scrape never takes a thread from the database's clients. With
//! access control, `/metrics` wants a user who may run `serverStatus`; the other two paths tell nothing and are open.
//!
//! **Invariant:** a server without the setting has neither the thread nor the socket.
//! **Invariant:** no request changes anything, and none holds more than [`CONNECTIONS_MAX`] times a few kilobytes.
//! Source: the OpenMetrics specification, version 1.0.
#![forbid(unsafe_code)]

#[cfg(test)]
mod handbook;
mod http;
mod login;
mod metrics;

pub use http::MonitorSite;

/// Maximum number of connections at once; others wait in the kernel's queue.
pub const CONNECTIONS_MAX: usize = 16;
