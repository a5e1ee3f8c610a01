//! Commands, one file each, with the dispatch table.
//!
//! A command is one file and one line in the table of `commands`. `dispatch` takes each request through the same steps.
//!
//! **Invariant:** a command's fields are checked against its table entry before it runs, so no field is accepted and
//! ignored.
//! **Invariant:** a reply is sent only once its write concern holds; [`Answer::acknowledgement`] says what to wait for.
//! **Invariant:** a missing feature is refused with the right code.
//! **Invariant:** the privileges that a command needs stand in its entry, and are checked before anything else of the
//! command is read (`authorization`).
//! **Invariant:** `Halt::TooLong` is returned before anything has been done.
#![forbid(unsafe_code)]

mod access_control;
mod acknowledgement;
mod authorization;
mod auto_compaction;
mod capped_options;
mod clustered_index;
mod collation_option;
mod collection_options;
mod collection_uuid;
mod command_entry;
mod commands;
mod commit_quorum;
mod connection;
mod cursor_reply;
mod dispatch;
mod document_list;
mod encrypted_fields;
mod expiry_option;
mod flow_control;
mod held_back;
mod hint_option;
mod id_index_option;
mod insertion;
mod invocation;
mod known_commands;
mod let_variables;
mod member_hosts;
mod membership;
mod own_commands;
mod parameter_owners;
mod query_settings;
mod query_statistics;
mod replication;
mod reply_room;
mod resumed_builds;
mod retries;
mod scope_options;
mod service;
mod slowed_writes;
mod start_note;
mod statement_note;
mod step_up;
mod storage_engine_option;
mod stored_settings;
mod system_namespace;
mod target;
mod time_to_live;
mod transaction_targets;
mod unacknowledged;
mod update_stages;
mod validation_options;
mod view_reads;
mod write_statement;

pub use acknowledgement::Acknowledgement;
pub use authorization::Privileges;
pub use bunko_aggregate::THREAD_STACK_BYTES;
pub use bunko_authority::audit::{AuditOptions, Configuration as AuditConfiguration};
pub use bunko_authority::{
    Asker, Authority, CERTIFICATE_MECHANISM, Client, KEY_MECHANISM, LocalEnd, Membership, OwnSubject,
};
pub use bunko_catalog::Haste;
pub use bunko_members::{Dial, Kept, finish_joining};
pub use bunko_operation::RunOn;
pub use bunko_replica_set::MemberHost;
pub use bunko_request::Peer;
pub use bunko_request::facts::{Compression, Databases, Queueing, TransactionUse};
pub use bunko_request::{Field, Fields, Kind, Request};
pub use bunko_session::Halt;
pub use bunko_session::awaiting::{Await, FollowUp};
pub use bunko_session::operations::{Absence, Operations};
pub use command_entry::Command;
pub use commands::{COMMANDS, find as find_command};
pub use connection::ClientConnection;
pub use dispatch::{Answer, write_failure};
pub use invocation::Invocation;
pub use service::{Facts, OwnCertificate, Process, Service, World};
pub use time_to_live::{TimeToLive, delete_expired, delete_expired_until_stopped};
