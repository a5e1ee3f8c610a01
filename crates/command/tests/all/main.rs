//! Commands against real stores on every engine.

mod arbitrary;
mod argument_rules;
mod conflicts;
mod correlated_join;
mod cursor_room;
mod default_concerns;
mod failpoint_turns;
mod handbook;
mod id_join;
mod lost_history;
mod member;
mod memory_limit;
mod plan_shapes;
mod resumed_streams;
mod same_name;
mod scripts;
mod server;
mod shared_streams;
mod shown_commands;
mod snapshot_reads;
mod sync_latencies;
mod targets;
mod ways_agree;
