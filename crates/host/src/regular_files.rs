//! The regular files below a directory that other processes may change at the same time.

use std::fs::{self, FileType, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// Calls `visit` for each regular file at or below `path`. Symbolic links below it are not followed, and files that
/// vanish meanwhile are skipped.
/// # Errors
/// The first error of `visit`, or of a directory that cannot be read; `NotFound` only for `path` itself.
pub(crate) fn visit(path: &Path, mut visit: impl FnMut(&Path, &Metadata) -> io::Result<()>) -> io::Result<()> {
    let mut open: Vec<(PathBuf, FileType)> = vec![(path.to_owned(), fs::metadata(path)?.file_type())];
    while let Some((path, kind)) = open.pop() {
        if kind.is_dir() {
            for entry in unless_vanished(fs::read_dir(&path))?.into_iter().flatten() {
                let entry = entry?;
                open.extend(unless_vanished(entry.file_type())?.map(|kind| (entry.path(), kind)));
            }
        } else if kind.is_file()
            && let Some(metadata) = unless_vanished(fs::metadata(&path))?
        {
            unless_vanished(visit(&path, &metadata))?;
        }
    }
    Ok(())
}

fn unless_vanished<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(path: &Path) -> Vec<String> {
        let mut names = Vec::new();
        visit(path, |file, _| {
            names.push(file.file_name().expect("a file").to_string_lossy().into_owned());
            Ok(())
        })
        .expect("readable");
        names.sort();
        names
    }

    #[test]
    fn files_at_all_depths_are_seen_once_and_links_are_not() {
        let directory = tempfile::tempdir().expect("writable");
        let deep = directory.path().join("a/b");
        fs::create_dir_all(&deep).expect("writable");
        fs::write(directory.path().join("top"), b"x").expect("writable");
        fs::write(deep.join("deep"), b"x").expect("writable");
        symlink(directory.path(), deep.join("loop")).expect("writable");
        symlink(deep.join("deep"), directory.path().join("again")).expect("writable");
        assert_eq!(names(directory.path()), ["deep", "top"]);
        assert_eq!(names(&deep.join("deep")), ["deep"]);
    }

    #[test]
    fn vanishing_files_are_passed_over_but_the_top_must_exist() {
        let directory = tempfile::tempdir().expect("writable");
        fs::write(directory.path().join("one"), b"x").expect("writable");
        fs::write(directory.path().join("two"), b"x").expect("writable");
        let mut seen = 0;
        let removing = visit(directory.path(), |_, _| {
            seen += 1;
            // Removes the other file too, which then is not visited.
            fs::remove_dir_all(directory.path())
        });
        assert!(removing.is_ok());
        assert_eq!(seen, 1);
        let missing = visit(directory.path(), |_, _| Ok(())).expect_err("it is gone");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
