//! Functions that create, rename and remove the names of files.

use super::{Address, fail, named, proceed, real, status};
use crate::recording::Event;
use crate::watch::Nature;
use libc::{AT_FDCWD, c_char, c_int, c_uint, mode_t};
use std::fs::symlink_metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub(super) const LINKED: [Address; 14] = [
    open as *const () as Address,
    open64 as *const () as Address,
    openat as *const () as Address,
    openat64 as *const () as Address,
    rename as *const () as Address,
    renameat as *const () as Address,
    renameat2 as *const () as Address,
    link as *const () as Address,
    linkat as *const () as Address,
    unlink as *const () as Address,
    unlinkat as *const () as Address,
    rmdir as *const () as Address,
    mkdir as *const () as Address,
    mkdirat as *const () as Address,
];

fn inode(path: &Path) -> Option<u64> {
    symlink_metadata(path).ok().map(|metadata| metadata.ino())
}

/// Opens a file, and records the call if it creates or empties the file.
fn open_file(name: &str, directory: c_int, path: *const c_char, flags: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let Some((watched, path)) = named(directory, path) else { return call() };
    let is_new = flags & libc::O_CREAT != 0 && inode(&path).is_none();
    let is_emptied = flags & libc::O_TRUNC != 0;
    let nature = match (is_new, is_emptied) {
        (true, _) => Nature::Grow,
        (false, true) => Nature::Change,
        (false, false) => Nature::Look,
    };
    proceed(watched.enter(name, &path, nature), fail, || {
        watched.perform(call, |fd, files| {
            let inode = status(*fd)?.st_ino;
            if is_new {
                let (directory, name) = files.entry(&path)?;
                let file = files.add(inode, &path);
                return Some(Event::Create { directory, name, file, is_directory: false });
            }
            is_emptied.then_some(Event::Resize { file: files.id(inode)?, length: 0 })
        })
    })
}

fn rename_file(
    name: &str,
    (from_directory, from): (c_int, *const c_char),
    (to_directory, to): (c_int, *const c_char),
    call: impl FnOnce() -> c_int,
) -> c_int {
    let (Some((watched, from)), Some((_, to))) = (named(from_directory, from), named(to_directory, to)) else {
        return call();
    };
    let (moved, replaced) = (inode(&from), inode(&to));
    proceed(watched.enter(name, &from, Nature::Grow), fail, || {
        watched.perform(call, |outcome, files| {
            if *outcome != 0 {
                return None;
            }
            let file = files.id(moved?)?;
            if let Some(replaced) = replaced {
                files.forget(replaced);
            }
            files.moved(&from, &to);
            Some(Event::Rename { from: files.entry(&from)?, to: files.entry(&to)?, file })
        })
    })
}

fn link_file(
    name: &str,
    (from_directory, from): (c_int, *const c_char),
    (to_directory, to): (c_int, *const c_char),
    call: impl FnOnce() -> c_int,
) -> c_int {
    let (Some((_, from)), Some((watched, to))) = (named(from_directory, from), named(to_directory, to)) else {
        return call();
    };
    proceed(watched.enter(name, &to, Nature::Grow), fail, || {
        watched.perform(call, |outcome, files| {
            let (directory, name) = files.entry(&to)?;
            let event = Event::Link { directory, name, file: files.id(inode(&from)?)? };
            (*outcome == 0).then_some(event)
        })
    })
}

fn remove(name: &str, directory: c_int, path: *const c_char, call: impl FnOnce() -> c_int) -> c_int {
    let Some((watched, path)) = named(directory, path) else { return call() };
    let removed = symlink_metadata(&path).ok();
    proceed(watched.enter(name, &path, Nature::Change), fail, || {
        watched.perform(call, |outcome, files| {
            if *outcome != 0 {
                return None;
            }
            if let Some(removed) = removed.filter(|removed| removed.is_dir() || removed.nlink() == 1) {
                files.forget(removed.ino());
            }
            let (directory, name) = files.entry(&path)?;
            Some(Event::Unlink { directory, name })
        })
    })
}

fn make_directory(name: &str, directory: c_int, path: *const c_char, call: impl FnOnce() -> c_int) -> c_int {
    let Some((watched, path)) = named(directory, path) else { return call() };
    proceed(watched.enter(name, &path, Nature::Grow), fail, || {
        watched.perform(call, |outcome, files| {
            if *outcome != 0 {
                return None;
            }
            let (directory, name) = files.entry(&path)?;
            let file = files.add(inode(&path)?, &path);
            Some(Event::Create { directory, name, file, is_directory: true })
        })
    })
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    let real = real!(open: fn(*const c_char, c_int, mode_t) -> c_int);
    // SAFETY: the caller's promise.
    let call = || unsafe { real(path, flags, mode) };
    open_file("open", AT_FDCWD, path, flags, call)
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    let real = real!(open64: fn(*const c_char, c_int, mode_t) -> c_int);
    // SAFETY: the caller's promise.
    let call = || unsafe { real(path, flags, mode) };
    open_file("open64", AT_FDCWD, path, flags, call)
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat(directory: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    let real = real!(openat: fn(c_int, *const c_char, c_int, mode_t) -> c_int);
    // SAFETY: the caller's promise.
    let call = || unsafe { real(directory, path, flags, mode) };
    open_file("openat", directory, path, flags, call)
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat64(directory: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    let real = real!(openat64: fn(c_int, *const c_char, c_int, mode_t) -> c_int);
    // SAFETY: the caller's promise.
    let call = || unsafe { real(directory, path, flags, mode) };
    open_file("openat64", directory, path, flags, call)
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    let real = real!(rename: fn(*const c_char, *const c_char) -> c_int);
    // SAFETY: the caller's promise.
    let call = || unsafe { real(from, to) };
    rename_file("rename", (AT_FDCWD, from), (AT_FDCWD, to), call)
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat(
    from_directory: c_int,
    from: *const c_char,
    to_directory: c_int,
    to: *const c_char,
) -> c_int {
    let real = real!(renameat: fn(c_int, *const c_char, c_int, *const c_char) -> c_int);
    // SAFETY: the caller's promise.
    let call = || unsafe { real(from_directory, from, to_directory, to) };
    rename_file("renameat", (from_directory, from), (to_directory, to), call)
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat2(
    from_directory: c_int,
    from: *const c_char,
    to_directory: c_int,
    to: *const c_char,
    flags: c_uint,
) -> c_int {
    let real = real!(renameat2: fn(c_int, *const c_char, c_int, *const c_char, c_uint) -> c_int);
    // SAFETY: the caller's promise.
    let call = || unsafe { real(from_directory, from, to_directory, to, flags) };
    rename_file("renameat2", (from_directory, from), (to_directory, to), call)
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn link(from: *const c_char, to: *const c_char) -> c_int {
    let real = real!(link: fn(*const c_char, *const c_char) -> c_int);
    // SAFETY: the caller's promise.
    let call = || unsafe { real(from, to) };
    link_file("link", (AT_FDCWD, from), (AT_FDCWD, to), call)
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn linkat(
    from_directory: c_int,
    from: *const c_char,
    to_directory: c_int,
    to: *const c_char,
    flags: c_int,
) -> c_int {
    let real = real!(linkat: fn(c_int, *const c_char, c_int, *const c_char, c_int) -> c_int);
    // SAFETY: the caller's promise.
    let call = || unsafe { real(from_directory, from, to_directory, to, flags) };
    link_file("linkat", (from_directory, from), (to_directory, to), call)
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    let real = real!(unlink: fn(*const c_char) -> c_int);
    // SAFETY: the caller's promise.
    let call = || unsafe { real(path) };
    remove("unlink", AT_FDCWD, path, call)
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlinkat(directory: c_int, path: *const c_char, flags: c_int) -> c_int {
    let real = real!(unlinkat: fn(c_int, *const c_char, c_int) -> c_int);
    // SAFETY: the caller's promise.
    let call = || unsafe { real(directory, path, flags) };
    remove("unlinkat", directory, path, call)
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmdir(path: *const c_char) -> c_int {
    let real = real!(rmdir: fn(*const c_char) -> c_int);
    // SAFETY: the caller's promise.
    let call = || unsafe { real(path) };
    remove("rmdir", AT_FDCWD, path, call)
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
    let real = real!(mkdir: fn(*const c_char, mode_t) -> c_int);
    // SAFETY: the caller's promise.
    let call = || unsafe { real(path, mode) };
    make_directory("mkdir", AT_FDCWD, path, call)
}

/// Replaces the C library's function of this name.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkdirat(directory: c_int, path: *const c_char, mode: mode_t) -> c_int {
    let real = real!(mkdirat: fn(c_int, *const c_char, mode_t) -> c_int);
    // SAFETY: the caller's promise.
    let call = || unsafe { real(directory, path, mode) };
    make_directory("mkdirat", directory, path, call)
}
