//! Version, manual pages and completions, which the binary itself prints.

use std::path::Path;
use std::process::Command;

/// The version, as packages name it.
/// # Errors
/// If the binary does not run here.
pub fn version(binary: &Path) -> Result<String, String> {
    let said = String::from_utf8_lossy(&run(binary, &["--version"])?).into_owned();
    let version = said.split_whitespace().nth(1).map(str::to_owned);
    version.ok_or_else(|| format!("{} --version says '{}'", binary.display(), said.trim()))
}

/// The manual pages, by file name.
/// # Errors
/// As [`version`].
pub fn manual(binary: &Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    let directory = tempfile::tempdir().map_err(|error| format!("a temporary directory: {error}"))?;
    run(binary, &["man", &directory.path().to_string_lossy()])?;
    let entries = std::fs::read_dir(directory.path()).map_err(|error| format!("manual pages: {error}"))?;
    let mut pages = Vec::new();
    for entry in entries.flatten() {
        pages.push((entry.file_name().to_string_lossy().into_owned(), crate::payload::read(&entry.path())?));
    }
    pages.sort();
    Ok(pages)
}

/// The completions of each shell.
/// # Errors
/// As [`version`].
pub fn completions(binary: &Path) -> Result<Vec<(&'static str, Vec<u8>)>, String> {
    ["bash", "fish", "zsh"].into_iter().map(|shell| Ok((shell, run(binary, &["completions", shell])?))).collect()
}

fn run(binary: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let output = Command::new(binary).args(arguments).output();
    let output = output.map_err(|error| format!("cannot run {}: {error}", binary.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "{} {} ends with {}: {}",
            binary.display(),
            arguments.join(" "),
            output.status,
            said.trim()
        ));
    }
    Ok(output.stdout)
}
