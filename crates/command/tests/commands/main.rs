//! Commands against real stores on every engine.

mod cursor_room;
mod memory_limit;
mod scripts;
mod server;
mod snapshot_reads;
mod sync_latencies;
