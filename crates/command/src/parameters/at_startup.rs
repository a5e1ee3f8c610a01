//! Parameters that can be set on the command line and in the configuration file.

use super::{PARAMETERS, Parameter, not_settable};
use crate::service::Service;
use bunko_authority::MECHANISMS as ALL_MECHANISMS;
use bunko_bson::{Value, ValueRef, extended_json};
use bunko_errors::{Failure, Result};
use bunko_request::fields::truth;

/// The mechanisms that logins may use.
pub(super) const MECHANISMS: Parameter = Parameter::set_at_startup(
    "authenticationMechanisms",
    |service| Ok(Value::Array(service.authority.access.mechanisms().into_iter().collect())),
    |service, value| {
        let text = value.as_str().unwrap_or_default();
        let names: Vec<_> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        let find = |name: &str| ALL_MECHANISMS.into_iter().find(|known| *known == name);
        let names: Option<Vec<_>> = names.into_iter().map(find).collect();
        let names = names.filter(|names| !names.is_empty()).ok_or_else(|| {
            let all = ALL_MECHANISMS.join(", ");
            Failure::not_supported_yet(&format!("authenticationMechanisms: '{text}', which is not made of {all},"))
        })?;
        service.authority.access.set_mechanisms(names);
        Ok(())
    },
);

/// Whether a client on the server's machine may create the first user without a login.
pub(super) const LOCALHOST_BYPASS: Parameter = Parameter::set_at_startup(
    "enableLocalhostAuthBypass",
    |service| Ok(Value::Boolean(!service.authority.access.is_bypass_closed())),
    |service, value| {
        if !truth(value) {
            service.authority.access.close_bypass();
        }
        Ok(())
    },
);

/// Names of the parameters that can be set when the server starts.
pub fn parameters_of_startup() -> impl Iterator<Item = &'static str> {
    let can_be_set =
        |parameter: &&Parameter| parameter.at_startup && (parameter.write.is_some() || parameter.begin.is_some());
    PARAMETERS.iter().filter(can_be_set).map(|parameter| parameter.name)
}

impl Service {
    /// Sets a parameter before the first client connects. A string is parsed as a value of the parameter's own type, as
    /// on a command line.
    /// # Errors
    /// As `setParameter`.
    pub fn set_parameter_at_startup(&self, name: &str, value: ValueRef<'_>) -> Result<()> {
        let parameter = PARAMETERS.iter().find(|parameter| parameter.name == name).ok_or_else(|| not_settable(name))?;
        let write = parameter.write.or(parameter.begin).ok_or_else(|| not_settable(name))?;
        match value {
            ValueRef::String(text) => {
                let read = of_text(name, text, &(parameter.read)(self)?)?;
                write(self, ValueRef::from(&read))
            }
            _ => write(self, value),
        }
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
