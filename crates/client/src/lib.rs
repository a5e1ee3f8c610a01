//! A lean MongoDB wire client for the lab and the tools.
//!
//! There are two interfaces: [`Connection`] blocks and is for control work (checks, tools); [`load`] drives many
//! connections with many requests in flight from few threads and costs less CPU than any server that it measures.
//!
//! **Invariant:** nothing here depends on the kind of server; any that speaks OP_MSG (MongoDB 3.6 and later) will do.
//! **Invariant:** a load counts latency from the moment at which a request was due.
#![forbid(unsafe_code)]

mod auth;
mod byte_dialer;
mod connection;
mod cursor;
mod error;
pub mod frame;
pub mod load;
mod pipeline;
mod reply;
mod settings;
mod stream;
mod tls;
mod topology;
mod uri;
mod write_concern;

pub use byte_dialer::{ByteDialer, ByteStream};
pub use connection::Connection;
pub use cursor::Cursor;
pub use error::{ClientError, CommandError};
pub use pipeline::Pipeline;
pub use reply::{Reply, ReplyChecker, check_reply};
pub use tls::{TlsOptions, Verification};
pub use topology::{Dialer, is_router};
pub use uri::{Credential, DEFAULT_PORT, Host, Mechanism, ReadPreference, Uri, UriError, percent_encoded};
pub use write_concern::{Acknowledgement, WriteConcern};
