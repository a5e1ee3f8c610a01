//! Tables of text.

/// The text between two columns.
const GAP: &str = "  ";
/// Narrowest column of texts that are shortened, in characters.
const CELL_WIDTH_MIN: usize = 8;

/// The side of its column on which a cell stands.
#[derive(Clone, Copy, Debug)]
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
    side: Side,
}

impl Grid {
    pub(super) fn new(rows: usize) -> Self {
        Self { rows, columns: Vec::new() }
    }

    /// Adds a column, unless all its cells are empty.
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
        self.columns.push(GridColumn { cells: padded.collect(), side });
    }

    /// An empty line and the table, at most `width_max` characters wide. A wider one becomes several tables, each of
    /// which begins with the first `names` columns. Names share half of the width; texts in other columns share the
    /// rest.
    pub(super) fn lines(mut self, names: usize, width_max: usize) -> Vec<String> {
        let names = names.min(self.columns.len());
        let (names, figures) = self.columns.split_at_mut(names);
        let is_figure = |column: &&GridColumn| matches!(column.side, Side::Right);
        let widest = figures.iter().filter(is_figure).map(GridColumn::width).max().unwrap_or_default();
        clip_together(names, (width_max / 2).min(width_max.saturating_sub(widest)));
        let taken = width_of(names);
        for column in figures.iter_mut().filter(|column| matches!(column.side, Side::Left)) {
            column.clip(width_max.saturating_sub(taken).max(CELL_WIDTH_MIN));
        }
        let mut tables: Vec<Vec<&GridColumn>> = vec![names.iter().collect()];
        let mut width = taken;
        for column in figures.iter() {
            let table = tables.last_mut().expect("there is one from the start");
            if table.len() > names.len() && width + column.width() > width_max {
                tables.push(names.iter().chain([column]).collect());
                width = taken;
            } else {
                table.push(column);
            }
            width += column.width() + GAP.len();
        }
        let mut lines = Vec::new();
        for table in tables {
            lines.push(String::new());
            for row in 0..=self.rows {
                let cells: Vec<_> = table.iter().map(|column| column.cells[row].as_str()).collect();
                lines.push(cells.join(GAP).trim_end().to_owned());
            }
        }
        lines
    }
}

/// The width of columns, each with the gap after it.
fn width_of(columns: &[GridColumn]) -> usize {
    columns.iter().map(|column| column.width() + GAP.len()).sum()
}

/// Shortens the widest text again and again until all together take no more than `width_max`.
fn clip_together(columns: &mut [GridColumn], width_max: usize) {
    loop {
        let excess = width_of(columns).saturating_sub(width_max);
        let texts = columns.iter_mut().filter(|column| matches!(column.side, Side::Left));
        let Some(widest) = texts.max_by_key(|column| column.width()).filter(|column| column.width() > CELL_WIDTH_MIN)
        else {
            return;
        };
        if excess == 0 {
            return;
        }
        // A character at a time, so that two wide columns are shortened alike.
        widest.clip(widest.width() - 1);
    }
}

impl GridColumn {
    fn width(&self) -> usize {
        self.cells[0].chars().count()
    }

    /// Shortens longer cells, with an ellipsis at the end.
    fn clip(&mut self, width: usize) {
        for cell in &mut self.cells {
            let is_longer = cell.trim_end().chars().count() > width;
            let kept = if is_longer { width - 1 } else { width };
            *cell = cell.chars().take(kept).chain(is_longer.then_some('…')).collect();
        }
        let width = self.cells.iter().map(|cell| cell.trim_end().chars().count()).max().unwrap_or_default();
        self.cells.iter_mut().for_each(|cell| *cell = format!("{:<width$}", cell.trim_end()));
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
        assert_eq!(grid.lines(1, 120), ["", "name     n", "a       12", "größer   -"]);
    }

    #[test]
    fn wide_grids_continue_below_under_the_same_names() {
        let mut grid = Grid::new(1);
        grid.add("name", Side::Left, [Some("row".to_owned())].into_iter());
        for heading in ["first", "second", "third"] {
            grid.add(heading, Side::Right, [Some("x".repeat(50))].into_iter());
        }
        let lines = grid.lines(1, 120);
        assert_eq!(lines.len(), 6);
        assert!(lines.iter().all(|line| line.chars().count() <= 120), "{lines:?}");
        assert!(lines[1].contains("second") && lines[4].starts_with("name") && lines[4].ends_with("third"));
    }

    #[test]
    fn names_leave_half_of_the_width_and_text_is_clipped() {
        let mut grid = Grid::new(1);
        grid.add("name", Side::Left, [Some("a name of many words".to_owned())].into_iter());
        grid.add("n", Side::Right, [Some("1,234".to_owned())].into_iter());
        grid.add("badges", Side::Left, [Some("errors, counts differ, short".to_owned())].into_iter());
        let lines = grid.lines(1, 30);
        assert_eq!(lines[..3], ["", "name               n", "a name of ma…  1,234"]);
        assert_eq!(lines[3..], ["", "name           badges", "a name of ma…  errors, counts…"]);
    }
}
