//! A worker gives up its rights before it runs a script, so a script that breaks out of the engine can do little.
#![allow(unsafe_code)]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit};
use std::os::unix::net::UnixStream;

/// Maximum number of bytes by which a worker's address space may grow: twice the heap of its scripts, and its input and
/// output.
const GROWTH_BYTES_MAX: u64 = 384 << 20;
/// The kernel ends a worker before any other process where memory is short.
const OOM_SCORE: &str = "1000";
/// Signals that a terminal or a service manager sends to a whole process group. Workers ignore them: the server ends
/// its workers.
const PASSED_OVER: [libc::c_int; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE];

/// Closes all files except the standard ones.
pub(super) fn close_other_files() {
    // SAFETY: takes three numbers. No object of this process owns a file yet.
    unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
}

/// Sets the limits of a worker. Returns whether its server still exists. A limit that the kernel or a container refuses
/// is skipped: the server ends the worker in any case.
pub(super) fn confine(server: &UnixStream) -> bool {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    for signal in PASSED_OVER {
        // SAFETY: no handler is installed, and this is the only thread.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let _ = rustix::thread::set_name(c"bunko-script");
    let _ = rustix::thread::set_no_new_privs(true);
    let _ = std::env::set_current_dir("/");
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    let address_space = address_space_bytes().map(|bytes| bytes + GROWTH_BYTES_MAX);
    // The server may have ended before the death signal was requested: its end of the socket is then closed. This is
    // checked before files are forbidden, which also forbids `poll`.
    let is_served = !has_hung_up(server);
    for resource in [Resource::Core, Resource::Fsize, Resource::Nproc, Resource::Nofile] {
        limit(resource, 0);
    }
    if let Some(bytes) = address_space {
        limit(Resource::As, bytes);
    }
    is_served
}

fn limit(resource: Resource, most: u64) {
    let most = getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most));
    let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
}

fn has_hung_up(server: &UnixStream) -> bool {
    let mut asked = [PollFd::new(server, PollFlags::empty())];
    let polled = poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    polled.is_ok() && asked[0].revents().contains(PollFlags::HUP)
}

/// Source: proc(5), `/proc/pid/statm`, first field, in pages.
fn address_space_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').next()?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
