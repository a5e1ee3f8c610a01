//! Tables of text.

/// Columns of characters that a table may take; what is wider continues in a second table below.
const WIDTH_MAX: usize = 120;

/// On which side of its column a cell stands.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Left,
    Right,
}

/// A table before its widths are known.
pub(super) struct Grid {
    rows: usize,
    pub(super) columns: Vec<GridColumn>,
}

pub(super) struct GridColumn {
    /// The heading, then the rows, all of the same width.
    cells: Vec<String>,
}

impl Grid {
    pub(super) fn new(rows: usize) -> Self {
        Self { rows, columns: Vec::new() }
    }

    /// Adds a column, unless there is nothing in it.
    pub(super) fn add(&mut self, heading: &str, side: Side, cells: impl Iterator<Item = Option<String>>) {
        let cells: Vec<_> = cells.collect();
        debug_assert_eq!(cells.len(), self.rows);
        if cells.iter().all(Option::is_none) {
            return;
        }
        let filled = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
        let cells: Vec<_> = [heading.to_owned()].into_iter().chain(filled).collect();
        let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or_default();
        let padded = cells.iter().map(|cell| match side {
            Side::Left => format!("{cell:<width$}"),
            Side::Right => format!("{cell:>width$}"),
        });
        self.columns.push(GridColumn { cells: padded.collect() });
    }

    /// An empty line and the table; if it is too wide, several, each of which begins with the first `names` columns.
    pub(super) fn lines(&self, names: usize) -> Vec<String> {
        let (names, figures) = self.columns.split_at(names.min(self.columns.len()));
        let width = |columns: &[&GridColumn]| columns.iter().map(|column| column.width() + 2).sum::<usize>();
        let mut tables: Vec<Vec<&GridColumn>> = vec![names.iter().collect()];
        for column in figures {
            let table = tables.last_mut().expect("there is one from the start");
            if table.len() > names.len() && width(table) + column.width() > WIDTH_MAX {
                tables.push(names.iter().chain([column]).collect());
            } else {
                table.push(column);
            }
        }
        let mut lines = Vec::new();
        for table in tables {
            lines.push(String::new());
            for row in 0..=self.rows {
                let cells: Vec<_> = table.iter().map(|column| column.cells[row].as_str()).collect();
                lines.push(cells.join("  ").trim_end().to_owned());
            }
        }
        lines
    }
}

impl GridColumn {
    fn width(&self) -> usize {
        self.cells[0].chars().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_aligned_and_empty_columns_left_out() {
        let mut grid = Grid::new(2);
        grid.add("name", Side::Left, ["a", "größer"].into_iter().map(|cell| Some(cell.to_owned())));
        grid.add("nothing", Side::Right, [None, None].into_iter());
        grid.add("n", Side::Right, [Some("12".to_owned()), None].into_iter());
        assert_eq!(grid.lines(1), ["", "name     n", "a       12", "größer   -"]);
    }

    #[test]
    fn what_is_too_wide_continues_below_under_the_same_names() {
        let mut grid = Grid::new(1);
        grid.add("name", Side::Left, [Some("row".to_owned())].into_iter());
        for heading in ["first", "second", "third"] {
            grid.add(heading, Side::Right, [Some("x".repeat(50))].into_iter());
        }
        let lines = grid.lines(1);
        assert_eq!(lines.len(), 6);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH_MAX), "{lines:?}");
        assert!(lines[1].contains("second") && lines[4].starts_with("name") && lines[4].ends_with("third"));
    }
}
