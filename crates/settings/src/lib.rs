//! The values that administrators set and commands read: server parameters, cluster parameters, the rate of new
//! connections, query settings, default concerns, the block of users' writes, the feature compatibility version.
//!
//! A setting holds its value, and code that depends on it reads it here. Values that other crates hold are reached
//! through [`Owners`]. This crate knows nothing of how commands run: the commands store changed documents, and hand the
//! new values over.
#![forbid(unsafe_code)]

mod at_startup;
pub mod cluster_parameters;
mod connection_rate;
pub mod default_concerns;
pub mod feature_compatibility;
mod known;
mod limits;
mod log_verbosity;
mod login_parameters;
mod owners;
mod parameter;
mod parameters;
pub mod query_settings;
mod query_statistics;
mod rate_parameters;
mod statistics_parameters;
mod stored;
mod table;
pub mod user_write_block;

pub use at_startup::{parameters_of_startup, set_at_startup};
pub use connection_rate::{ConnectionPace, ConnectionRate};
pub use default_concerns::DefaultConcerns;
pub use known::is_known as is_known_parameter;
pub use limits::TRANSACTION_MEMORY_BYTES;
pub use log_verbosity::LogVerbosity;
pub use owners::{AtStart, Owners};
pub use parameter::{Parameter, not_settable};
pub use parameters::Parameters;
pub use query_statistics::QueryStatisticsLimits;
pub use stored::find_stored;
pub use table::PARAMETERS;
pub use user_write_block::UserWriteBlock;
