//! `$currentDate`: sets the update's time, as a date or a timestamp.

use super::{Effect, Modifier, Operator, Scene};
use crate::trie::Plan;
use bunko_bson::{DocumentRef, Element, StringUse, ValueRef};
use bunko_errors::{Failure, Result};

pub(super) const OPERATOR: Operator = Operator { name: "$currentDate", strings: StringUse::AsBytes, parse };

#[derive(Debug)]
enum CurrentDate {
    Date,
    Timestamp,
}

fn parse(plan: &mut Plan, field: Element<'_>) -> Result<()> {
    let modifier = match field.value {
        // MongoDB accepts false as well as true.
        ValueRef::Boolean(_) => CurrentDate::Date,
        ValueRef::Document(options) => parse_options(options)?,
        other => {
            return Err(Failure::bad_value(format!(
                "{} is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({{$type: 'timestamp/date'}}).",
                other.kind().alias()
            )));
        }
    };
    plan.modify(field.name, modifier)
}

fn parse_options(options: DocumentRef<'_>) -> Result<CurrentDate> {
    let mut modifier = None;
    for option in options {
        if option.name != "$type" {
            return Err(Failure::bad_value(format!("Unrecognized $currentDate option: {}", option.name)));
        }
        modifier = match option.value.as_str() {
            Some("date") => Some(CurrentDate::Date),
            Some("timestamp") => Some(CurrentDate::Timestamp),
            _ => None,
        };
    }
    modifier.ok_or_else(|| {
        Failure::bad_value(
            "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}",
        )
    })
}

impl Modifier for CurrentDate {
    fn modify<'a>(&'a self, _current: Option<ValueRef<'a>>, scene: &Scene<'a>) -> Result<Effect<'a>> {
        Ok(Effect::Set(match self {
            Self::Date => ValueRef::DateTime(scene.context.now_ms),
            Self::Timestamp => ValueRef::Timestamp(scene.context.timestamp),
        }))
    }
}
