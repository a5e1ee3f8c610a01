//! Facts about a machine, from Linux: time, processes, filesystems, CPU quotas, how long file allocation takes, how late
//! threads are woken.
//!
//! Readings are cheap and return no errors: a value that this process may not see, or that this kernel does not count,
//! is `None`. Only functions that change something on disk return errors ([`allocation`], [`loop_filesystem`],
//! [`forget_cached_pages`]).
#![deny(unsafe_code)]

pub mod allocation;
mod clock;
mod control_group;
mod cpu_quota;
mod crowding;
mod disk_use;
mod filesystem;
mod listener;
mod loop_device;
pub mod loop_filesystem;
mod machine;
mod machine_cpu;
mod memory_limit;
mod mount_table;
mod page_cache;
mod pauses;
mod process;
mod process_identity;
mod raw_calls;
mod regular_files;
mod run_delay;
mod service_manager;
mod ticks;
mod time_slices;

pub use clock::Clock;
pub use cpu_quota::CpuQuota;
pub use crowding::{Crowding, rest_in_crowds};
pub use disk_use::directory_bytes;
pub use filesystem::{Filesystem, filesystem_of, free_bytes, size_bytes};
pub use listener::{listener, local_server, local_unix_server};
pub use loop_device::{LoopDevice, LoopWatch, LoopWork};
pub use machine::{Machine, machine};
pub use machine_cpu::MachineCpu;
pub use memory_limit::usable_memory_bytes;
pub use page_cache::forget_cached_pages;
pub use pauses::{SleepPriority, Sleeper, Slept, usable_processors};
pub use process::{ProcessReading, ProcessUse, private_resident_bytes};
pub use process_identity::{host_name, process_space, process_started};
pub use run_delay::thread_run_delay;
pub use service_manager::{LongStep, ServiceManager, take_inherited_sockets};
pub use time_slices::{use_long_slices, use_short_slices};
