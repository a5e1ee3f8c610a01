//! Layouts of dates: the parts that a text must have, in their order. Layouts are written as Go's reference time, whose
//! parts are those of Mon Jan 2 15:04:05 MST 2006.
//!
//! Source: Go's package `time`, "Constants".

use bunko_bson::datetime::{civil_from_days, days_from_civil};

/// A part of a date, or text between two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A number with this least and greatest number of digits.
    Year(usize, usize),
    /// Two digits: 69 to 99 are of the 20th century, the others of the 21st.
    YearOfCentury,
    Month(usize, usize),
    /// Three letters.
    MonthShort,
    MonthLong,
    Day(usize, usize),
    DayOfYear,
    WeekdayShort,
    WeekdayLong,
    Hour(usize, usize),
    /// With a [`Part::HalfDay`].
    HourOf12(usize, usize),
    HalfDay,
    Minute(usize, usize),
    Second(usize, usize),
    /// Digits of a second after its point, as many as there are.
    Fraction,
    /// A point and digits of a second, if they are there.
    OptionalFraction,
    /// `Z`, or a sign, hours and minutes with or without a colon.
    Offset,
    Text(String),
}

/// The parts of a date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout(Vec<Part>);

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Parts of the reference time; longer ones stand before those that they begin with.
const OF_REFERENCE_TIME: [(&str, Part); 28] = [
    ("January", Part::MonthLong),
    ("Jan", Part::MonthShort),
    ("Monday", Part::WeekdayLong),
    ("Mon", Part::WeekdayShort),
    ("2006", Part::Year(4, 4)),
    ("002", Part::DayOfYear),
    ("01", Part::Month(2, 2)),
    ("02", Part::Day(2, 2)),
    ("03", Part::HourOf12(2, 2)),
    ("04", Part::Minute(2, 2)),
    ("05", Part::Second(2, 2)),
    ("06", Part::YearOfCentury),
    ("15", Part::Hour(2, 2)),
    ("-07:00:00", Part::Offset),
    ("-07:00", Part::Offset),
    ("-0700", Part::Offset),
    ("-07", Part::Offset),
    ("Z07:00", Part::Offset),
    ("Z0700", Part::Offset),
    ("Z07", Part::Offset),
    ("_2", Part::Day(1, 2)),
    ("1", Part::Month(1, 2)),
    ("2", Part::Day(1, 2)),
    ("3", Part::HourOf12(1, 2)),
    ("4", Part::Minute(1, 2)),
    ("5", Part::Second(1, 2)),
    ("PM", Part::HalfDay),
    ("pm", Part::HalfDay),
];

impl Layout {
    /// Splits a layout by a table of its parts. A character that begins no part stands for itself.
    pub(super) fn by_table(layout: &str, table: &[(&str, Part)]) -> Self {
        let (mut parts, mut rest) = (Vec::new(), layout);
        while let Some(character) = rest.chars().next() {
            match table.iter().find(|(name, _)| rest.starts_with(name)) {
                Some((name, part)) => {
                    parts.push(part.clone());
                    rest = &rest[name.len()..];
                }
                None => {
                    match parts.last_mut() {
                        Some(Part::Text(text)) => text.push(character),
                        _ => parts.push(Part::Text(character.to_string())),
                    }
                    rest = &rest[character.len_utf8()..];
                }
            }
        }
        Self(parts)
    }

    /// Checks that the layout tells a day.
    /// # Errors
    /// A sentence that names the layout.
    pub(super) fn checked(self, layout: &str) -> Result<Self, String> {
        let has = |wanted: fn(&Part) -> bool| self.0.iter().any(wanted);
        let has_year = has(|part| matches!(part, Part::Year(..) | Part::YearOfCentury));
        if has_year { Ok(self) } else { Err(format!("the layout {layout:?} has no year")) }
    }

    /// Reads a layout in the form of the reference time.
    /// # Errors
    /// A sentence that names the layout.
    pub(super) fn of_reference_time(layout: &str) -> Result<Self, String> {
        if layout.contains("MST") {
            return Err(format!("the layout {layout:?}: names of time zones are not supported yet"));
        }
        let Self(mut parts) = Self::by_table(layout, &OF_REFERENCE_TIME);
        // Zeros or nines after the seconds in a layout stand for their fraction. Without them, a date may still have
        // one.
        let mut at = 0;
        while at < parts.len() {
            let is_second = matches!(parts[at], Part::Second(..));
            if let (true, Some(Part::Text(text))) = (is_second, parts.get_mut(at + 1)) {
                let digits = text.get(1..).unwrap_or_default();
                let count = digits.bytes().take_while(|byte| matches!(byte, b'0' | b'9')).count();
                if text.starts_with(['.', ',']) && count > 0 {
                    *text = text[1 + count..].to_owned();
                }
            }
            if is_second {
                parts.insert(at + 1, Part::OptionalFraction);
            }
            at += 1;
        }
        parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
        Self(parts).checked(layout)
    }

    /// Reads a date in this layout, in milliseconds since 1970; without an offset it is of UTC. `None` if the text has
    /// another layout, or there is no such day or time.
    pub(super) fn parse_ms(&self, text: &str) -> Option<i64> {
        let mut moment = Moment::default();
        let mut rest = text;
        for part in &self.0 {
            rest = moment.read(part, rest)?;
        }
        if rest.is_empty() { moment.ms() } else { None }
    }
}

/// The parts of a date that were read.
struct Moment {
    year: i64,
    month: i64,
    day: i64,
    day_of_year: Option<i64>,
    hour: i64,
    /// Whether the hour is of the second half of the day; `None` if the layout has no halves.
    is_afternoon: Option<bool>,
    minute: i64,
    second: i64,
    fraction_ms: i64,
    offset_minutes: i64,
}

impl Default for Moment {
    fn default() -> Self {
        let (year, month, day, hour, minute, second) = (0, 1, 1, 0, 0, 0);
        let (day_of_year, is_afternoon, fraction_ms, offset_minutes) = (None, None, 0, 0);
        Self { year, month, day, day_of_year, hour, is_afternoon, minute, second, fraction_ms, offset_minutes }
    }
}

impl Moment {
    /// Reads a part; returns the rest of the text.
    fn read<'t>(&mut self, part: &Part, text: &'t str) -> Option<&'t str> {
        let (slot, (least, most)) = match part {
            Part::Year(least, most) => (&mut self.year, (*least, *most)),
            Part::Month(least, most) => (&mut self.month, (*least, *most)),
            Part::Day(least, most) => {
                let text = text.strip_prefix(' ').filter(|_| *least == 1).unwrap_or(text);
                return number(text, *least, *most).map(|(day, rest)| {
                    self.day = day;
                    rest
                });
            }
            Part::Hour(least, most) | Part::HourOf12(least, most) => (&mut self.hour, (*least, *most)),
            Part::Minute(least, most) => (&mut self.minute, (*least, *most)),
            Part::Second(least, most) => (&mut self.second, (*least, *most)),
            other => return self.read_rare(other, text),
        };
        let (number, rest) = number(text, least, most)?;
        *slot = number;
        Some(rest)
    }

    fn read_rare<'t>(&mut self, part: &Part, text: &'t str) -> Option<&'t str> {
        match part {
            Part::YearOfCentury => {
                let (year, rest) = number(text, 2, 2)?;
                self.year = if year < 69 { 2000 + year } else { 1900 + year };
                Some(rest)
            }
            Part::DayOfYear => {
                let (day, rest) = number(text, 3, 3)?;
                self.day_of_year = Some(day);
                Some(rest)
            }
            Part::MonthShort => self.named_month(text, |month| &month[..3]),
            Part::MonthLong => self.named_month(text, |month| month),
            Part::WeekdayShort => WEEKDAYS.iter().find_map(|day| without(text, &day[..3])),
            Part::WeekdayLong => WEEKDAYS.iter().find_map(|day| without(text, day)),
            Part::HalfDay => {
                let halves = [("AM", false), ("PM", true), ("A.M.", false), ("P.M.", true)];
                halves.into_iter().find_map(|(half, is_afternoon)| {
                    let rest = without(text, half)?;
                    self.is_afternoon = Some(is_afternoon);
                    Some(rest)
                })
            }
            Part::OptionalFraction => match text.strip_prefix(['.', ',']) {
                Some(digits) if digits.starts_with(|first: char| first.is_ascii_digit()) => self.fraction(digits),
                _ => Some(text),
            },
            Part::Fraction => self.fraction(text),
            Part::Offset => self.offset(text),
            Part::Text(expected) => text.strip_prefix(expected.as_str()),
            _ => None,
        }
    }

    fn named_month<'t>(&mut self, text: &'t str, form: fn(&'static str) -> &'static str) -> Option<&'t str> {
        MONTHS.into_iter().zip(1..).find_map(|(name, month)| {
            let rest = without(text, form(name))?;
            self.month = month;
            Some(rest)
        })
    }

    /// Reads the digits of a second's fraction; those after the third are dropped.
    fn fraction<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let length = text.bytes().take_while(u8::is_ascii_digit).count();
        let digits = text[..length].bytes().chain(*b"00").take(3);
        self.fraction_ms = digits.fold(0, |ms, digit| ms * 10 + i64::from(digit - b'0'));
        (length > 0).then(|| &text[length..])
    }

    fn offset<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        if let Some(rest) = text.strip_prefix(['Z', 'z']) {
            return Some(rest);
        }
        let sign = if text.starts_with('-') { -1 } else { 1 };
        let (hours, rest) = number(text.strip_prefix(['+', '-'])?, 2, 2)?;
        let (minutes, rest) = number(rest.strip_prefix(':').unwrap_or(rest), 2, 2).unwrap_or((0, rest));
        self.offset_minutes = sign * (hours * 60 + minutes);
        (hours < 24 && minutes < 60).then_some(rest)
    }

    fn ms(&self) -> Option<i64> {
        let hour = match (self.is_afternoon, self.hour) {
            (None, hour @ 0..=23) => hour,
            (Some(is_afternoon), hour @ 1..=12) => hour % 12 + if is_afternoon { 12 } else { 0 },
            _ => return None,
        };
        let fits = (0..=59).contains(&self.minute) && (0..=59).contains(&self.second);
        let (month, day) = (u32::try_from(self.month).ok()?, u32::try_from(self.day).ok()?);
        let days = match self.day_of_year {
            Some(day) => days_from_civil(self.year, 1, 1) + day - 1,
            None => days_from_civil(self.year, month, day),
        };
        let is_day = match (self.day_of_year, civil_from_days(days)) {
            (Some(_), (year, ..)) => year == self.year,
            (None, civil) => civil == (self.year, month, day),
        };
        let minutes = (days * 24 + hour) * 60 + self.minute - self.offset_minutes;
        (fits && is_day).then_some((minutes * 60 + self.second) * 1_000 + self.fraction_ms)
    }
}

/// A number of digits, and the text after it.
fn number(text: &str, least: usize, most: usize) -> Option<(i64, &str)> {
    let length = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(length);
    if length < least { None } else { Some((digits.parse().ok()?, rest)) }
}

/// The text after a word, in whichever case it is written.
fn without<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let front = text.get(..word.len())?;
    front.eq_ignore_ascii_case(word).then(|| &text[word.len()..])
}
