//! Limit of the process's open files: sockets, segments and extents are files.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Minimum number of files with which a server can serve a handful of clients.
pub const FILES_MIN: u64 = 64;
/// Minimum number of files that are reserved for segments, extents and trees.
const OWN_FILES_MIN: u64 = 32;
/// These reserved files are at least one part in this many of all files, as with mongod.
const OWN_FILES_PART: u64 = 5;

/// Raises the limit of open files to the hard limit and returns it; `None` if there is no limit.
/// # Errors
/// A sentence that names the limit, if it is too low for a server.
pub fn raise_limit() -> Result<Option<u64>, String> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let before = limit.current;
        limit.current = limit.maximum;
        if setrlimit(Resource::Nofile, limit).is_err() {
            // The kernel refuses such a high limit: the old one stays.
            limit.current = before;
        }
    }
    match limit.current {
        Some(files) if files < FILES_MIN => {
            Err(format!("the limit of open files is {files} (ulimit -n), and a server needs at least {FILES_MIN}"))
        }
        files => Ok(files),
    }
}

/// How many of the `wanted` connections fit into the limit of open files.
pub fn connections_max(wanted: usize, files: Option<u64>) -> usize {
    let Some(files) = files else { return wanted };
    let own = (files / OWN_FILES_PART).max(OWN_FILES_MIN);
    wanted.min(usize::try_from(files.saturating_sub(own)).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_left_for_the_data() {
        assert_eq!(connections_max(65_536, None), 65_536);
        assert_eq!(connections_max(65_536, Some(1024)), 820);
        assert_eq!(connections_max(65_536, Some(64)), 32);
        assert_eq!(connections_max(10, Some(1024)), 10);
    }
}
