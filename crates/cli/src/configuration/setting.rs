//! A setting: its names, its values, its default.

use super::in_force::Configuration;
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_certificates::Password;
use std::fmt;
use std::ops::RangeInclusive;

/// The section of the settings that `--setParameter NAME=VALUE` sets.
pub const PARAMETERS: &str = "setParameter.";

/// One setting of the configuration.
pub struct Setting {
    /// Its keys in a file: mongod's where it has one, then ours.
    pub keys: &'static [&'static str],
    /// Its flag, without dashes.
    pub flag: &'static str,
    /// The flag as mongod spells it.
    pub mongod_flag: Option<&'static str>,
    /// Flags that mean `false`, ours first.
    pub negations: &'static [&'static str],
    /// Its text in `--help`; empty for flags that are not shown.
    pub help: &'static str,
    /// The name of its value in `--help`.
    pub value_name: &'static str,
    pub kind: Kind,
    /// The value that holds unless one is given.
    pub default: fn(&Configuration) -> Option<Value>,
    pub effect: Effect,
}

/// Where a setting has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Always,
    /// Only where the server's own engine keeps data on disk. Configuration files for mongod contain such settings
    /// whatever the engine is, so they are accepted elsewhere too, and the log says that they have no effect.
    OnDisk,
    /// Nowhere: mongod arranges its files as the setting says, and here nothing depends on it. It is accepted because
    /// files and flags for mongod contain it, and the log says what is done instead.
    Nowhere {
        instead: &'static str,
    },
}

/// The values that a setting accepts.
pub enum Kind {
    /// Any text that passes the check.
    Text(fn(&str) -> Result<(), String>),
    Switch,
    /// A parameter that is on or off: like mongod, it also accepts 1 and 0.
    Truth,
    Whole(RangeInclusive<i64>),
    Number(RangeInclusive<f64>),
    /// Several texts that each pass the check: a list in a file, separated by commas in a flag.
    List(fn(&str) -> Result<(), String>),
    OneOf(&'static [&'static str]),
    /// A parameter that the service knows and checks.
    Parameter,
    /// A secret, which is never displayed.
    Secret,
    /// `enabled` or `disabled`, as some switches are written in mongod's files; as flags they are switches like others.
    Enabled,
    /// A choice of mongod's that is not offered here: the one accepted value says what is done anyway, with the reason
    /// why no other is accepted.
    Only {
        value: &'static str,
        because: &'static str,
    },
}

/// A value as a file or a flag gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Switch(bool),
    Whole(i64),
    Number(f64),
    Secret(Password),
}

impl Setting {
    /// The key that is displayed.
    pub fn key(&self) -> &'static str {
        self.keys[0]
    }

    /// Whether its flag may stand alone for `true`.
    pub fn is_switch(&self) -> bool {
        matches!(self.kind, Kind::Switch | Kind::Truth | Kind::Enabled | Kind::Only { value: "true" | "false", .. })
    }
}

impl Kind {
    /// Converts a value to this kind.
    /// # Errors
    /// A sentence that names the value and the values that are accepted.
    pub fn check(&self, given: Value) -> Result<Value, String> {
        match self {
            Self::Text(check) => {
                let text = given.to_string();
                check(&text).map(|()| Value::Text(text))
            }
            Self::Switch => match given.to_string().as_str() {
                "true" => Ok(Value::Switch(true)),
                "false" => Ok(Value::Switch(false)),
                other => Err(format!("'{other}' is neither true nor false")),
            },
            Self::Truth => match given.to_string().as_str() {
                "true" | "1" => Ok(Value::Switch(true)),
                "false" | "0" => Ok(Value::Switch(false)),
                other => Err(format!("'{other}' is none of true, false, 1 and 0")),
            },
            Self::Whole(range) => match given.to_string().parse() {
                Ok(number) if range.contains(&number) => Ok(Value::Whole(number)),
                _ => Err(format!("{given} is not a whole number within {} to {}", range.start(), range.end())),
            },
            Self::Number(range) => match given.to_string().parse() {
                Ok(number) if range.contains(&number) => Ok(Value::Number(number)),
                _ => Err(format!("{given} is not a number within {} to {}", range.start(), range.end())),
            },
            Self::List(check) => {
                let text = given.to_string();
                text.split(',').try_for_each(check).map(|()| Value::Text(text.clone()))
            }
            Self::OneOf(values) => {
                let text = given.to_string();
                if values.contains(&text.as_str()) {
                    return Ok(Value::Text(text));
                }
                Err(format!("'{text}' is none of {}", values.join(", ")))
            }
            Self::Parameter => Ok(given),
            Self::Secret => Ok(Value::Secret(Password::new(given.to_string()))),
            Self::Enabled => match given.to_string().as_str() {
                "enabled" | "true" => Ok(Value::Text("enabled".into())),
                "disabled" | "false" => Ok(Value::Text("disabled".into())),
                other => Err(format!("'{other}' is neither enabled nor disabled")),
            },
            Self::Only { value, because } => {
                if given.to_string() == *value {
                    return Ok(given);
                }
                Err(format!("{given} is not supported, only {value}: {because}"))
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Switch(switch) => switch.fmt(f),
            Self::Whole(number) => number.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Secret(password) => password.fmt(f),
        }
    }
}

impl Value {
    /// Appends the value under a name.
    pub fn append_to(&self, document: &mut DocumentBuf, name: &str) {
        document.append(name, self.as_bson());
    }

    /// The value as a client would send it.
    pub fn as_bson(&self) -> ValueRef<'_> {
        match self {
            Self::Text(text) => ValueRef::String(text),
            Self::Switch(switch) => ValueRef::Boolean(*switch),
            Self::Whole(number) => i32::try_from(*number).map_or(ValueRef::Int64(*number), ValueRef::Int32),
            Self::Number(number) => ValueRef::Double(*number),
            Self::Secret(_) => ValueRef::String(Password::SHOWN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: &Kind, text: &str) -> Result<Value, String> {
        kind.check(Value::Text(text.to_owned()))
    }

    #[test]
    fn values_out_of_range_are_named_with_the_range() {
        let kind = Kind::Number(0.25..=10_000.0);
        assert_eq!(check(&kind, "1.5"), Ok(Value::Number(1.5)));
        for text in ["0", "-1", "10001", "NaN", "inf", "much", ""] {
            assert_eq!(check(&kind, text), Err(format!("{text} is not a number within 0.25 to 10000")));
        }
        let kind = Kind::Whole(1..=500);
        assert_eq!(kind.check(Value::Whole(500)), Ok(Value::Whole(500)));
        for value in [Value::Whole(0), Value::Whole(501), Value::Number(1.5), Value::Text("x".into())] {
            let expected = format!("{value} is not a whole number within 1 to 500");
            assert_eq!(kind.check(value), Err(expected));
        }
    }

    #[test]
    fn a_value_is_accepted_only_if_the_server_does_that_anyway() {
        let kind = Kind::Only { value: "false", because: "there is one log" };
        assert_eq!(kind.check(Value::Switch(false)), Ok(Value::Switch(false)));
        let error = kind.check(Value::Switch(true));
        assert_eq!(error, Err("true is not supported, only false: there is one log".into()));
    }
}
