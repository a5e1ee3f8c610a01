//! `pattern`, `maxLength` and `minLength`: keywords for strings; length is counted in code points.

use super::keywords::Keywords;
use super::{Rule, Rules, arguments, failed};
use crate::evaluation::Evaluation;
use crate::operands::Regex;
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_errors::Result;

/// Bytes of a string that count as one step of work.
const BYTES_PER_STEP: usize = 64;

#[derive(Debug)]
struct Pattern {
    specified: DocumentBuf,
    regex: Regex,
}

#[derive(Debug)]
struct Length {
    name: &'static str,
    specified: DocumentBuf,
    least: u64,
    most: u64,
}

pub(super) fn parse(keywords: &Keywords<'_>, rules: &mut Rules) -> Result<()> {
    if let Some(pattern) = arguments::string(keywords, "pattern")? {
        let specified = DocumentBuf::new().with("pattern", pattern);
        rules.push(Box::new(Pattern { specified, regex: Regex::new(pattern, "")? }));
    }
    let specified = |name| keywords.get(name).map(|value| DocumentBuf::new().with(name, value)).unwrap_or_default();
    if let Some(most) = arguments::size(keywords, "maxLength")? {
        rules.push(Box::new(Length { name: "maxLength", specified: specified("maxLength"), least: 0, most }));
    }
    if let Some(least) = arguments::size(keywords, "minLength")? {
        rules.push(Box::new(Length { name: "minLength", specified: specified("minLength"), least, most: u64::MAX }));
    }
    Ok(())
}

impl Rule for Pattern {
    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        !matches!(value, ValueRef::String(_)) || evaluation.regex(&self.regex, Some(value))
    }

    fn details(&self, value: ValueRef<'_>, _: &mut Evaluation<'_>) -> DocumentBuf {
        failed("pattern", &self.specified, "regular expression did not match", value)
    }
}

impl Rule for Length {
    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        let ValueRef::String(text) = value else { return true };
        if !evaluation.goes_on(text.len() / BYTES_PER_STEP) {
            return true;
        }
        (self.least..=self.most).contains(&(text.chars().count() as u64))
    }

    fn details(&self, value: ValueRef<'_>, _: &mut Evaluation<'_>) -> DocumentBuf {
        failed(self.name, &self.specified, "specified string length was not satisfied", value)
    }
}
