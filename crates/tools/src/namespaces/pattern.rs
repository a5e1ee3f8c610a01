//! One pattern: literal pieces, and wildcards between them.

use super::PatternError;

/// Kinds of wildcards that a pattern may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wildcards {
    /// `--nsInclude`, `--nsExclude`: a dollar sign is a plain character.
    Asterisks,
    /// `--nsFrom`, `--nsTo`.
    AsterisksAndVariables,
}

/// A piece of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PatternPiece {
    /// Matches itself.
    Literal(String),
    /// `*`: matches any characters, or none.
    Asterisk,
    /// `$name$`: matches any characters, or none.
    Variable(String),
}

/// A parsed pattern.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    parts: Vec<PatternPiece>,
}

impl Parts {
    pub(super) fn new(parts: Vec<PatternPiece>) -> Self {
        Self { parts }
    }

    pub(super) fn parse(pattern: &str, wildcards: Wildcards) -> Result<Self, PatternError> {
        if pattern.is_empty() {
            return Err(PatternError::Empty);
        }
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            let wildcard = match character {
                '\\' => {
                    let dangling = || PatternError::DanglingBackslash { pattern: pattern.to_owned() };
                    literal.push(characters.next().ok_or_else(dangling)?);
                    continue;
                }
                '*' => PatternPiece::Asterisk,
                '$' if wildcards == Wildcards::AsterisksAndVariables => {
                    let rest = characters.as_str();
                    let unbalanced = || PatternError::UnbalancedDollar { pattern: pattern.to_owned() };
                    let (name, behind) = rest.split_once('$').ok_or_else(unbalanced)?;
                    characters = behind.chars();
                    PatternPiece::Variable(variable(pattern, name)?)
                }
                _ => {
                    literal.push(character);
                    continue;
                }
            };
            if !literal.is_empty() {
                parts.push(PatternPiece::Literal(std::mem::take(&mut literal)));
            }
            parts.push(wildcard);
        }
        if !literal.is_empty() {
            parts.push(PatternPiece::Literal(literal));
        }
        Ok(Self { parts })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &PatternPiece> {
        self.parts.iter()
    }

    pub(super) fn repeated_variable(&self) -> Option<&str> {
        self.parts.iter().enumerate().find_map(|(at, part)| match part {
            PatternPiece::Variable(name) if self.parts[..at].contains(part) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The numbers of the wildcards that `wanted` accepts, counted among wildcards only.
    pub(super) fn captures_where(&self, wanted: impl Fn(&PatternPiece) -> bool) -> impl Iterator<Item = usize> {
        let wildcards = self.parts.iter().filter(|part| !matches!(part, PatternPiece::Literal(_)));
        wildcards.enumerate().filter(move |(_, part)| wanted(part)).map(|(number, _)| number)
    }

    /// Whether the pattern matches some text that begins with `prefix`.
    pub(super) fn may_begin_with(&self, prefix: &str) -> bool {
        let wildcard = self.parts.iter().position(|part| !matches!(part, PatternPiece::Literal(_)));
        let literals = self.parts[..wildcard.unwrap_or(self.parts.len())].iter().filter_map(|part| match part {
            PatternPiece::Literal(literal) => Some(literal.as_str()),
            PatternPiece::Asterisk | PatternPiece::Variable(_) => None,
        });
        let beginning: String = literals.collect();
        beginning.starts_with(prefix) || wildcard.is_some() && prefix.starts_with(&beginning)
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.captures(text).is_some()
    }

    /// The text that each wildcard matches, if the whole text matches. If there are several ways, earlier wildcards are
    /// as short as possible.
    ///
    /// Time is bounded by the product of both lengths: backtracking would take exponential time in the number of
    /// wildcards.
    pub(super) fn captures<'t>(&self, text: &'t str) -> Option<Vec<&'t str>> {
        let reachable = self.reachable(text);
        if !reachable[0][0] {
            return None;
        }
        let mut captures = Vec::new();
        let mut at = 0;
        for (number, part) in self.parts.iter().enumerate() {
            if let PatternPiece::Literal(literal) = part {
                at += literal.len();
                continue;
            }
            let next = &reachable[number + 1];
            let end = (at..=text.len()).find(|&end| next[end])?;
            captures.push(&text[at..end]);
            at = end;
        }
        Some(captures)
    }

    /// For each number of leading parts and each position: whether the remaining parts match the remaining text.
    /// Positions inside a character match nothing.
    fn reachable(&self, text: &str) -> Vec<Vec<bool>> {
        let length = text.len();
        let mut rows = vec![vec![false; length + 1]; self.parts.len() + 1];
        rows[self.parts.len()][length] = true;
        for (number, part) in self.parts.iter().enumerate().rev() {
            let (rows, behind) = rows.split_at_mut(number + 1);
            let (row, next) = (&mut rows[number], &behind[0]);
            match part {
                PatternPiece::Literal(literal) => {
                    for at in (0..=length).filter(|&at| text.is_char_boundary(at)) {
                        row[at] = text[at..].starts_with(literal) && next[at + literal.len()];
                    }
                }
                PatternPiece::Asterisk | PatternPiece::Variable(_) => {
                    let mut is_reachable = false;
                    for at in (0..=length).rev() {
                        is_reachable |= next[at];
                        row[at] = is_reachable && text.is_char_boundary(at);
                    }
                }
            }
        }
        rows
    }
}

fn variable(pattern: &str, name: &str) -> Result<String, PatternError> {
    let is_name =
        !name.is_empty() && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if is_name {
        Ok(name.to_owned())
    } else {
        Err(PatternError::BadVariable { pattern: pattern.to_owned(), variable: name.to_owned() })
    }
}
