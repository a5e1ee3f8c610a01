//! The C library's file functions, defined once more: a test decides which call fails, and every call is recorded.
//!
//! The tree library and LMDB do their own I/O, one through Rust's standard library and one in C. What all of them end in
//! is the C library, so its functions are the one layer below everything: this crate defines them in the test's binary,
//! where the linker finds them first, and passes each call on. Only calls on files below a watched directory count.
//!
//! - [`Watch`]: a directory whose calls are counted, fail as planned, and are recorded.
//! - [`Disk`]: what a disk may hold after a power cut, made from the recorded calls.
//!
//! A sync of a watched file is recorded and not passed on: what the machine keeps is decided by [`Disk`], and thousands
//! of runs need not wait for it. Calls that the standard library or `rustix` makes without the C library are not seen:
//! build with `rustix/use-libc`.
#![cfg(target_os = "linux")]

mod calls;
mod disk;
mod recording;
mod watch;

pub use disk::{Disk, Random};
pub use recording::{Event, FileId};
pub use watch::{Fault, Kind, Watch};
