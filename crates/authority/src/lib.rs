//! Users and roles, logins, the check of privileges, commands without their secrets, and the audit log.
//!
//! [`Authority`] is the state that all connections share, and [`Client`] the state of one connection. The commands
//! themselves are above this crate: it knows a command by its facts, its privileges by functions of an [`Asker`], and
//! the stages of pipelines by a table that the caller passes in.
//!
//! **Invariant:** a command is shown only as a [`Shown`], without its secrets.
//! **Invariant:** malformed input never avoids a check: it is checked as strictly as anything it could be taken for.
#![forbid(unsafe_code)]

mod access_control;
mod admission;
pub mod audit;
mod authority;
mod authorization;
mod client;
mod first_message;
mod known_rights;
mod logged_in;
mod login;
mod membership;
mod password;
pub mod privileges;
mod redaction;
mod role_fields;
mod roles;
mod scram;
mod user_fields;
mod users;
mod x509;

pub use access_control::{AccessControl, DATABASE, EXTERNAL_DATABASE, MECHANISMS, ROLES, USERS};
pub use authority::Authority;
pub use client::{Client, LocalEnd};
pub use first_message::{FirstMessage, answer_first_message, offer_mechanisms};
pub use logged_in::LoggedIn;
pub use membership::{KEY_MECHANISM, Membership, OwnSubject, member_name};
pub use password::log_in_by_password;
pub use privileges::Asker;
pub use redaction::{Shown, has_namespace_of_users, is_on_users};
pub use role_fields::{
    check_exist, check_grantable, check_privileges_grantable, name_of_argument, name_to_create, privileges,
    restrictions, role_names,
};
pub use roles::{Role, all_inherited, documents_of, find_role};
pub use scram::{continue_login, start_login};
pub use user_fields::UserFields;
pub use users::{EXTERNAL, find_document, find_user, mechanisms_of, user_not_found};
pub use x509::{MECHANISM as CERTIFICATE_MECHANISM, authenticate, check_no_member};
