//! A replica set of several members: each member's threads around the agreement of [`bunko_replica`].
//!
//! ```text
//!   replSetMember of another member        places of the log, the clock, administrators
//!                 │                                        │
//!                 ▼                                        ▼
//!        ┌─────────────────────────── Core::step ──────────────────────────┐
//!        │                  Agreement, behind one mutex                    │
//!        └───┬──────────────────────┬─────────────────────────┬────────────┘
//!            ▼ messages             ▼ actions that block      ▼ commit point
//!      Link (`to-HOST`)       Worker (`member`)         Applier (`apply`), `Waits`
//! ```
//! | Thread | Does |
//! |---|---|
//! | `agreement` | tells the agreement that the log has moved, and that time has passed |
//! | `member` | votes, configurations, changes of role, appends and truncations, in the order of the actions |
//! | `apply` | on a secondary: applies committed records |
//! | `sync` | copies all data from another member when the log cannot bring them |
//! | `to-HOST`, one for each other member | sends messages over one connection, and reads their answers |
//!
//! **Messages.** All messages of the agreement travel in the command `replSetMember`, also the log itself: a follower's
//! `Fetch` acknowledges and asks, and the primary's `Span` brings the bytes. Messages may be lost, so a link keeps only
//! the newest message of each kind, and never more than one request is on its way.
//!
//! **Logins.** The crate takes a function that opens connections ([`Dial`]) and logs in on them. The server around it demands
//! the privilege `internal` for each message.
//!
//! **Joining.** A server that has begun a set of its own and has no data joins the set that another server initiates: it
//! keeps the set's configuration in the file `joining` and starts again, with an empty log ([`finish_joining`]).
//!
//! One server only is invited as a new member: the one that has begun the set of one with a certain id (`invitations.rs`).
//!
//! A member that has lost its files is such a server, too: another member finds it, and invites it with the remark that it
//! has forgotten its votes (`memory.rs`).
//!
//! **Invariant:** actions that change the store are carried out by the thread `member` alone, in their order.
#![forbid(unsafe_code)]

mod administration;
mod applier;
mod clock;
mod configuration;
mod core;
mod host;
mod images;
mod installed;
mod invitations;
mod kept;
mod lag;
mod link;
mod links;
mod members;
mod memory;
mod outbox;
mod peers;
mod pieces;
mod proposals;
mod requests;
mod sender;
mod standing;
mod sync;
mod sync_progress;
mod tasks;
mod waits;
mod wire;
mod worker;

pub use administration::Check;
pub use bunko_replica::{Force, MemberId, Memory};
pub use host::Host;
pub use kept::{Kept, finish_joining};
pub use members::{Inbound, Members, Received, Setup};
pub use peers::Peer;
pub use sync_progress::SyncProgress;
pub use waits::{Need, Standing, Stored, Wait};
pub use wire::{FROM_HOST, TO_HOST};

/// The command that carries messages from member to member.
pub const COMMAND: &str = "replSetMember";
/// The field of the command that asks for an image.
pub const IMAGE: &str = "image";
/// The document sequence of the command that carries bytes of the log.
pub const PARTS: &str = "parts";

/// Opens a connection to the member at `host:port`.
pub type Dial =
    std::sync::Arc<dyn Fn(&str) -> Result<bunko_client::Connection, bunko_client::ClientError> + Send + Sync>;
