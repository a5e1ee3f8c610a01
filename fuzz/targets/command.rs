//! Arbitrary commands to two servers that hold everything in memory: one without access control, and one that asks for
//! a login on a connection that has not logged in.
#![no_main]

#[path = "../../crates/command/tests/all/arbitrary/servers.rs"]
mod servers;
#[path = "../../crates/command/tests/all/arbitrary/shape.rs"]
mod shape;

use bunko_memory::MemoryOptions;
use libfuzzer_sys::fuzz_target;
use servers::Servers;
use std::cell::RefCell;

thread_local! {
    static SERVERS: RefCell<Servers> =
        RefCell::new(Servers::new(|| bunko_memory::kind(MemoryOptions { limit_bytes: 64 << 20 })));
}

fuzz_target!(|input: &[u8]| SERVERS.with_borrow_mut(|servers| servers.feed(input)));
