//! System calls that rustix lacks, or offers in a form that does not fit.
#![allow(unsafe_code)]

use rustix::process::{Resource, getrlimit};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Id of the process that listened when this connection was made; 0 if its namespace is not visible from here.
///
/// rustix returns a type that cannot be 0.
pub(crate) fn peer_pid(connection: &UnixStream) -> io::Result<i32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open as long as `connection` is borrowed; the kernel writes at most `length` bytes, all
    // of which are plain numbers.
    let outcome = unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    if outcome == 0 { Ok(peer.pid) } else { Err(io::Error::last_os_error()) }
}

/// CPU time of all threads that a process has or had, in nanoseconds.
/// # Errors
/// If there is no such process, or its clock may not be read.
pub(crate) fn cpu_time_of(pid: u32) -> io::Result<Duration> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the C library writes one number.
    let code = unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) };
    if code != 0 {
        return Err(io::Error::from_raw_os_error(code));
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes two numbers.
    let outcome = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if outcome == 0 {
        Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Takes over a descriptor that was open when this process began. Programs that this process starts do not get it.
///
/// The caller takes no number twice, nor one that this process has opened itself.
/// # Errors
/// If it is not open.
pub(crate) fn take_inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers and no pointer.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open, and by the caller's promise nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Gives the calling thread the highest real-time priority (SCHED_FIFO) that it may have.
/// # Errors
/// If it may have none.
pub(crate) fn run_before_others() -> io::Result<()> {
    // SAFETY: the call takes a number and no pointer.
    let highest = unsafe { libc::sched_get_priority_max(libc::SCHED_FIFO) };
    let allowed = getrlimit(Resource::Rtprio).current.map_or(highest, |limit| limit.min(highest as u64) as i32);
    // A privileged process is not bound by its limit, so the highest priority is tried first.
    set_fifo(highest).or_else(|_| set_fifo(allowed))
}

fn set_fifo(priority: i32) -> io::Result<()> {
    // SAFETY: the struct is plain numbers. musl's has more fields than glibc's, which Linux does not read.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: the kernel reads `parameters`, which lives until then; 0 is the calling thread.
    let outcome = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
