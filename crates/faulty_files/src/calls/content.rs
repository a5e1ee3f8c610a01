//! Functions that work on open files.

use super::{Address, fail, open_file, proceed, real, status};
use crate::recording::Event;
use crate::watch::{Nature, Verdict};
use libc::{c_int, c_void, iovec, off_t, size_t, ssize_t};

pub(super) const LINKED: [Address; 15] = [
    read as *const () as Address,
    pread as *const () as Address,
    pread64 as *const () as Address,
    write as *const () as Address,
    pwrite as *const () as Address,
    pwrite64 as *const () as Address,
    writev as *const () as Address,
    pwritev as *const () as Address,
    pwritev64 as *const () as Address,
    fsync as *const () as Address,
    fdatasync as *const () as Address,
    ftruncate as *const () as Address,
    ftruncate64 as *const () as Address,
    fallocate as *const () as Address,
    fallocate64 as *const () as Address,
];

/// Reads as many bytes as the plan allows. `call` reads up to the number of bytes that it is given.
fn take(name: &str, fd: c_int, count: size_t, call: impl Fn(size_t) -> ssize_t) -> ssize_t {
    let Some((watched, _, path)) = open_file(fd) else { return call(count) };
    match watched.enter(name, &path, Nature::Read(count)) {
        Verdict::Proceed => call(count),
        Verdict::Short(part) => call(part),
        Verdict::Fail(error) | Verdict::Torn(_, error) => fail(error) as ssize_t,
    }
}

fn real_write(fd: c_int, bytes: &[u8], offset: Option<off_t>) -> ssize_t {
    let (start, length) = (bytes.as_ptr().cast::<c_void>(), bytes.len());
    if let Some(offset) = offset {
        let real = real!(pwrite64: fn(c_int, *const c_void, size_t, off_t) -> ssize_t);
        // SAFETY: the bytes are borrowed for the whole call.
        unsafe { real(fd, start, length, offset) }
    } else {
        let real = real!(write: fn(c_int, *const c_void, size_t) -> ssize_t);
        // SAFETY: as above.
        unsafe { real(fd, start, length) }
    }
}

/// Where a write without an offset begins.
fn position(fd: c_int) -> off_t {
    // SAFETY: neither call touches memory.
    unsafe {
        if libc::fcntl(fd, libc::F_GETFL) & libc::O_APPEND != 0 {
            status(fd).map_or(0, |status| status.st_size)
        } else {
            libc::lseek(fd, 0, libc::SEEK_CUR)
        }
    }
}

/// Writes as many bytes as the plan allows to a watched file; `None` for any other.
fn give(name: &str, fd: c_int, bytes: &[u8], offset: Option<off_t>) -> Option<ssize_t> {
    let (watched, inode, path) = open_file(fd)?;
    let (length, error) = match watched.enter(name, &path, Nature::Write(bytes.len())) {
        Verdict::Proceed => (bytes.len(), None),
        Verdict::Short(part) => (part, None),
        Verdict::Torn(part, error) => (part, Some(error)),
        Verdict::Fail(error) => return Some(fail(error) as ssize_t),
    };
    let write = || (offset.unwrap_or_else(|| position(fd)), real_write(fd, &bytes[..length], offset));
    let (_, written) = watched.perform(write, |&(start, written), files| {
        let length = usize::try_from(written).ok()?;
        // SAFETY: the call touches no memory.
        let is_synced = unsafe { libc::fcntl(fd, libc::F_GETFL) } & libc::O_DSYNC != 0;
        Some(Event::Write { file: files.id(inode)?, offset: start as u64, bytes: bytes[..length].to_vec(), is_synced })
    });
    Some(error.map_or(written, |error| fail(error) as ssize_t))
}

/// The bytes of several buffers.
///
/// # Safety
/// As for `writev`.
unsafe fn gathered(buffers: *const iovec, count: c_int) -> Vec<u8> {
    // SAFETY: the caller's promise.
    let buffers = unsafe { std::slice::from_raw_parts(buffers, count as usize) };
    let mut bytes = Vec::new();
    for buffer in buffers.iter().filter(|buffer| buffer.iov_len > 0) {
        // SAFETY: the caller's promise.
        bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(buffer.iov_base.cast::<u8>(), buffer.iov_len) });
    }
    bytes
}

/// The bytes at an address.
/// # Safety
/// As for `write`.
unsafe fn bytes_of<'a>(start: *const c_void, length: size_t) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) }
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, into: *mut c_void, count: size_t) -> ssize_t {
    let real = real!(read: fn(c_int, *mut c_void, size_t) -> ssize_t);
    // SAFETY: the caller's promise.
    take("read", fd, count, |count| unsafe { real(fd, into, count) })
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pread(fd: c_int, into: *mut c_void, count: size_t, offset: off_t) -> ssize_t {
    let real = real!(pread: fn(c_int, *mut c_void, size_t, off_t) -> ssize_t);
    // SAFETY: the caller's promise.
    take("pread", fd, count, |count| unsafe { real(fd, into, count, offset) })
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pread64(fd: c_int, into: *mut c_void, count: size_t, offset: off_t) -> ssize_t {
    let real = real!(pread64: fn(c_int, *mut c_void, size_t, off_t) -> ssize_t);
    // SAFETY: the caller's promise.
    take("pread64", fd, count, |count| unsafe { real(fd, into, count, offset) })
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, from: *const c_void, count: size_t) -> ssize_t {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes_of(from, count) };
    give("write", fd, bytes, None).unwrap_or_else(|| real_write(fd, bytes, None))
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite(fd: c_int, from: *const c_void, count: size_t, offset: off_t) -> ssize_t {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes_of(from, count) };
    give("pwrite", fd, bytes, Some(offset)).unwrap_or_else(|| real_write(fd, bytes, Some(offset)))
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(fd: c_int, from: *const c_void, count: size_t, offset: off_t) -> ssize_t {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes_of(from, count) };
    give("pwrite64", fd, bytes, Some(offset)).unwrap_or_else(|| real_write(fd, bytes, Some(offset)))
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(fd: c_int, buffers: *const iovec, count: c_int) -> ssize_t {
    if open_file(fd).is_none() {
        let real = real!(writev: fn(c_int, *const iovec, c_int) -> ssize_t);
        // SAFETY: the caller's promise.
        return unsafe { real(fd, buffers, count) };
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { gathered(buffers, count) };
    give("writev", fd, &bytes, None).unwrap_or_else(|| real_write(fd, &bytes, None))
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev(fd: c_int, buffers: *const iovec, count: c_int, offset: off_t) -> ssize_t {
    // SAFETY: the caller's promise.
    let bytes = unsafe { gathered(buffers, count) };
    give("pwritev", fd, &bytes, Some(offset)).unwrap_or_else(|| real_write(fd, &bytes, Some(offset)))
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev64(fd: c_int, buffers: *const iovec, count: c_int, offset: off_t) -> ssize_t {
    // SAFETY: the caller's promise.
    let bytes = unsafe { gathered(buffers, count) };
    give("pwritev64", fd, &bytes, Some(offset)).unwrap_or_else(|| real_write(fd, &bytes, Some(offset)))
}

/// Records a sync, which is not passed on.
fn sync(name: &str, fd: c_int, real: unsafe extern "C" fn(c_int) -> c_int) -> c_int {
    // SAFETY: the call touches no memory.
    let Some((watched, inode, path)) = open_file(fd) else { return unsafe { real(fd) } };
    proceed(watched.enter(name, &path, Nature::Grow), fail, || {
        watched.perform(|| 0, |_, files| Some(Event::Sync { file: files.id(inode)? }))
    })
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    sync("fsync", fd, real!(fsync: fn(c_int) -> c_int))
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    sync("fdatasync", fd, real!(fdatasync: fn(c_int) -> c_int))
}

fn resize(name: &str, fd: c_int, length: off_t) -> c_int {
    let real = real!(ftruncate64: fn(c_int, off_t) -> c_int);
    // SAFETY: the call touches no memory.
    let call = || unsafe { real(fd, length) };
    let Some((watched, inode, path)) = open_file(fd) else { return call() };
    let grows = status(fd).is_some_and(|status| status.st_size < length);
    let nature = if grows { Nature::Grow } else { Nature::Change };
    proceed(watched.enter(name, &path, nature), fail, || {
        watched.perform(call, |outcome, files| {
            let event = Event::Resize { file: files.id(inode)?, length: length as u64 };
            (*outcome == 0).then_some(event)
        })
    })
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftruncate(fd: c_int, length: off_t) -> c_int {
    resize("ftruncate", fd, length)
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftruncate64(fd: c_int, length: off_t) -> c_int {
    resize("ftruncate64", fd, length)
}

fn allocate(name: &str, fd: c_int, mode: c_int, offset: off_t, length: off_t) -> c_int {
    let real = real!(fallocate64: fn(c_int, c_int, off_t, off_t) -> c_int);
    // SAFETY: the call touches no memory.
    let call = || unsafe { real(fd, mode, offset, length) };
    let Some((watched, inode, path)) = open_file(fd) else { return call() };
    let is_hole = mode & libc::FALLOC_FL_PUNCH_HOLE != 0;
    let nature = if is_hole { Nature::Change } else { Nature::Grow };
    proceed(watched.enter(name, &path, nature), fail, || {
        watched.perform(call, |outcome, files| {
            let file = files.id(inode)?;
            let event = if is_hole {
                Event::Punch { file, offset: offset as u64, length: length as u64 }
            } else {
                Event::Allocate { file, end: (offset + length) as u64 }
            };
            (*outcome == 0).then_some(event)
        })
    })
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fallocate(fd: c_int, mode: c_int, offset: off_t, length: off_t) -> c_int {
    allocate("fallocate", fd, mode, offset, length)
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fallocate64(fd: c_int, mode: c_int, offset: off_t, length: off_t) -> c_int {
    allocate("fallocate64", fd, mode, offset, length)
}
