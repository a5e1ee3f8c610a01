//! The parameter `auditAuthorizationSuccess`.

use crate::parameters::Parameter;
use bunko_bson::Value;
use bunko_request::fields::truth;

pub(crate) const SUCCESSES: Parameter = Parameter::settable(
    "auditAuthorizationSuccess",
    |service| Ok(Value::Boolean(service.authority.audit.chooses_successes())),
    |service, value| service.authority.audit.choose_successes(truth(value)),
);
