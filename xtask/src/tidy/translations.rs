//! A page of `docs/ja` names its English source and the source's checksum in its first line. A page whose source has
//! changed since is a failure, until a person has renewed both the text and the checksum.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use sha2::{Digest, Sha256};

use crate::findings::Findings;
use crate::source_tree;

const FOLDER: &str = "docs/ja";
/// Hexadecimal digits of a checksum in a first line.
const DIGITS: usize = 12;

pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    for page in source_tree::files(root, FOLDER)?.iter().filter(|file| file.has_extension("md")) {
        compare(&page.name, &page.read()?, |source| fs::read_to_string(root.join(source)), findings);
    }
    Ok(())
}

/// Compares a page with its source, which `read` reads by its path below the root.
fn compare(page: &str, text: &str, read: impl Fn(&str) -> io::Result<String>, findings: &mut Findings) {
    let Some((source, checksum)) = header(text) else {
        findings.fail(format!("{page}:1: the first line is not <!-- source: docs/PAGE.md sha256: {DIGITS} digits -->"));
        return;
    };
    let original = match read(source) {
        Ok(original) => original,
        Err(error) => return findings.fail(format!("{page}:1: {source}: {error}")),
    };
    let present = checksum_of(&original);
    if checksum != present {
        findings.fail(format!(
            "{page}:1: {source} has changed since it was translated: renew the page, and write sha256: {present}"
        ));
    }
    let known: BTreeSet<String> = code_blocks(&original).into_iter().map(|block| block.text).collect();
    for block in code_blocks(text).into_iter().filter(|block| !known.contains(&block.text)) {
        findings.fail(format!("{page}:{}: {source} has no such code block: copy it without a change", block.line));
    }
}

/// The source and its checksum in the first line of a translation; `None` if the line is no such header.
fn header(text: &str) -> Option<(&str, &str)> {
    let line = text.lines().next()?.strip_prefix("<!-- source: ")?.strip_suffix(" -->")?;
    let (source, checksum) = line.split_once(" sha256: ")?;
    let is_checksum = checksum.len() == DIGITS && checksum.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_checksum.then_some((source, checksum))
}

fn checksum_of(text: &str) -> String {
    let mut digits = Sha256::digest(text).iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    });
    digits.truncate(DIGITS);
    digits
}

struct CodeBlock<'a> {
    /// Number of the line that opens it.
    line: usize,
    /// Indentation of that line. It is left out of the text, because a block may stand in a list.
    indentation: &'a str,
    /// The opening line and the lines inside.
    text: String,
}

fn code_blocks(text: &str) -> Vec<CodeBlock<'_>> {
    let mut found = Vec::new();
    let mut open: Option<CodeBlock<'_>> = None;
    for (number, line) in text.lines().enumerate() {
        let bare = line.trim_start();
        let is_fence = bare.starts_with("```");
        match &mut open {
            None if is_fence => {
                let indentation = &line[..line.len() - bare.len()];
                open = Some(CodeBlock { line: number + 1, indentation, text: bare.to_owned() });
            }
            None => {}
            Some(_) if is_fence => found.extend(open.take()),
            Some(block) => {
                block.text.push('\n');
                block.text.push_str(line.strip_prefix(block.indentation).unwrap_or(line));
            }
        }
    }
    found.extend(open);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "# Stop\n\n```sh\nkill PID\n```\n\n- one\n\n  ```yaml\n  a:\n    b: 1\n  ```\n";

    fn failures_of(text: &str) -> Vec<String> {
        let mut findings = Findings::default();
        let read = |source: &str| match source {
            "docs/stop.md" => Ok(SOURCE.to_owned()),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        compare("docs/ja/stop.md", text, read, &mut findings);
        findings.failures
    }

    fn page(checksum: &str, body: &str) -> String {
        format!("<!-- source: docs/stop.md sha256: {checksum} -->\n# 停止\n\n{body}")
    }

    #[test]
    fn a_faithful_page_passes() {
        let body = "```sh\nkill PID\n```\n\n```yaml\na:\n  b: 1\n```\n";
        assert_eq!(failures_of(&page(&checksum_of(SOURCE), body)), [""; 0]);
    }

    #[test]
    fn a_page_without_checksum_is_named() {
        let line = "<!-- source: docs/stop.md sha256: 0123456789ab -->";
        assert_eq!(header(line), Some(("docs/stop.md", "0123456789ab")));
        for broken in
            ["", "# Stop", "<!-- source: docs/stop.md -->", &line.replace("ab ", "ag "), &line.replace("01", "")]
        {
            let expected = "docs/ja/stop.md:1: the first line is not <!-- source: docs/PAGE.md sha256: 12 digits -->";
            assert_eq!(failures_of(broken), [expected], "{broken}");
        }
    }

    #[test]
    fn a_missing_source_is_named() {
        let failures = failures_of("<!-- source: docs/gone.md sha256: 0123456789ab -->\n");
        assert_eq!(failures, [format!("docs/ja/stop.md:1: docs/gone.md: {}", io::ErrorKind::NotFound)]);
    }

    #[test]
    fn a_changed_source_is_told_with_the_new_checksum() {
        let present = checksum_of(SOURCE);
        assert_eq!(checksum_of("abc"), "ba7816bf8f01");
        let expected = "docs/ja/stop.md:1: docs/stop.md has changed since it was translated: renew the page, and write";
        assert_eq!(failures_of(&page("0123456789ab", "")), [format!("{expected} sha256: {present}")]);
    }

    #[test]
    fn a_code_block_that_the_source_lacks_is_named() {
        let expected = "docs/ja/stop.md:4: docs/stop.md has no such code block: copy it without a change";
        for body in ["```sh\nkill -9 PID\n```\n", "```js\nkill PID\n```\n", "```yaml\na:\nb: 1\n```\n", "```sh\nkill\n"]
        {
            assert_eq!(failures_of(&page(&checksum_of(SOURCE), body)), [expected], "{body}");
        }
    }
}
