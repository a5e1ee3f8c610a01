//! Scripts that MongoDB's images run on an empty data directory. They are refused, because this binary has no shell to
//! run them: a server without the users and data that they make would look healthy.
//! Source: the documentation of Docker's official image `mongo`, "Initializing a fresh instance".

use std::path::{Path, PathBuf};

/// Where those images look for scripts.
const DIRECTORY: &str = "/docker-entrypoint-initdb.d";

/// Checks that there are no scripts to run. As in those images, a directory with data needs none.
/// # Errors
/// A sentence that names the first script, and what to do.
pub fn check(dbpath: &Path) -> Result<(), String> {
    let scripts = scripts(Path::new(DIRECTORY));
    match scripts.first() {
        Some((script, advice)) if is_new(dbpath) => Err(format!(
            "{} cannot be run: {advice}. Start without the file, and do its work from a client, for example: mongosh \
             mongodb://HOST:PORT/DATABASE --file SCRIPT",
            script.display()
        )),
        _ => Ok(()),
    }
}

/// The scripts in a directory in the order of their names, each with the reason why it cannot be run.
fn scripts(directory: &Path) -> Vec<(PathBuf, &'static str)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut scripts: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.path();
            let advice = match path.extension()?.to_str()? {
                "js" => "scripts of mongosh are not supported yet",
                "sh" => "the server starts no shell",
                _ => return None,
            };
            Some((path, advice))
        })
        .collect();
    scripts.sort();
    scripts
}

/// Whether a data directory has nothing in it but what a new filesystem has.
fn is_new(dbpath: &Path) -> bool {
    let entries = std::fs::read_dir(dbpath).into_iter().flatten().flatten();
    entries.into_iter().all(|entry| entry.file_name() == "lost+found")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_in_order_and_other_files_are_not() {
        let directory = tempfile::tempdir().expect("writable");
        assert_eq!(scripts(&directory.path().join("missing")), []);
        for name in ["20-data.sh", "10-users.js", "README.md", "js", "30.js.bak"] {
            std::fs::write(directory.path().join(name), "").expect("written");
        }
        let found = scripts(directory.path());
        let names: Vec<_> = found.iter().filter_map(|(path, _)| path.file_name()?.to_str()).collect();
        assert_eq!(names, ["10-users.js", "20-data.sh"]);
    }

    #[test]
    fn a_directory_with_files_is_not_new() {
        let directory = tempfile::tempdir().expect("writable");
        assert!(is_new(directory.path()) && is_new(&directory.path().join("missing")));
        std::fs::create_dir(directory.path().join("lost+found")).expect("made");
        assert!(is_new(directory.path()));
        std::fs::write(directory.path().join("bunko.lock"), "").expect("written");
        assert!(!is_new(directory.path()));
    }
}
