//! Functions that the linker takes in place of the C library's.

mod content;
mod names;

use crate::watch::{self, Verdict, Watched};
use libc::{c_char, c_int, c_void};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The C library's function of this name.
macro_rules! real {
    ($name:ident: fn($($argument:ty),*) -> $result:ty) => {{
        static FOUND: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let mut found = FOUND.load(std::sync::atomic::Ordering::Relaxed);
        if found == 0 {
            found = $crate::calls::next(concat!(stringify!($name), "\0"));
            FOUND.store(found, std::sync::atomic::Ordering::Relaxed);
        }
        // SAFETY: the C library's function of that name has this type.
        unsafe { std::mem::transmute::<usize, unsafe extern "C" fn($($argument),*) -> $result>(found) }
    }};
}
pub(crate) use real;

/// Address of the next definition of a name.
fn next(name: &'static str) -> usize {
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr().cast::<c_char>()) };
    assert!(!found.is_null(), "the C library has no function {name}");
    found as usize
}

/// Makes the linker include the functions.
pub(crate) fn link() {
    std::hint::black_box((content::LINKED, names::LINKED));
}

/// Sets `errno` and returns the value that means failure.
fn fail(error: c_int) -> c_int {
    set_error(error);
    -1
}

pub(crate) fn set_error(error: c_int) {
    // SAFETY: the thread's own errno.
    unsafe { *libc::__errno_location() = error };
}

/// The watched directory of an open file, the file's inode, and its path; `None` for a file in no watched directory.
fn open_file(fd: c_int) -> Option<(Arc<Watched>, u64, PathBuf)> {
    if !watch::is_any() {
        return None;
    }
    let status = status(fd)?;
    let kind = status.st_mode & libc::S_IFMT;
    if kind != libc::S_IFREG && kind != libc::S_IFDIR {
        return None;
    }
    let watched = watch::of_inode(status.st_ino)?;
    let path = watched.path_of(status.st_ino);
    Some((watched, status.st_ino, path))
}

fn status(fd: c_int) -> Option<libc::stat> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the call fills at most the buffer that it is given.
    let outcome = unsafe { libc::fstat(fd, status.as_mut_ptr()) };
    // SAFETY: a call that returns 0 has filled the buffer.
    (outcome == 0).then(|| unsafe { status.assume_init() })
}

/// Resolves a path that begins at an open directory or at the working directory. Also returns the watched directory
/// that the path is in.
fn named(directory: c_int, path: *const c_char) -> Option<(Arc<Watched>, PathBuf)> {
    if !watch::is_any() || path.is_null() {
        return None;
    }
    // SAFETY: the caller's path ends with a zero.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
    let path = if path.is_absolute() {
        path.to_owned()
    } else if directory == libc::AT_FDCWD {
        std::env::current_dir().ok()?.join(path)
    } else {
        std::fs::read_link(format!("/proc/self/fd/{directory}")).ok()?.join(path)
    };
    watch::of_path(&path).map(|watched| (watched, path))
}

/// Runs a call that transfers no bytes, unless the verdict is failure.
fn proceed<T>(verdict: Verdict, failed: impl FnOnce(c_int) -> T, call: impl FnOnce() -> T) -> T {
    match verdict {
        Verdict::Fail(error) | Verdict::Torn(_, error) => failed(error),
        Verdict::Proceed | Verdict::Short(_) => call(),
    }
}

type Address = *const c_void;
