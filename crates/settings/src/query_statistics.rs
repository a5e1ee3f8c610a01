//! The values of the parameters `internalQueryStats*`: how many queries are counted for `$queryStats`, and in how much memory.
//! Source: MongoDB's own description of query statistics, "Server Parameters".

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Largest part of the memory that the statistics may take, in hundredths.
const HUNDREDTHS_MAX: f64 = 25.0;

/// Which queries are counted, and the memory for their statistics.
#[derive(Debug)]
pub struct QueryStatisticsLimits {
    /// Whether any query is counted; kept as a flag, because each query reads it.
    is_on: AtomicBool,
    /// Queries that were not counted because of the rate.
    refused: AtomicU64,
    chosen: Mutex<Chosen>,
    size: Mutex<CacheSize>,
}

/// The rate, and the queries that were counted in the present second.
#[derive(Debug, Default)]
struct Chosen {
    /// Maximum number of queries that are counted each second; none is counted at 0, and all at -1.
    per_second: i32,
    /// The fraction of queries that is counted. If it is above 0, the rate has no effect.
    fraction: f64,
    second: i64,
    counted: i32,
}

/// The size of the memory, as the administrator gave it.
#[derive(Clone, Debug)]
struct CacheSize {
    text: String,
    parsed: Size,
}

#[derive(Clone, Copy, Debug)]
enum Size {
    Bytes(u64),
    /// A part of the memory budget, in hundredths.
    Hundredths(f64),
}

impl Default for QueryStatisticsLimits {
    fn default() -> Self {
        Self {
            is_on: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            chosen: Mutex::default(),
            size: Mutex::new(CacheSize { text: "1%".to_owned(), parsed: Size::Hundredths(1.0) }),
        }
    }
}

impl QueryStatisticsLimits {
    /// Whether any query is counted.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Whether the query that begins now is counted. `random` returns random bits.
    pub fn admits(&self, now_ms: i64, random: &dyn Fn() -> u64) -> bool {
        let mut chosen = self.chosen.lock();
        let is_admitted = if chosen.fraction > 0.0 {
            chosen.fraction >= 1.0 || (random() as f64) < chosen.fraction * u64::MAX as f64
        } else {
            let second = now_ms.div_euclid(1000);
            if chosen.second != second {
                (chosen.second, chosen.counted) = (second, 0);
            }
            chosen.per_second < 0 || chosen.counted < chosen.per_second
        };
        if is_admitted {
            chosen.counted = chosen.counted.saturating_add(1);
        } else {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        is_admitted
    }

    /// Queries that were not counted because of the rate, since the start.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Maximum number of bytes of the statistics. `budget` is the server's memory budget.
    pub fn bytes_max(&self, budget: u64) -> u64 {
        let quarter = budget / 100 * HUNDREDTHS_MAX as u64;
        match self.size.lock().parsed {
            Size::Bytes(bytes) => bytes.min(quarter),
            Size::Hundredths(hundredths) => ((budget as f64 * hundredths / 100.0) as u64).min(quarter),
        }
    }

    /// Maximum number of queries that are counted each second; none is counted at 0, and all at -1.
    pub(crate) fn per_second(&self) -> i32 {
        self.chosen.lock().per_second
    }

    /// Sets [`Self::per_second`].
    pub(crate) fn set_per_second(&self, per_second: i32) {
        self.change(|chosen| chosen.per_second = per_second);
    }

    /// The fraction of queries that is counted. If it is above 0, the rate has no effect.
    pub(crate) fn fraction(&self) -> f64 {
        self.chosen.lock().fraction
    }

    /// Sets [`Self::fraction`].
    pub(crate) fn set_fraction(&self, fraction: f64) {
        self.change(|chosen| chosen.fraction = fraction);
    }

    /// The size of the memory, as the administrator gave it.
    pub(crate) fn cache_size(&self) -> String {
        self.size.lock().text.clone()
    }

    /// Sets the size of the memory, such as `100MB` or `1%`. The error says what is wrong with the text.
    pub(crate) fn set_cache_size(&self, text: &str) -> Result<(), &'static str> {
        *self.size.lock() = CacheSize { parsed: parse_size(text)?, text: text.to_owned() };
        Ok(())
    }

    fn change(&self, change: impl FnOnce(&mut Chosen)) {
        let mut chosen = self.chosen.lock();
        change(&mut chosen);
        self.is_on.store(chosen.per_second != 0 || chosen.fraction > 0.0, Ordering::Relaxed);
    }
}

/// Parses a size such as `100MB`, `1.5 GB` or `1%`.
fn parse_size(text: &str) -> Result<Size, &'static str> {
    const FORMAT: &str = "is not a number with MB, GB or %";
    let trimmed = text.trim();
    let digits = trimmed.trim_end_matches(|letter: char| letter.is_ascii_alphabetic() || letter == '%').trim_end();
    let unit = trimmed[digits.len()..].trim_start();
    let number: f64 = digits.parse().map_err(|_| FORMAT)?;
    if !number.is_finite() || number < 0.0 {
        return Err(FORMAT);
    }
    match unit.to_ascii_uppercase().as_str() {
        "%" if number <= HUNDREDTHS_MAX => Ok(Size::Hundredths(number)),
        "%" => Err("is more than 25% of the memory"),
        "MB" => Ok(Size::Bytes((number * f64::from(1 << 20)) as u64)),
        "GB" => Ok(Size::Bytes((number * f64::from(1 << 30)) as u64)),
        _ => Err(FORMAT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in
            [("100MB", 100 << 20), ("1.5 gb", 3 << 29), ("0MB", 0), ("1%", (8_u64 << 30) / 100), ("9999GB", 2 << 30)]
        {
            let limits = QueryStatisticsLimits::default();
            limits.size.lock().parsed = parse_size(text).expect(text);
            let given = limits.bytes_max(8 << 30);
            assert!(given.abs_diff(bytes) <= 100, "{text}: {given}, not {bytes}");
        }
        for text in ["", "1", "MB", "-1MB", "26%", "1KB", "nanMB", "1MBMB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_rate_counts_so_many_each_second() {
        let limits = QueryStatisticsLimits::default();
        assert!(!limits.is_on());
        limits.change(|chosen| chosen.per_second = 3);
        assert!(limits.is_on());
        let counted = |now_ms| (0..10).filter(|_| limits.admits(now_ms, &|| 0)).count();
        assert_eq!([counted(1_000), counted(1_999), counted(2_000)], [3, 0, 3]);
        assert_eq!(limits.refused(), 24);
        limits.change(|chosen| chosen.per_second = -1);
        assert_eq!(counted(2_500), 10);
        limits.change(|chosen| chosen.fraction = 0.5);
        assert!(limits.admits(0, &|| 1) && !limits.admits(0, &|| u64::MAX));
        limits.change(|chosen| (chosen.per_second, chosen.fraction) = (0, 0.0));
        assert!(!limits.is_on());
    }
}
