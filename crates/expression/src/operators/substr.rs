//! `$substr`: the old name of `$substrBytes`, whose name is in its errors.

use super::substr_bytes::{self, by_bytes};
use super::{Call, Form, Operator, ParseScope, Result, Strings};
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$substr", strings: Strings::AsBytes, form: Form::Special(parse), evaluate: by_bytes };

fn parse(_: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    Call::parse(&substr_bytes::OPERATOR, value, scope)
}
