//! One file per command, the dispatch table and the cursor store.
//!
//! **Invariant:** a command's fields are checked against its table entry before it runs: nothing is accepted and
//! ignored.
//! **Invariant:** a reply is only sent once the write concern holds; [`Answer::acknowledgement`] says what to wait for.
#![forbid(unsafe_code)]

mod access_control;
mod authorization;
mod auto_compaction;
mod awaiting;
mod capped_options;
mod change_stream;
mod client_metadata;
mod cluster_parameters;
mod clustered_index;
mod collation_option;
mod collection_options;
mod collection_statistics;
mod collection_uuid;
mod commands;
mod connection;
mod connection_rate;
mod counters;
mod cursor_reply;
mod cursor_room;
mod cursor_store;
mod dispatch;
mod document_list;
mod encrypted_fields;
mod error_labels;
mod expiry_option;
mod fail_points;
mod feature_compatibility;
mod fields;
mod generic_options;
mod id_index_option;
mod invocation;
mod known_commands;
mod let_variables;
mod log_verbosity;
mod machine;
mod namespace_usage;
mod operation_class;
mod operation_description;
mod operations;
mod oplog_view;
mod parameters;
mod pipeline_sources;
mod pipeline_writes;
mod profiler;
mod read_concern;
mod replica_set;
mod resumed_builds;
mod retries;
mod service;
mod sessions;
mod slow_operation;
mod source_stages;
mod stable_api;
mod statistics_scale;
mod storage_engine_option;
mod stored_settings;
mod system_namespace;
mod time_series;
mod time_to_live;
mod transactions;
mod validation_options;
mod view_definition;
mod view_reads;
mod write_concern;
mod write_lock;
mod write_statement;

pub use authorization::{Asker, Privileges};
pub use awaiting::Await;
pub use commands::COMMANDS;
pub use connection::{ClientConnection, Peer};
pub use connection_rate::{ConnectionPace, ConnectionRate};
pub use counters::{Counters, TlsVersion};
pub use dispatch::{Answer, Command, Databases, Halt, Request, RunOn, TransactionUse, write_failure};
pub use fields::Fields;
pub use invocation::Invocation;
pub use operations::{Absence, Operations};
pub use parameters::{Parameters, TRANSACTION_MEMORY_BYTES};
pub use replica_set::ReplicaSet;
pub use service::{Facts, LogLines, OwnCertificate, Process, Service, World};
pub use time_to_live::{TimeToLive, delete_expired, delete_expired_until_stopped};
pub use write_concern::Acknowledgement;
