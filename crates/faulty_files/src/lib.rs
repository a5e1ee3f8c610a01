//! Replacements for the C library's file functions: a test decides which call fails, and every call is recorded.
//!
//! The tree library and LMDB do their own I/O, one through Rust's standard library and one in C. Both end in the C
//! library, so that its functions are the one layer below everything. This crate defines them in the test's binary,
//! where the linker finds them first, and passes each call on. Only calls on files below a watched directory count.
//!
//! - [`Watch`]: a directory whose calls are counted, fail as planned, and are recorded.
//! - [`Disk`]: the contents that a disk may have after a power cut, made from the recorded calls.
//!
//! A sync of a watched file is recorded and not passed on: [`Disk`] decides what is kept, and thousands of runs need
//! not wait for the machine's disk. Calls that the standard library or `rustix` makes without the C library are not
//! seen: build with `rustix/use-libc`.
#![cfg(target_os = "linux")]

mod calls;
mod disk;
mod recording;
mod watch;

pub use bunko_testkit::random::Random;
pub use disk::Disk;
pub use recording::{Event, FileId};
pub use watch::{Fault, Kind, Watch};
