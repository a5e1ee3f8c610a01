//! A series as a row of characters.

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Characters of a row; several values of a longer series share one.
pub(super) const WIDTH_MAX: usize = 60;
/// The row's height is at least this share of its highest value, so that noise does not look like a large change.
const HEIGHT_MIN: f64 = 0.2;

/// One block per value. If there are more than [`WIDTH_MAX`] values, each block shows the mean of several.
pub(super) fn of(values: &[f64]) -> String {
    let share = values.len().div_ceil(WIDTH_MAX).max(1);
    let means: Vec<f64> = values.chunks(share).map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64).collect();
    let highest = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let lowest = means.iter().copied().fold(f64::INFINITY, f64::min);
    let middle = f64::midpoint(lowest, highest);
    let height = (highest - lowest).max(HEIGHT_MIN * highest);
    let block = |value: &f64| {
        let share_of_height = 0.5 + (value - middle) / height;
        BLOCKS[((share_of_height * BLOCKS.len() as f64) as usize).min(BLOCKS.len() - 1)]
    };
    means.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_is_used() {
        assert_eq!(of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]), "▁▂▃▄▅▆▇█");
        assert_eq!(of(&[8.0, 1.0]), "█▁");
        assert_eq!(of(&[]), "");
    }

    #[test]
    fn a_level_stays_in_the_middle() {
        assert_eq!(of(&[100.0, 101.0, 100.0, 99.0]), "▅▅▅▄");
    }

    #[test]
    fn a_long_series_is_summed_up() {
        let row = of(&(0..1_000).map(f64::from).collect::<Vec<_>>());
        assert_eq!(row.chars().count(), 59);
        assert!(row.starts_with('▁') && row.ends_with('█'));
    }
}
