//! Counts and notes about operations: counters for `serverStatus` and `top`, the profiler, the lines of slow
//! operations, the last lines of the log, and facts about the process and its machine. Commands report here what they
//! did. The crate knows nothing of how commands run: an operation that ended is an [`entry::Entry`] with its
//! [`entry::Sender`].
#![forbid(unsafe_code)]

mod backup_notes;
mod class_latency;
pub mod counters;
pub mod entry;
pub mod lock_modes;
mod log_lines;
pub mod machine;
mod memory_counts;
mod namespace_usage;
pub mod observation;
mod operation_span;
mod profile_entry;
pub mod profiler;
pub mod query_statistics;
mod shown_namespace;
mod slow_operation;
pub mod statistics_scale;

pub use backup_notes::{BackupEvent, BackupNotes};
pub use class_latency::{ClassLatency, Latency};
pub use counters::{Counters, TlsVersion};
pub use log_lines::LogLines;
pub use memory_counts::MemoryCounts;
pub use namespace_usage::Usage;
pub use shown_namespace::namespace_of;
