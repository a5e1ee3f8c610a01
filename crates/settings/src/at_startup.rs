//! Parameters that can be set on the command line and in the configuration file.

use crate::owners::Owners;
use crate::parameter::{Parameter, not_settable};
use crate::table::PARAMETERS;
use bunko_bson::{Value, ValueRef, extended_json};
use bunko_errors::{Failure, Result};

/// Names of the parameters that can be set when the server starts.
pub fn parameters_of_startup() -> impl Iterator<Item = &'static str> {
    let can_be_set =
        |parameter: &&Parameter| parameter.at_startup && (parameter.write.is_some() || parameter.begin.is_some());
    PARAMETERS.iter().filter(can_be_set).map(|parameter| parameter.name)
}

/// Sets a parameter before the first client connects. A string is parsed as a value of the parameter's own type, as
/// from a command line.
/// # Errors
/// As `setParameter`.
pub fn set_at_startup(owners: &dyn Owners, name: &str, value: ValueRef<'_>) -> Result<()> {
    let parameter = PARAMETERS.iter().find(|parameter| parameter.name == name).ok_or_else(|| not_settable(name))?;
    let write = parameter.write.or(parameter.begin).ok_or_else(|| not_settable(name))?;
    match value {
        ValueRef::String(text) => {
            let read = of_text(name, text, &(parameter.read)(owners)?)?;
            write(owners, ValueRef::from(&read))
        }
        _ => write(owners, value),
    }
}

/// Parses text into a value of the parameter's current type.
fn of_text(name: &str, text: &str, current: &Value) -> Result<Value> {
    let wrong =
        |expected: &str| Failure::bad_value(format!("Invalid value for parameter {name}: '{text}' is not {expected}"));
    match current {
        Value::Boolean(_) => match text {
            "true" | "1" => Ok(Value::Boolean(true)),
            "false" | "0" => Ok(Value::Boolean(false)),
            _ => Err(wrong("true, false, 1 or 0")),
        },
        Value::Int32(_) | Value::Int64(_) => text.parse().map(Value::Int64).map_err(|_| wrong("a whole number")),
        Value::Double(_) => text.parse().map(Value::Double).map_err(|_| wrong("a number")),
        Value::Document(_) => {
            let document =
                extended_json::parse_document(text).map_err(|error| wrong(&format!("a document: {error}")))?;
            Ok(Value::Document(document))
        }
        _ => Ok(Value::from(ValueRef::String(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_the_type_that_the_parameter_has() {
        let read = |text, current: Value| of_text("p", text, &current).map_err(|failure| failure.message().to_owned());
        assert!(matches!(read("1", Value::Boolean(false)), Ok(Value::Boolean(true))));
        assert!(matches!(read("60000", Value::Int32(1)), Ok(Value::Int64(60_000))));
        assert!(matches!(read("0.5", Value::Double(1.0)), Ok(Value::Double(half)) if half == 0.5));
        let wrong = read("many", Value::Int64(1)).expect_err("refused");
        assert_eq!(wrong, "Invalid value for parameter p: 'many' is not a whole number");
    }
}
