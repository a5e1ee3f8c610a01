//! SPDX licence expressions: `MIT OR (Apache-2.0 WITH LLVM-exception AND ISC)`, and crates.io's older `MIT/Apache-2.0`.
//!
//! Source: SPDX specification, annex "SPDX license expressions".

/// Whether a user who accepts exactly the licences for which `allowed` is true may use a work under `expression`. A
/// licence with an exception is passed as one string: `Apache-2.0 WITH LLVM-exception`.
///
/// # Errors
/// A description of the first thing that is not an SPDX expression.
pub fn satisfiable(expression: &str, allowed: impl Fn(&str) -> bool) -> Result<bool, String> {
    let tokens = tokens(expression);
    let mut parser = Parser { tokens: &tokens, allowed };
    let satisfied = parser.alternatives()?;
    match parser.tokens.first() {
        None => Ok(satisfied),
        Some(token) => Err(format!("unexpected {token:?} in {expression:?}")),
    }
}

fn tokens(expression: &str) -> Vec<String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

struct Parser<'a, Allowed> {
    tokens: &'a [String],
    allowed: Allowed,
}

impl<Allowed: Fn(&str) -> bool> Parser<'_, Allowed> {
    /// `a OR b`: the weakest operator.
    fn alternatives(&mut self) -> Result<bool, String> {
        let mut satisfied = self.conjunction()?;
        while self.take("OR") {
            // Not `||`: the right side must be parsed in any case.
            satisfied |= self.conjunction()?;
        }
        Ok(satisfied)
    }

    fn conjunction(&mut self) -> Result<bool, String> {
        let mut satisfied = self.licence()?;
        while self.take("AND") {
            satisfied &= self.licence()?;
        }
        Ok(satisfied)
    }

    fn licence(&mut self) -> Result<bool, String> {
        if self.take("(") {
            let satisfied = self.alternatives()?;
            return if self.take(")") { Ok(satisfied) } else { Err("a parenthesis is not closed".to_owned()) };
        }
        let mut licence = self.identifier()?;
        if self.take("WITH") {
            licence = format!("{licence} WITH {}", self.identifier()?);
        }
        // `MIT+` is MIT or any later version, so accepting MIT is enough.
        Ok((self.allowed)(licence.trim_end_matches('+')))
    }

    fn identifier(&mut self) -> Result<String, String> {
        match self.tokens.split_first() {
            Some((token, rest)) if !matches!(token.as_str(), "(" | ")" | "AND" | "OR" | "WITH") => {
                self.tokens = rest;
                Ok(token.clone())
            }
            Some((token, _)) => Err(format!("a licence is expected, not {token:?}")),
            None => Err("a licence is expected at the end".to_owned()),
        }
    }

    fn take(&mut self, expected: &str) -> bool {
        let Some((token, rest)) = self.tokens.split_first() else { return false };
        let taken = token == expected;
        if taken {
            self.tokens = rest;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::satisfiable;

    fn permissive(licence: &str) -> bool {
        matches!(licence, "MIT" | "Apache-2.0" | "ISC" | "Apache-2.0 WITH LLVM-exception")
    }

    #[test]
    fn expressions_are_evaluated() {
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("MIT OR Apache-2.0", true),
            ("GPL-3.0-only OR MIT", true),
            ("MIT OR GPL-3.0-only", true),
            ("MIT AND GPL-3.0-only", false),
            ("MIT AND ISC", true),
            ("MIT/Apache-2.0", true),
            ("GPL-2.0/MPL-2.0", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("MIT WITH LLVM-exception", false),
            ("GPL-2.0-only WITH LLVM-exception OR MIT", true),
            ("Apache-2.0+", true),
            ("(MIT OR GPL-2.0-only) AND ISC", true),
            ("(MIT OR ISC) AND GPL-2.0-only", false),
            // AND binds tighter than OR.
            ("MIT OR ISC AND GPL-2.0-only", true),
            ("GPL-2.0-only AND MIT OR ISC", true),
            ("((MIT))", true),
        ] {
            assert_eq!(satisfiable(expression, permissive), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for expression in ["", "MIT OR", "(MIT", "MIT)", "MIT Apache-2.0", "AND MIT", "MIT WITH", "()"] {
            assert!(satisfiable(expression, permissive).is_err(), "{expression:?}");
        }
    }
}
