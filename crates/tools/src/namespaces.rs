//! Chooses the namespaces of a restore, and renames them.
//!
//! A namespace is `database.collection`; only its first dot divides. Patterns see the whole text, so that an asterisk
//! may match a dot too.
//! Source: MongoDB's documentation of `mongorestore`, `--nsInclude`, `--nsExclude`, `--nsFrom`, `--nsTo`.

mod pattern;
#[cfg(test)]
mod tests;

use pattern::{Parts, PatternPiece, Wildcards};
use std::borrow::Cow;
use std::fmt;

/// Why a pattern or a pair of patterns is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// A pattern without a character.
    Empty,
    /// A backslash at the end of the pattern.
    DanglingBackslash {
        /// The whole pattern.
        pattern: String,
    },
    /// A `$` that opens a variable and no `$` that closes it.
    UnbalancedDollar {
        /// The whole pattern.
        pattern: String,
    },
    /// A variable whose name is empty or holds something else than letters, digits and underscores.
    BadVariable {
        /// The whole pattern.
        pattern: String,
        /// The text between the dollar signs.
        variable: String,
    },
    /// A variable that occurs twice in a `--nsFrom`.
    RepeatedVariable {
        /// The whole pattern.
        pattern: String,
        /// Its name.
        variable: String,
    },
    /// A variable of a `--nsTo` that its `--nsFrom` does not have.
    UnknownVariable {
        /// The `--nsFrom`.
        from: String,
        /// The `--nsTo`.
        to: String,
        /// Its name.
        variable: String,
    },
    /// A `--nsTo` with more or fewer asterisks than its `--nsFrom`.
    AsterisksDiffer {
        /// The `--nsFrom`.
        from: String,
        /// The `--nsTo`.
        to: String,
    },
    /// `--nsFrom` and `--nsTo` were not given equally often.
    PairsDiffer {
        /// How often `--nsFrom` was given.
        from: usize,
        /// How often `--nsTo` was given.
        to: usize,
    },
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a namespace pattern is empty"),
            Self::DanglingBackslash { pattern } => {
                write!(f, "namespace pattern '{pattern}' ends with a backslash that escapes nothing")
            }
            Self::UnbalancedDollar { pattern } => {
                write!(f, "namespace pattern '{pattern}' opens a variable with '$' and does not close it")
            }
            Self::BadVariable { pattern, variable } => write!(
                f,
                "namespace pattern '{pattern}': '{variable}' is not a name of a variable (letters, digits, underscores)"
            ),
            Self::RepeatedVariable { pattern, variable } => {
                write!(f, "--nsFrom '{pattern}' has the variable '{variable}' twice")
            }
            Self::UnknownVariable { from, to, variable } => {
                write!(f, "--nsTo '{to}' names the variable '{variable}', which --nsFrom '{from}' does not have")
            }
            Self::AsterisksDiffer { from, to } => {
                write!(f, "--nsFrom '{from}' and --nsTo '{to}' do not have equally many asterisks")
            }
            Self::PairsDiffer { from, to } => {
                write!(f, "--nsFrom was given {from} times and --nsTo {to} times: they come in pairs")
            }
        }
    }
}

impl std::error::Error for PatternError {}

/// Takes or leaves out namespaces by patterns.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    include: Vec<Parts>,
    exclude: Vec<Parts>,
}

impl Filter {
    /// Takes namespaces that match an `--nsInclude`, or all if there is none, except those that match an `--nsExclude`.
    /// # Errors
    /// Names the pattern.
    pub fn new(include: &[String], exclude: &[String]) -> Result<Self, PatternError> {
        let parse = |patterns: &[String]| {
            patterns.iter().map(|pattern| Parts::parse(pattern, Wildcards::Asterisks)).collect::<Result<_, _>>()
        };
        Ok(Self { include: parse(include)?, exclude: parse(exclude)? })
    }

    /// Includes in addition the namespaces that `--db` and `--collection` name; adds nothing if neither is given.
    #[must_use]
    pub fn with(mut self, database: Option<&str>, collection: Option<&str>) -> Self {
        if database.is_some() || collection.is_some() {
            let side =
                |name: Option<&str>| name.map_or(PatternPiece::Asterisk, |name| PatternPiece::Literal(name.to_owned()));
            let parts = vec![side(database), PatternPiece::Literal(".".to_owned()), side(collection)];
            self.include.push(Parts::new(parts));
        }
        self
    }

    /// Excludes all collections of a database.
    #[must_use]
    pub fn without_database(self, database: &str) -> Self {
        self.without(vec![PatternPiece::Literal(format!("{database}.")), PatternPiece::Asterisk])
    }

    /// Excludes one collection.
    #[must_use]
    pub fn without_namespace(self, namespace: &str) -> Self {
        self.without(vec![PatternPiece::Literal(namespace.to_owned())])
    }

    fn without(mut self, parts: Vec<PatternPiece>) -> Self {
        self.exclude.push(Parts::new(parts));
        self
    }

    /// Whether the filter takes a namespace.
    pub fn takes(&self, namespace: &str) -> bool {
        let is_included = self.include.is_empty() || self.include.iter().any(|parts| parts.matches(namespace));
        is_included && !self.exclude.iter().any(|parts| parts.matches(namespace))
    }

    /// Whether the filter takes every collection of a database.
    pub fn takes_database(&self, database: &str) -> bool {
        // Patterns that include only some of the database's collections do not match this name.
        let any = format!("{database}.*");
        let is_included = self.include.is_empty() || self.include.iter().any(|parts| parts.matches(&any));
        let prefix = format!("{database}.");
        is_included && !self.exclude.iter().any(|parts| parts.may_begin_with(&prefix))
    }

    /// Whether the filter takes every namespace.
    pub fn takes_everything(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }
}

/// New names of namespaces.
#[derive(Clone, Debug, Default)]
pub struct Renames {
    pairs: Vec<Rename>,
}

#[derive(Clone, Debug)]
struct Rename {
    from: Parts,
    to: Vec<Substitute>,
}

/// A piece of a new name.
#[derive(Clone, Debug)]
enum Substitute {
    Literal(String),
    /// The text that matched the wildcard of `from` with this number.
    Capture(usize),
}

impl Renames {
    /// Pairs each `--nsFrom` with the `--nsTo` in the same position.
    /// # Errors
    /// Names the pattern or the pair.
    pub fn new(from: &[String], to: &[String]) -> Result<Self, PatternError> {
        if from.len() != to.len() {
            return Err(PatternError::PairsDiffer { from: from.len(), to: to.len() });
        }
        let pairs = from.iter().zip(to).map(|(from, to)| Rename::parse(from, to)).collect::<Result<_, _>>()?;
        Ok(Self { pairs })
    }

    /// The new name, by the first pair that matches; the old name if none does.
    pub fn apply<'n>(&self, namespace: &'n str) -> Cow<'n, str> {
        let renamed = self.pairs.iter().find_map(|pair| pair.apply(namespace));
        renamed.map_or(Cow::Borrowed(namespace), Cow::Owned)
    }
}

impl Rename {
    fn parse(from_text: &str, to_text: &str) -> Result<Self, PatternError> {
        let from = Parts::parse(from_text, Wildcards::AsterisksAndVariables)?;
        let to = Parts::parse(to_text, Wildcards::AsterisksAndVariables)?;
        if let Some(variable) = from.repeated_variable() {
            return Err(PatternError::RepeatedVariable {
                pattern: from_text.to_owned(),
                variable: variable.to_owned(),
            });
        }
        let asterisks: Vec<usize> = from.captures_where(|part| *part == PatternPiece::Asterisk).collect();
        if asterisks.len() != to.captures_where(|part| *part == PatternPiece::Asterisk).count() {
            return Err(PatternError::AsterisksDiffer { from: from_text.to_owned(), to: to_text.to_owned() });
        }
        let mut asterisks = asterisks.into_iter();
        let substitute = |part: &PatternPiece| match part {
            PatternPiece::Literal(text) => Ok(Substitute::Literal(text.clone())),
            PatternPiece::Asterisk => Ok(Substitute::Capture(asterisks.next().expect("both have equally many"))),
            PatternPiece::Variable(name) => {
                let known =
                    from.captures_where(|part| matches!(part, PatternPiece::Variable(other) if other == name)).next();
                known.map(Substitute::Capture).ok_or_else(|| PatternError::UnknownVariable {
                    from: from_text.to_owned(),
                    to: to_text.to_owned(),
                    variable: name.clone(),
                })
            }
        };
        let to = to.iter().map(substitute).collect::<Result<_, _>>()?;
        Ok(Self { from, to })
    }

    fn apply(&self, namespace: &str) -> Option<String> {
        let captures = self.from.captures(namespace)?;
        let pieces = self.to.iter().map(|piece| match piece {
            Substitute::Literal(text) => text.as_str(),
            Substitute::Capture(number) => captures[*number],
        });
        Some(pieces.collect())
    }
}
