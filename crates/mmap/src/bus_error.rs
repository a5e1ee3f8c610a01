//! Handles SIGBUS, the signal for a mapped page that cannot be read.
//!
//! A read from a map has no return value for a failed disk or a shortened file; the kernel sends a signal, which by
//! default ends the process with a core dump and no message.

use std::ffi::c_int;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The process's exit code after a SIGBUS in a map.
const EXIT_CODE: c_int = 14;

/// A mapped data file. Never freed, so that the handler may read it at any time; that costs about 200 bytes for each
/// opened engine.
struct Mapped {
    start: usize,
    end: usize,
    message: Vec<u8>,
    is_open: AtomicBool,
    next: *const Mapped,
}

/// List of all maps, newest first.
static MAPPED: AtomicPtr<Mapped> = AtomicPtr::new(std::ptr::null_mut());
/// The previous action of the signal.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(std::ptr::null_mut());
static INSTALL: Once = Once::new();

/// Keeps a map known to the handler while it exists.
pub(crate) struct Registration(&'static AtomicBool);

impl Drop for Registration {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Makes a SIGBUS in that address range end the process with a message. The first call installs the handler.
pub(crate) fn register(start: usize, length_bytes: usize, path: &Path) -> io::Result<Registration> {
    let mut message = b"bunko: storage engine 'mmap': ".to_vec();
    message.extend_from_slice(path.as_os_str().as_bytes());
    message.extend_from_slice(
        b": a mapped page cannot be read (SIGBUS): the disk failed, or the file was cut short; the process ends\n",
    );
    let mapped = Box::into_raw(Box::new(Mapped {
        start,
        end: start.saturating_add(length_bytes),
        message,
        is_open: AtomicBool::new(true),
        next: std::ptr::null(),
    }));
    let push = |next: *mut Mapped| {
        // SAFETY: no other thread can see `mapped` until the exchange below makes it the head of the list.
        unsafe { (*mapped).next = next };
        Some(mapped)
    };
    let _ = MAPPED.fetch_update(Ordering::AcqRel, Ordering::Acquire, push);
    let mut outcome = Ok(());
    INSTALL.call_once(|| outcome = install());
    // SAFETY: just allocated, and never freed.
    outcome.map(|()| Registration(unsafe { &(*mapped).is_open }))
}

fn install() -> io::Result<()> {
    // SAFETY: both structures are plain data for which zeroes are valid; the handler does only what is allowed in a
    // handler.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_bus_error as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        let previous = Box::into_raw(Box::new(std::mem::zeroed::<libc::sigaction>()));
        // Must be stored before the handler can run, because the handler reads it.
        PREVIOUS.store(previous, Ordering::Release);
        if libc::sigaction(libc::SIGBUS, &raw const action, previous) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

extern "C" fn on_bus_error(_signal: c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `info`; entries are only added to the list and never freed; write, _exit and
    // sigaction are async-signal-safe.
    unsafe {
        let address = (*info).si_addr() as usize;
        let mut mapped: *const Mapped = MAPPED.load(Ordering::Acquire);
        while let Some(map) = mapped.as_ref() {
            if map.is_open.load(Ordering::Acquire) && (map.start..map.end).contains(&address) {
                libc::write(libc::STDERR_FILENO, map.message.as_ptr().cast(), map.message.len());
                libc::_exit(EXIT_CODE);
            }
            mapped = map.next;
        }
        // The address is in no map of ours: restore the previous action, which handles the signal when it is raised
        // again on return.
        libc::sigaction(libc::SIGBUS, PREVIOUS.load(Ordering::Acquire), std::ptr::null_mut());
    }
}
