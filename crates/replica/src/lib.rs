//! Agreement between the members of a replica set: who is primary, how far the log is committed, which configuration
//! counts.
//!
//! The crate does no I/O, reads no clock and has no randomness beyond a seed. A member owns one [`Agreement`] and tells
//! it each [`Event`]; the agreement answers with [`Action`]s, which the member carries out.
//!
//! ```text
//!               events                                    actions
//!   a message arrives, a connection breaks     ┌───────────┐   send a message
//!   the log has grown, is synced, is cut  ───▶ │ Agreement │ ─▶ store a vote, a configuration
//!   a vote or a configuration is stored        └───────────┘   write a term record, cut the log
//!   a tick; an administrator asks                              the commit point has moved
//! ```
//!
//! # The protocol
//!
//! **A log is described by one position**: the term of its last record, and its end ([`Position`]). Each term has at
//! most one primary, and the primary's first record names the term. So two logs that both contain records of a term
//! are equal up to the lower of the places where the term ends in them, and the small table of terms ([`Terms`]) shows
//! where two logs part. There are no entries and no indexes: bytes are never mapped to anything else.
//!
//! **Elections** (`election.rs`, where `tick` begins a campaign). Only a member whose position is at least the voter's gets its vote; a vote is on disk before it is
//! sent. A campaign begins with a *pre-vote*, which changes nothing: a voter that hears from a primary refuses it, so
//! a member that was cut off does not disturb the others. A member whose connection to the primary breaks asks at once, and
//! voters whose connections broke too agree at once. A primary that hears no majority for an election timeout steps
//! down.
//!
//! ```text
//!              timeout, broken connection             majority of pre-votes
//!   ┌──────────┐ ───────────▶ ┌───────────────────┐ ───────────────────▶ ┌───────────┐
//!   │ follower │              │ follower, asking  │                      │ candidate │
//!   └──────────┘ ◀─────────── └───────────────────┘   told to campaign   └───────────┘
//!     ▲      │     hears from the primary          ┌────────────▶            │ majority of votes
//!     │      └─────────────────────────────────────┘                         ▼
//!     │   a higher term, no majority heard, asked to                   ┌─────────┐
//!     └─────────────────────────────────────────────────────────────── │ primary │
//!                                                                      └─────────┘
//! ```
//!
//! **The log moves by pulling.** A follower sends [`Body::Fetch`] with its position and how far its log is synced; that
//! is its acknowledgement too. The primary answers with a [`Body::Span`] (the bytes travel beside it), or says where the
//! logs part ([`Body::Diverged`]). The follower then cuts its log ([`Action::Truncate`]), but never below the commit
//! point: a primary that lacks committed records is a fatal error ([`Fatal`]), not a rollback.
//!
//! **The commit point** is the place that enough data members have synced ([`Configuration::commit_quorum`]), as soon
//! as it lies in the primary's own term. It travels with spans and heartbeats; a follower takes it over only as far as
//! it knows its own log to equal the primary's. Arbiters have no log: they vote, and count for no commit point.
//!
//! **The configuration lies beside the log**, and is ordered by term and version. One voter may change at a time. The
//! primary commits nothing and changes nothing further until a majority of the new configuration's voters stores it,
//! because from then on no older configuration can elect a primary.
//!
//! **A member whose files were lost** is asked for nothing until others have told it what it must know (`memory.rs`).
//!
//! **Linearizable reads** wait for a heartbeat round, begun after the question, that a majority answers.
//!
//! # What the caller must do
//!
//! - Hand events over one at a time; carry actions out in their order. Storing may take its time, in order: the
//!   agreement waits for the event that reports it.
//! - Append and truncate for a primary only once the last vote before is stored: with its log, a member keeps the term in
//!   which it got it. `memory.rs` relies on this where a set begins.
//! - Write only while [`Agreement::writable_term`] is that of the write, checked where the log's end is reserved.
//! - Truncate with a durable intent: after a crash, either the old log is there or the cut one, never a mixture.
//! - Report [`Event::TermBegan`] before the [`Event::LogMoved`] that covers the term's record.
//!
//! The proofs are in `tests`: a simulator with crashes, clocks and a bad network, an exhaustive search of small sets,
//! and planted bugs that both must find.
#![forbid(unsafe_code)]

mod agreement;
mod configuration;
mod election;
mod event;
mod follower;
mod memory;
mod message;
mod planted;
mod position;
mod primary;
mod random;
mod recalling;
mod reconfiguration;
mod state;

pub use agreement::{Agreement, Start, State};
pub use configuration::{Configuration, Invalid, MemberConfiguration, MemberId, Stamp};
pub use event::{Action, Event, Fatal, Force, Refusal, Refused, Vote};
pub use memory::{Memory, Recalled, Remembered};
pub use message::{Body, Message, Progress};
pub use planted::Bug;
pub use position::{Compared, Lsn, Position, Term, Terms};
pub use state::Timing;
