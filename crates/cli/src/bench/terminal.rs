//! Width of tables.

use bunko_report::text::DEFAULT_WIDTH;
use std::io::IsTerminal;

/// Narrower tables would consist of ellipses only, and no screen shows wider ones.
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=1_000;

/// The width in the variable `COLUMNS`, otherwise the terminal's if standard output is one, otherwise the default.
pub fn width() -> usize {
    let stdout = std::io::stdout();
    let of_terminal = || {
        let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten();
        size.map(|size| usize::from(size.ws_col))
    };
    chosen(std::env::var("COLUMNS").ok().as_deref(), of_terminal)
}

fn chosen(columns: Option<&str>, of_terminal: impl FnOnce() -> Option<usize>) -> usize {
    // A terminal that does not know its width reports 0.
    let known = |width: &usize| *width > 0;
    let said = columns.and_then(|columns| columns.parse().ok()).filter(known);
    let width = said.or_else(|| of_terminal().filter(known)).unwrap_or(DEFAULT_WIDTH);
    width.clamp(*WIDTHS.start(), *WIDTHS.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_comes_before_the_terminal_and_the_terminal_before_the_default() {
        assert_eq!(chosen(Some("80"), || Some(100)), 80);
        assert_eq!(chosen(None, || Some(100)), 100);
        assert_eq!(chosen(Some("wide"), || Some(100)), 100);
        assert_eq!((chosen(None, || None), chosen(Some("0"), || Some(0))), (DEFAULT_WIDTH, DEFAULT_WIDTH));
        assert_eq!((chosen(Some("5"), || None), chosen(None, || Some(60_000))), (40, 1_000));
    }
}
