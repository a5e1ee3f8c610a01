//! Parts of the handbook that are made from the tables in the code, so that a page cannot differ from the program.
//!
//! A part stands between two lines that readers of the page do not see:
//! ```text
//! <!-- made from the code: NAME -->
//! | Command | Databases |
//! <!-- end of NAME -->
//! ```
//! A test makes the text again and compares it with the page; `REWRITE=1 cargo test` writes it into the page. The
//! last column of a table may be prose, which the test takes from the page: a row of the code without prose fails.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Held while a part is compared or written, because tests of one process may write parts of one page.
static PAGES: Mutex<()> = Mutex::new(());

/// A table of a page: the headings, and the cells of each row.
pub struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Makes a table without rows.
    pub fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Appends a row.
    ///
    /// # Panics
    /// If the row has another number of cells than the table has headings.
    pub fn push(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().map(|cell| cell.replace('|', "\\|")).collect();
        assert_eq!(cells.len(), self.headings.len(), "{cells:?}");
        self.rows.push(cells);
    }

    fn text(&self) -> String {
        let mut text = format!("| {} |\n|{}\n", self.headings.join(" | "), "---|".repeat(self.headings.len()));
        for row in &self.rows {
            let line = row.iter().fold(String::from("|"), |line, cell| {
                if cell.is_empty() { line + " |" } else { format!("{line} {cell} |") }
            });
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// Adds a last column with the prose that the page has for each row, which its first cell names.
    fn with_prose(mut self, heading: &'static str, old: &str) -> (Self, Vec<String>) {
        let row = |line: &str| {
            let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split(" |").map(str::trim).collect();
            Some((cells.first()?.to_string(), cells.last()?.to_string()))
        };
        let written: BTreeMap<String, String> = old.lines().filter_map(row).collect();
        let mut missing = Vec::new();
        for cells in &mut self.rows {
            let prose = written.get(&cells[0]).filter(|prose| !prose.is_empty()).cloned();
            if prose.is_none() {
                missing.push(cells[0].clone());
            }
            cells.push(prose.unwrap_or_default());
        }
        self.headings.push(heading);
        (self, missing)
    }
}

/// Widest line of a paragraph, in characters.
const WIDTH: usize = 140;

/// A paragraph of names as code, in the order of the alphabet, without `$_internal...`, which clients do not use.
pub fn paragraph<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut names: Vec<&str> = names.into_iter().filter(|name| !name.starts_with("$_internal")).collect();
    names.sort_by_key(|name| name.to_ascii_lowercase());
    let mut lines = vec![String::new()];
    for word in list(names).split(' ') {
        let line = lines.last_mut().expect("a line");
        if line.len() + 1 + word.len() > WIDTH {
            lines.push(word.to_owned());
        } else {
            *line = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        }
    }
    lines.join("\n") + ".\n"
}

/// The names as code, separated by commas.
pub fn list<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Compares a part of a page below `docs` with a text of the code.
///
/// # Panics
/// If they differ, or the page has no such part.
pub fn check(page: &str, name: &str, text: &str) {
    let _alone = PAGES.lock().unwrap_or_else(PoisonError::into_inner);
    PagePart::open(page, name).check(text);
}

/// As `check`, for a table.
///
/// # Panics
/// As `check`.
pub fn check_table(page: &str, name: &str, table: &Table) {
    check(page, name, &table.text());
}

/// As `check_table`, for a table whose last column, with this heading, is prose that stands in the page only.
///
/// # Panics
/// As `check`, and for a row without prose.
pub fn check_table_with_prose(page: &str, name: &str, table: Table, heading: &'static str) {
    let _alone = PAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let part = PagePart::open(page, name);
    let (table, missing) = table.with_prose(heading, part.old());
    part.check(&table.text());
    assert!(missing.is_empty(), "docs/{page}: the column '{heading}' says nothing about {}", missing.join(", "));
}

/// A page that was read, and the place of a part in it.
struct PagePart<'n> {
    name: &'n str,
    path: PathBuf,
    page: String,
    begin: usize,
    end: usize,
}

impl<'n> PagePart<'n> {
    fn open(page: &str, name: &'n str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
        let page = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (first, last) = (format!("<!-- made from the code: {name} -->\n\n"), format!("<!-- end of {name} -->\n"));
        let begin = page.find(&first).map(|found| found + first.len());
        let begin = begin.unwrap_or_else(|| panic!("{} lacks the line {first}", path.display()));
        let length = page[begin..].find(&last).unwrap_or_else(|| panic!("{} lacks the line {last}", path.display()));
        Self { name, path, page, begin, end: begin + length }
    }

    fn old(&self) -> &str {
        &self.page[self.begin..self.end]
    }

    fn check(&self, text: &str) {
        let text = format!("{text}\n");
        if self.old() == text {
            return;
        }
        if std::env::var_os("REWRITE").is_some() {
            let page = format!("{}{text}{}", &self.page[..self.begin], &self.page[self.end..]);
            fs::write(&self.path, page).unwrap_or_else(|error| panic!("{}: {error}", self.path.display()));
            return;
        }
        let of_code: Vec<&str> = text.lines().filter(|line| !self.old().lines().any(|old| old == *line)).collect();
        let of_page: Vec<&str> = self.old().lines().filter(|old| !text.lines().any(|line| line == *old)).collect();
        panic!(
            "{}: the part '{}' differs from the code; run the test with REWRITE=1.\nThe code says:\n{}\n\
             The page says:\n{}",
            self.path.display(),
            self.name,
            of_code.join("\n"),
            of_page.join("\n")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["Name", "Values"]);
        table.push(["`one`".to_owned(), String::new()]);
        table.push(["`two`".to_owned(), "a|b".to_owned()]);
        table
    }

    #[test]
    fn a_table_is_text() {
        assert_eq!(table().text(), "| Name | Values |\n|---|---|\n| `one` | |\n| `two` | a\\|b |\n");
        assert_eq!(list(["a", "b"]), "`a`, `b`");
    }

    #[test]
    fn a_paragraph_is_wrapped() {
        let names: Vec<String> = (100..140).map(|number| format!("$a{number}")).collect();
        let text = paragraph(names.iter().map(String::as_str).chain(["$_internalOne"]));
        assert!(text.starts_with("`$a100`, `$a101`,") && text.ends_with("`$a139`.\n"), "{text}");
        assert!(text.lines().all(|line| line.len() <= WIDTH && !line.ends_with(' ')), "{text}");
    }

    #[test]
    fn prose_is_kept_and_missed() {
        let old = "| Name | Values | Meaning |\n|---|---|---|\n| `one` | 1 to 2 | The first. |\n| `zero` | | Gone. |\n";
        let (table, missing) = table().with_prose("Meaning", old);
        let expected = "| Name | Values | Meaning |\n|---|---|---|\n| `one` | | The first. |\n| `two` | a\\|b | |\n";
        assert_eq!(table.text(), expected);
        assert_eq!(missing, ["`two`"]);
    }
}
