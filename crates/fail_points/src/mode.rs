//! When a failpoint fires.

use bunko_bson::{ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};

/// `mode` of `configureFailPoint`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Mode {
    /// Fires never.
    #[default]
    Off,
    /// Fires always.
    AlwaysOn,
    /// Fires that many times, then never.
    Times(u32),
    /// Fires always, except for the first times.
    Skip(u32),
    /// Fires with this probability, from 0 to 1.
    Probability(f64),
}

impl Mode {
    /// Parses `mode`.
    /// # Errors
    /// `BadValue`, `TypeMismatch` for an invalid mode.
    pub fn parse(value: ValueRef<'_>) -> Result<Self> {
        let document = match value {
            ValueRef::String("off") => return Ok(Self::Off),
            ValueRef::String("alwaysOn") => return Ok(Self::AlwaysOn),
            ValueRef::String(other) => return Err(Failure::bad_value(format!("unknown mode: {other}"))),
            ValueRef::Document(document) => document,
            other => {
                let message = format!("'mode' must be a string or JSON object, found {}", other.kind().alias());
                return Err(Failure::type_mismatch(message));
            }
        };
        let Some(first) = document.first() else {
            return Err(Failure::bad_value(
                "'mode' must be one of {times: n}, {skip: n} and {activationProbability: p}",
            ));
        };
        let count = |name: &str| {
            let count = number::clamp_to_i64(first.value).map(u32::try_from);
            match count {
                Some(Ok(count)) => Ok(count),
                Some(Err(_)) => Err(Failure::bad_value(format!("'{name}' option to 'mode' must be positive"))),
                None => Err(Failure::type_mismatch(format!("'{name}' option to 'mode' must be a number"))),
            }
        };
        match first.name {
            "times" => Ok(match count("times")? {
                0 => Self::Off,
                count => Self::Times(count),
            }),
            "skip" => Ok(Self::Skip(count("skip")?)),
            "activationProbability" => match number::as_f64(first.value) {
                Some(probability) if (0.0..=1.0).contains(&probability) => Ok(Self::Probability(probability)),
                Some(other) => {
                    let message = format!("activationProbability must be between 0.0 and 1.0; found {other}");
                    Err(Failure::bad_value(message))
                }
                None => Err(Failure::type_mismatch("'activationProbability' option to 'mode' must be a double")),
            },
            other => Err(Failure::new(ErrorCode::BAD_VALUE, format!("unknown option of 'mode': {other}"))),
        }
    }

    /// Whether it fires this time. Updates the count.
    pub(crate) fn fires(&mut self, random: &dyn Fn() -> u64) -> bool {
        match self {
            Self::Off => false,
            Self::AlwaysOn => true,
            Self::Times(left) => {
                *left -= 1;
                if *left == 0 {
                    *self = Self::Off;
                }
                true
            }
            Self::Skip(0) => true,
            Self::Skip(left) => {
                *left -= 1;
                false
            }
            Self::Probability(probability) => ((random() >> 11) as f64 / (1_u64 << 53) as f64) < *probability,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentBuf;

    fn mode(name: &str, value: impl Into<f64>) -> Mode {
        let document = DocumentBuf::new().with(name, value.into());
        Mode::parse(ValueRef::Document(document.as_ref())).expect("a mode")
    }

    fn fired(mut mode: Mode) -> Vec<bool> {
        (0..4).map(|_| mode.fires(&|| u64::MAX / 2)).collect()
    }

    #[test]
    fn modes_fire_as_they_say() {
        assert_eq!(fired(mode("times", 2)), [true, true, false, false]);
        assert_eq!(fired(mode("times", 0)), [false; 4]);
        assert_eq!(fired(mode("skip", 1)), [false, true, true, true]);
        assert_eq!(fired(mode("activationProbability", 0.4)), [false; 4]);
        assert_eq!(fired(mode("activationProbability", 0.6)), [true; 4]);
        assert_eq!(fired(Mode::parse(ValueRef::String("alwaysOn")).expect("a mode")), [true; 4]);
    }
}
