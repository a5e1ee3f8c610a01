//! Layouts of dates as Oracle's `TO_DATE` and Microsoft SQL Server's `FORMAT` write them.
//!
//! Source: Oracle Database SQL Language Reference, "Datetime Format Elements"; .NET, "Custom date and time format
//! strings".

use super::date_layout::{Layout, Part};

/// Oracle's elements; longer ones stand before those that they begin with.
const ORACLE: [(&str, Part); 20] = [
    ("YYYY", Part::Year(4, 4)),
    ("RRRR", Part::Year(4, 4)),
    ("YY", Part::YearOfCentury),
    ("RR", Part::YearOfCentury),
    ("MONTH", Part::MonthLong),
    ("MON", Part::MonthShort),
    ("MM", Part::Month(1, 2)),
    ("MI", Part::Minute(1, 2)),
    ("DDD", Part::DayOfYear),
    ("DD", Part::Day(1, 2)),
    ("DAY", Part::WeekdayLong),
    ("DY", Part::WeekdayShort),
    ("HH24", Part::Hour(1, 2)),
    ("HH12", Part::HourOf12(1, 2)),
    ("HH", Part::HourOf12(1, 2)),
    ("SS", Part::Second(1, 2)),
    ("FF", Part::Fraction),
    ("AM", Part::HalfDay),
    ("PM", Part::HalfDay),
    ("TZH:TZM", Part::Offset),
];

/// Microsoft's elements.
const MICROSOFT: [(&str, Part); 22] = [
    ("yyyy", Part::Year(4, 4)),
    ("yy", Part::YearOfCentury),
    ("MMMM", Part::MonthLong),
    ("MMM", Part::MonthShort),
    ("MM", Part::Month(2, 2)),
    ("M", Part::Month(1, 2)),
    ("dddd", Part::WeekdayLong),
    ("ddd", Part::WeekdayShort),
    ("dd", Part::Day(2, 2)),
    ("d", Part::Day(1, 2)),
    ("HH", Part::Hour(2, 2)),
    ("H", Part::Hour(1, 2)),
    ("hh", Part::HourOf12(2, 2)),
    ("h", Part::HourOf12(1, 2)),
    ("mm", Part::Minute(2, 2)),
    ("m", Part::Minute(1, 2)),
    ("ss", Part::Second(2, 2)),
    ("s", Part::Second(1, 2)),
    ("fff", Part::Fraction),
    ("tt", Part::HalfDay),
    ("zzz", Part::Offset),
    ("zz", Part::Offset),
];

/// Reads a layout of Oracle's; letters in any case.
/// # Errors
/// A sentence that names the layout: elements that are not in the table are not supported.
pub(super) fn layout(text: &str) -> Result<Layout, String> {
    let capitals = text.to_ascii_uppercase();
    known_letters(&capitals, text, &ORACLE)?;
    Layout::by_table(&capitals, &ORACLE).checked(text)
}

/// Reads a layout of Microsoft's.
/// # Errors
/// As [`layout`].
pub(super) fn layout_of_ms(text: &str) -> Result<Layout, String> {
    known_letters(text, text, &MICROSOFT)?;
    Layout::by_table(text, &MICROSOFT).checked(text)
}

/// Refuses letters that belong to no element, except the `T` between day and time, and a final `Z`.
fn known_letters(layout: &str, told: &str, table: &[(&str, Part)]) -> Result<(), String> {
    let mut rest = layout;
    while let Some(character) = rest.chars().next() {
        let length = match table.iter().find(|(name, _)| rest.starts_with(name)) {
            Some((name, _)) => name.len(),
            None if character.is_ascii_alphabetic() && !matches!(character, 'T' | 'Z') => {
                return Err(format!("the layout {told:?}: the element at {rest:?} is not supported yet"));
            }
            None => character.len_utf8(),
        };
        rest = &rest[length..];
    }
    Ok(())
}
