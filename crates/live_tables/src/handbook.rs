//! The table of columns in the handbook is made from the code.

use crate::columns::{COLUMNS, Shown};
use bunko_testkit::handbook::{Table, check_table};

#[test]
fn the_page_has_every_column() {
    let mut table = Table::new(&["Column", "Meaning", "Shown"]);
    for column in COLUMNS {
        let shown = match column.shown {
            Shown::Always => "always",
            Shown::OfSeveral => "with several servers, and with `--discover`",
            Shown::InSet => "if a server is in a set",
            Shown::OfBunko => "if a server is Bunko",
            Shown::OnRequest => "with `--all`, `-o` and `-O`",
        };
        table.push([format!("`{}`", column.name), column.meaning.to_owned(), shown.to_owned()]);
    }
    check_table("reference/stat-top-sample.md", "columns of stat", &table);
}
