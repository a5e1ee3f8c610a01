//! `--fields` and `--fieldFile` of import and export.

use std::path::Path;

/// The names that one of the flags gives; `None` if neither is given.
/// # Errors
/// One line that names the flag, if the file cannot be read or there are no names.
pub fn field_names(fields: Option<&str>, file: Option<&Path>) -> Result<Option<Vec<String>>, String> {
    let (flag, names) = match (fields, file) {
        (Some(fields), _) => ("--fields", split(fields)),
        (None, Some(path)) => {
            let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            ("--fieldFile", lines.map(str::to_owned).collect())
        }
        (None, None) => return Ok(None),
    };
    if names.is_empty() { Err(format!("{flag} has no names")) } else { Ok(Some(names)) }
}

/// Splits names at the commas outside brackets, which types' arguments may have.
fn split(fields: &str) -> Vec<String> {
    let (mut names, mut depth) = (vec![String::new()], 0_usize);
    for character in fields.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                names.push(String::new());
                continue;
            }
            _ => {}
        }
        names.last_mut().expect("there is one").push(character);
    }
    let trimmed = names.into_iter().map(|name| name.trim().to_owned());
    trimmed.filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_outside_brackets() {
        let names = |fields| field_names(Some(fields), None).map(Option::unwrap_or_default);
        assert_eq!(names("a, b.c,d"), Ok(vec!["a".into(), "b.c".into(), "d".into()]));
        assert_eq!(names("a.date(Jan 2, 2006),b.int32()"), Ok(vec!["a.date(Jan 2, 2006)".into(), "b.int32()".into()]));
        assert!(names("").is_err() && field_names(None, Some(Path::new("/missing"))).is_err());
        assert_eq!(field_names(None, None), Ok(None));
    }
}
