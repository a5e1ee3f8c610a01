//! The table of commands: each has one file, and one line here.
// All commands have one signature, even if they cannot fail.
#![allow(clippy::unnecessary_wraps)]

use crate::authorization::Privileges;
use crate::command_entry::Command;
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

mod abort_transaction;
pub(crate) mod aggregate;
mod append_oplog_note;
pub(crate) mod apply_ops;
mod audit_config;
mod auto_compact;
mod backup;
pub(crate) mod build_info;
mod bulk_insert;
pub(crate) mod bulk_write;
mod clone_collection_as_capped;
mod cluster_parameter;
pub(crate) mod coll_mod;
mod coll_stats;
mod commit_transaction;
mod compact;
mod compact_encryption_data;
pub(crate) mod configure_fail_point;
mod conn_pool_stats;
mod connection_status;
mod convert_to_capped;
mod count;
pub(crate) mod create;
pub(crate) mod create_indexes;
mod create_role;
pub(crate) mod create_user;
mod current_op;
mod data_size;
mod db_hash;
mod db_stats;
mod default_rw_concern;
pub(crate) mod delete;
mod distinct;
mod drop;
mod drop_connections;
mod drop_database;
mod drop_indexes;
mod drop_role;
mod drop_user;
mod end_sessions;
mod explain;
mod features;
pub(crate) mod file_md5;
mod find;
mod find_and_modify;
mod fsync;
mod get_cmd_line_opts;
mod get_diagnostic_data;
mod get_log;
mod get_more;
mod get_parameter;
mod getnonce;
mod grant_privileges_to_role;
mod grant_roles_to_role;
mod grant_roles_to_user;
pub(crate) mod hello;
mod host_info;
pub(crate) mod insert;
mod invalidate_user_cache;
mod kill_all_sessions;
mod kill_all_sessions_by_pattern;
mod kill_cursors;
mod kill_op;
mod kill_sessions;
mod list_collections;
mod list_commands;
mod list_databases;
mod list_indexes;
mod lock_info;
mod log_rotate;
mod logout;
mod map_reduce;
mod merge_authz_collections;
mod ping;
mod plan_cache;
mod profile;
mod query_settings;
mod re_index;
mod refresh_sessions;
mod rename_collection;
mod repl_set_get_config;
mod repl_set_get_status;
mod repl_set_initiate;
mod repl_set_member;
mod repl_set_reconfig;
mod repl_set_resize_oplog;
mod repl_set_secondary;
mod repl_set_step_down;
mod roles_info;
mod rotate_certificates;
pub(crate) mod sasl_start;
mod search_indexes;
mod server_status;
mod set_feature_compatibility_version;
mod set_index_commit_quorum;
mod set_parameter;
mod set_user_write_block_mode;
mod shutdown;
mod start_session;
mod test_version_2;
mod top;
pub(crate) mod update;
pub(crate) mod update_user;
mod users_info;
mod validate;
mod validate_db_metadata;
mod whatsmyuri;

/// All commands of the server.
pub const COMMANDS: &[Command] = &[
    merge_authz_collections::COMMAND,
    abort_transaction::COMMAND,
    aggregate::COMMAND,
    append_oplog_note::COMMAND,
    apply_ops::COMMAND,
    audit_config::GET,
    audit_config::SET,
    auto_compact::COMMAND,
    build_info::COMMAND,
    backup::COMMAND,
    bulk_insert::COMMAND,
    bulk_write::COMMAND,
    clone_collection_as_capped::COMMAND,
    cluster_parameter::GET,
    cluster_parameter::SET,
    coll_mod::COMMAND,
    coll_stats::COMMAND,
    commit_transaction::COMMAND,
    compact::COMMAND,
    compact_encryption_data::CLEANUP,
    compact_encryption_data::COMPACT,
    configure_fail_point::COMMAND,
    conn_pool_stats::COMMAND,
    connection_status::COMMAND,
    convert_to_capped::COMMAND,
    count::COMMAND,
    create::COMMAND,
    create_indexes::COMMAND,
    create_role::COMMAND,
    search_indexes::CREATE,
    create_role::UPDATE,
    create_user::COMMAND,
    current_op::COMMAND,
    data_size::COMMAND,
    db_hash::COMMAND,
    db_stats::COMMAND,
    default_rw_concern::GET,
    default_rw_concern::SET,
    delete::COMMAND,
    distinct::COMMAND,
    drop::COMMAND,
    drop_connections::COMMAND,
    drop_database::COMMAND,
    drop_indexes::COMMAND,
    search_indexes::DROP,
    drop_role::ALL,
    drop_role::COMMAND,
    drop_user::ALL,
    drop_user::COMMAND,
    end_sessions::COMMAND,
    explain::COMMAND,
    features::COMMAND,
    file_md5::COMMAND,
    find::COMMAND,
    find_and_modify::COMMAND,
    fsync::COMMAND,
    fsync::UNLOCK,
    get_cmd_line_opts::COMMAND,
    get_diagnostic_data::COMMAND,
    get_log::COMMAND,
    get_more::COMMAND,
    get_parameter::COMMAND,
    getnonce::COMMAND,
    grant_privileges_to_role::COMMAND,
    grant_privileges_to_role::REVOKE,
    grant_roles_to_role::COMMAND,
    grant_roles_to_role::REVOKE,
    grant_roles_to_user::COMMAND,
    grant_roles_to_user::REVOKE,
    hello::COMMAND,
    hello::IS_MASTER,
    host_info::COMMAND,
    insert::COMMAND,
    invalidate_user_cache::COMMAND,
    kill_all_sessions::COMMAND,
    kill_all_sessions_by_pattern::COMMAND,
    kill_cursors::COMMAND,
    kill_op::COMMAND,
    kill_sessions::COMMAND,
    list_collections::COMMAND,
    list_commands::COMMAND,
    list_databases::COMMAND,
    list_indexes::COMMAND,
    search_indexes::LIST,
    lock_info::COMMAND,
    log_rotate::COMMAND,
    logout::COMMAND,
    map_reduce::COMMAND,
    ping::COMMAND,
    plan_cache::CLEAR,
    plan_cache::CLEAR_FILTERS,
    plan_cache::LIST_FILTERS,
    plan_cache::SET_FILTER,
    profile::COMMAND,
    query_settings::REMOVE,
    query_settings::SET,
    re_index::COMMAND,
    refresh_sessions::COMMAND,
    rename_collection::COMMAND,
    repl_set_get_config::COMMAND,
    repl_set_get_status::COMMAND,
    repl_set_initiate::COMMAND,
    repl_set_member::COMMAND,
    repl_set_reconfig::COMMAND,
    repl_set_resize_oplog::COMMAND,
    repl_set_secondary::ABORT_CATCH_UP,
    repl_set_secondary::MAINTENANCE,
    repl_set_secondary::SYNC_FROM,
    repl_set_step_down::COMMAND,
    repl_set_step_down::FREEZE,
    roles_info::COMMAND,
    rotate_certificates::COMMAND,
    sasl_start::AUTHENTICATE,
    sasl_start::COMMAND,
    sasl_start::CONTINUE,
    server_status::COMMAND,
    set_feature_compatibility_version::COMMAND,
    set_index_commit_quorum::COMMAND,
    set_parameter::COMMAND,
    set_user_write_block_mode::COMMAND,
    shutdown::COMMAND,
    start_session::COMMAND,
    test_version_2::COMMAND,
    top::COMMAND,
    update::COMMAND,
    search_indexes::UPDATE,
    update_user::COMMAND,
    users_info::COMMAND,
    validate::COMMAND,
    validate_db_metadata::COMMAND,
    whatsmyuri::COMMAND,
];

// An entry takes the fields that it leaves out from `Command::PLAIN`, which has neither a name nor privileges.
const _: () = {
    let mut place = 0;
    while place < COMMANDS.len() {
        assert!(!COMMANDS[place].facts.name.is_empty(), "an entry has no name");
        assert!(!matches!(COMMANDS[place].privileges, Privileges::Undeclared), "an entry has no privileges");
        place += 1;
    }
};

/// The command of that name, which is case-sensitive.
pub fn find(name: &str) -> Option<&'static Command> {
    // Each operation looks up its command here, so a hash table is faster than a search of the list.
    static BY_NAME: LazyLock<FxHashMap<&str, &Command>> = LazyLock::new(|| {
        let names = |command: &'static Command| command.aliases.iter().chain([&command.name]);
        COMMANDS.iter().flat_map(|command| names(command).map(move |name| (*name, command))).collect()
    });
    BY_NAME.get(name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::{DocumentRef, ValueRef};
    use bunko_request::counted_as::OperationClass;
    use bunko_request::facts::{Changes, ReadConcernUse, ReadsFrom, Retry, Stability, WriteConcernUse};
    use bunko_request::internal_fields::{self, OF_ALL_COMMANDS};
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique() {
        let names: Vec<_> = COMMANDS.iter().flat_map(|command| command.aliases.iter().chain([&command.name])).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }

    #[test]
    fn no_command_takes_an_internal_field() {
        for command in COMMANDS {
            for name in OF_ALL_COMMANDS.iter().chain(command.internal_fields) {
                assert!(command.fields.iter().all(|field| field.name != *name), "{}.{name}", command.name);
                let checked = internal_fields::check(command, name, ValueRef::Boolean(true), DocumentRef::EMPTY);
                assert!(checked.is_err(), "{name}");
            }
        }
    }

    /// Facts that follow from each other, as MongoDB's commands have them.
    #[test]
    fn facts_of_an_entry_agree() {
        for command in COMMANDS {
            let name = command.name;
            let writes_documents = matches!(command.changes, Changes::Documents | Changes::DocumentsOfSeveral);
            assert_eq!(command.class == OperationClass::Write, writes_documents, "{name}: the class of writes");
            assert!(command.retry == Retry::Unsafe || writes_documents, "{name}: a retry repeats writes of documents");
            assert!(
                !writes_documents || command.write_concern == WriteConcernUse::Taken,
                "{name}: a write takes a write concern"
            );
            assert!(
                command.class != OperationClass::Read || command.reads != ReadsFrom::Nothing,
                "{name}: a read reads from somewhere"
            );
            assert!(
                command.read_concern != ReadConcernUse::AllLevels || command.reads == ReadsFrom::Collection,
                "{name}: a past state is that of a collection"
            );
            assert!(
                command.write_concern != WriteConcernUse::WithOutput || matches!(command.changes, Changes::Output(_)),
                "{name}: a write concern for an output needs one"
            );
            let ends = command.transaction.is_end();
            assert!(!ends || command.write_concern == WriteConcernUse::Taken, "{name}: an end takes a write concern");
            let of_version = match command.stable_api {
                Stability::Outside => &[],
                Stability::Version1 { fields_outside } => fields_outside,
            };
            for field in
                of_version.iter().chain(command.sequences).chain(command.query_shape.iter().map(|(name, _)| name))
            {
                assert!(command.fields.iter().any(|known| known.name == *field), "{name}: the field {field}");
            }
        }
    }
}
