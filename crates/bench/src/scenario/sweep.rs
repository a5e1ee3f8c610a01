//! Settings that take several values in turn.

use super::Override;
use serde::{Deserialize, Serialize};
use toml::Table;

/// Settings that change together: the first values of all, then the second ones, and so on. Axes are combined with each
/// other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Axis(pub Table);

/// One value of each axis, in the scenario's order.
pub type Variant = Vec<Override>;

/// Every combination of the axes' values, the last axis changing fastest.
/// # Errors
/// An axis whose settings have different numbers of values, or none.
pub(super) fn variants(axes: &[Axis]) -> Result<Vec<Variant>, String> {
    let mut variants: Vec<Variant> = vec![Vec::new()];
    for axis in axes {
        let rows = rows(axis)?;
        let crossed = variants
            .iter()
            .flat_map(|variant| rows.iter().map(move |row| variant.iter().chain(row).cloned().collect::<Variant>()));
        variants = crossed.collect();
    }
    Ok(variants)
}

fn rows(Axis(settings): &Axis) -> Result<Vec<Variant>, String> {
    let mut lists = Vec::new();
    for (key, values) in settings {
        let values = values.as_array().filter(|values| !values.is_empty());
        lists.push((key, values.ok_or_else(|| format!("sweep: '{key}' needs a list of values"))?));
    }
    let length = lists.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    // A single value is combined with all values of the others.
    if let Some((key, values)) = lists.iter().find(|(_, values)| values.len() != length && values.len() != 1) {
        return Err(format!("sweep: '{key}' has {} values, another setting of the same axis {length}", values.len()));
    }
    let value = |values: &[toml::Value], row: usize| values[if values.len() == 1 { 0 } else { row }].clone();
    let row = |row| lists.iter().map(|(key, values)| Override::new(key, value(values, row))).collect();
    Ok((0..length).map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<Vec<String>, String> {
        let axes: Vec<Axis> = toml::from_str::<Table>(text).expect("TOML")["sweep"].clone().try_into().expect("axes");
        let variants = variants(&axes)?;
        let show = |variant: &Variant| variant.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        Ok(variants.iter().map(show).collect())
    }

    #[test]
    fn settings_of_an_axis_go_together_and_axes_are_crossed() {
        let text = "[[sweep]]\n'a.b' = [1, 2]\nc = ['x', 'y']\n[[sweep]]\nd = [3, 4]\ne = [5]";
        let expected = ["a.b=1 c=x d=3 e=5", "a.b=1 c=x d=4 e=5", "a.b=2 c=y d=3 e=5", "a.b=2 c=y d=4 e=5"];
        assert_eq!(shown(text).as_deref(), Ok(expected.map(str::to_owned).as_slice()));
    }

    #[test]
    fn uneven_axes_are_refused() {
        let error = shown("[[sweep]]\na = [1, 2, 3]\nb = [1, 2]").expect_err("uneven");
        assert!(error.contains("'b' has 2 values") && error.contains('3'), "{error}");
        assert!(shown("[[sweep]]\na = 1").is_err());
    }
}
