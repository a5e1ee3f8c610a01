//! The mount table of this process.

use std::fs;
use std::path::PathBuf;

/// A line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The directory of the filesystem that is visible at the mount point.
    pub root: String,
    pub point: PathBuf,
    pub kind: String,
    /// A device file, or the filesystem's name for its source.
    pub source: String,
    /// Options of the filesystem; cgroup v1 lists its controllers here.
    pub options: Vec<String>,
}

/// All mounts, in the order of mounting; empty if `/proc` is not mounted.
pub(crate) fn mounts() -> Vec<Mount> {
    fs::read_to_string("/proc/self/mountinfo").map(|table| parse(&table)).unwrap_or_default()
}

pub(crate) fn parse(table: &str) -> Vec<Mount> {
    table.lines().filter_map(parse_line).collect()
}

/// Source: proc_pid_mountinfo(5). Optional fields end with a lone hyphen.
fn parse_line(line: &str) -> Option<Mount> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let mut filesystem = filesystem.split(' ');
    Some(Mount {
        root: unescape(mount.next()?),
        point: PathBuf::from(unescape(mount.next()?)),
        kind: filesystem.next()?.to_owned(),
        source: unescape(filesystem.next()?),
        options: filesystem.next()?.split(',').map(str::to_owned).collect(),
    })
}

/// Space, tab, newline and backslash are written as a backslash and three octal digits.
fn unescape(field: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n")];
    let without = escapes.iter().fold(field.to_owned(), |text, (escape, plain)| text.replace(escape, plain));
    // The backslash is last: replaced earlier, it could be taken for the beginning of an escape.
    without.replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_and_without_optional_fields() {
        let table = "\
            27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
            36 35 98:0 /sub /mnt/a\\040b rw shared:1 master:2 - ext3 /dev/loop0 rw,errors=continue\n\
            32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
            not a mount\n";
        let mounts = parse(table);
        assert_eq!(mounts.len(), 3);
        assert_eq!((mounts[0].kind.as_str(), mounts[0].source.as_str()), ("ext4", "/dev/vda"));
        assert_eq!((mounts[1].root.as_str(), mounts[1].point.as_path()), ("/sub", "/mnt/a b".as_ref()));
        assert_eq!(mounts[1].kind, "ext3");
        assert_eq!(mounts[2].options, ["rw", "cpu"]);
    }

    #[test]
    fn an_escaped_backslash_begins_no_escape() {
        assert_eq!(unescape("a\\134040b"), "a\\040b");
        assert_eq!(unescape("a\\011b\\012c\\040d"), "a\tb\nc d");
    }
}
