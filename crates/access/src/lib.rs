//! Access control: credentials, the server's side of SCRAM, names of users and roles, privileges.
//!
//! **Invariant:** pure. Store, clock and randomness are not used; random values are passed in.
//! **Invariant:** a malformed part of a stored user or role allows nothing.
//! **Invariant:** no type that holds a password or a key can be printed.
#![forbid(unsafe_code)]

mod action;
mod authorization;
mod builtin_role;
mod conversation;
mod credential;
mod mechanism;
mod name;
mod owner;
mod privilege;
mod restriction;
mod uuid;

pub use action::{Action, ActionSet};
pub use authorization::Authorization;
pub use builtin_role::{BUILTIN_ROLES, BuiltinRole, Scope};
pub use conversation::{ClientFirst, Conversation, Rejection, Standing};
pub use credential::ScramCredential;
pub use mechanism::{Mechanism, ProhibitedCharacter};
pub use name::{Name, names_of};
pub use owner::Owner;
pub use privilege::{Privilege, Resource, add, privileges_of, take_off};
pub use restriction::{AddressRange, Restrictions};
pub use uuid::random_uuid;
