//! Rows under headers, aligned while they come.

/// Number of groups of rows after which the headers are shown again.
const GROUPS_BETWEEN_HEADERS: u64 = 10;

/// Remembers the widths of the columns that were shown, so that later rows stand below earlier ones.
#[derive(Default)]
pub(crate) struct Grid {
    headers: Vec<String>,
    widths: Vec<usize>,
    groups: u64,
}

impl Grid {
    /// Formats the lines of a group of rows, after the headers where they are due, and widens columns for the rows.
    pub fn group(&mut self, headers: &[String], rows: &[Vec<String>]) -> String {
        if self.headers != headers {
            self.headers = headers.to_vec();
            self.widths = headers.iter().map(|header| width(header)).collect();
            self.groups = 0;
        }
        let are_due = self.groups.is_multiple_of(GROUPS_BETWEEN_HEADERS);
        self.groups += 1;
        for row in rows {
            for (widest, cell) in self.widths.iter_mut().zip(row) {
                *widest = (*widest).max(width(cell));
            }
        }
        let shown = are_due.then_some(&self.headers).into_iter().chain(rows);
        shown.map(|row| self.line(row)).collect()
    }

    /// As [`Self::group`], without headers. Columns are as wide as if they had some.
    pub fn rows(&mut self, headers: &[String], rows: &[Vec<String>]) -> String {
        let lines = self.group(headers, rows);
        let first = lines.lines().count() - rows.len();
        lines.lines().skip(first).fold(String::new(), |text, line| text + line + "\n")
    }

    fn line(&self, cells: &[String]) -> String {
        let mut line = String::new();
        for (cell, widest) in cells.iter().zip(&self.widths) {
            let gap = usize::from(!line.is_empty());
            line.extend(std::iter::repeat_n(' ', gap + widest.saturating_sub(width(cell))));
            line.push_str(cell);
        }
        line.push('\n');
        line
    }
}

/// Width in characters.
fn width(cell: &str) -> usize {
    cell.chars().count()
}

/// A text of a server without control characters, with which it could take over the terminal.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '?' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn columns_grow_and_headers_come_again() {
        let (mut grid, headers) = (Grid::default(), cells("host,conn"));
        assert_eq!(grid.group(&headers, &[cells("a:1,3")]), "host conn\n a:1    3\n");
        assert_eq!(
            grid.group(&headers, &[cells("long:27017,3"), cells("a:1,12345")]),
            "long:27017     3\n       a:1 12345\n"
        );
        let later: Vec<_> = (2..=10).map(|_| grid.group(&headers, &[cells("a:1,3")])).collect();
        assert!(later[..8].iter().all(|group| group == "       a:1     3\n"), "{later:?}");
        assert_eq!(later[8], "      host  conn\n       a:1     3\n");
        assert_eq!(grid.group(&cells("host,set"), &[cells("a:1,é")]), "host set\n a:1   é\n");
    }

    #[test]
    fn rows_without_headers() {
        let (mut grid, headers) = (Grid::default(), cells("host,conn"));
        for _ in 0..20 {
            assert_eq!(grid.rows(&headers, &[cells("a:1,3"), cells("b:1,4")]), " a:1    3\n b:1    4\n");
        }
    }

    #[test]
    fn control_characters_are_not_shown() {
        assert_eq!(harmless("rs\u{1b}[2Jx\n"), "rs?[2Jx?");
    }
}
