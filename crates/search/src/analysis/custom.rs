//! Custom analyzers of a definition, and the analyzers that it may name.

use super::characters::CharFilter;
use super::filters::Filter;
use super::tokenizers::{TOKEN_CHARACTERS_MAX, Tokenizer};
use super::{Analyzer, named};
use crate::{Reader, Refusal};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_pattern::Pattern;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Prefixes that names of custom analyzers must not have.
const NAMES_RESERVED: [&str; 4] = ["lucene.", "builtin.", "mongodb.", "$"];

/// All analyzers that an index may name.
#[derive(Clone, Debug, Default)]
pub struct Analyzers {
    custom: BTreeMap<String, Arc<Analyzer>>,
}

impl Analyzers {
    /// Parses custom analyzers; built-in ones need no definition.
    /// # Errors
    /// `BadValue` for a malformed analyzer; `CommandNotSupported` for unsupported parts.
    pub fn parse(definitions: &[DocumentBuf], path: &str) -> Result<Self> {
        let mut custom = BTreeMap::new();
        for (position, definition) in definitions.iter().enumerate() {
            let path = format!("{path}.analyzers[{position}]");
            let reader = Reader::new(definition.as_ref(), path, Refusal::Definition);
            let name = reader.required(reader.word("name")?, "name")?;
            if NAMES_RESERVED.iter().any(|reserved| name.starts_with(reserved)) {
                return Err(reader.wrong("name", "cannot begin as a name of MongoDB's does"));
            }
            if custom.insert(name.to_owned(), Arc::new(parse(&reader)?)).is_some() {
                return Err(reader.wrong("name", &format!("\"{name}\" must be defined once")));
            }
        }
        Ok(Self { custom })
    }

    /// The analyzer of that name.
    /// # Errors
    /// `BadValue` for an unknown name; `CommandNotSupported` for an analyzer of MongoDB that is not supported.
    pub fn get(&self, name: &str) -> Result<Arc<Analyzer>> {
        if let Some(own) = self.custom.get(name) {
            return Ok(Arc::clone(own));
        }
        if named::is_missing(name) {
            return Err(Failure::not_supported_yet(&format!("the analyzer {name}")));
        }
        let found = named::analyzer(name).map(Arc::new);
        found.ok_or_else(|| Failure::bad_value(format!("the analyzer \"{name}\" is not defined")))
    }
}

fn parse(reader: &Reader<'_>) -> Result<Analyzer> {
    let characters = reader.inners("charFilters")?.unwrap_or_default();
    let characters = characters.iter().map(char_filter).collect::<Result<_>>()?;
    let tokenizer = tokenizer(&reader.required(reader.inner("tokenizer")?, "tokenizer")?)?;
    let filters = reader.inners("tokenFilters")?.unwrap_or_default();
    let filters = filters.iter().map(filter).collect::<Result<_>>()?;
    reader.done()?;
    Ok(Analyzer { characters, tokenizer, filters })
}

fn kind<'a>(reader: &Reader<'a>) -> Result<&'a str> {
    reader.required(reader.string("type")?, "type")
}

fn char_filter(reader: &Reader<'_>) -> Result<CharFilter> {
    let parsed = match kind(reader)? {
        "htmlStrip" => CharFilter::HtmlStrip(reader.strings("ignoredTags")?.unwrap_or_default()),
        "icuNormalize" => CharFilter::IcuNormalize,
        "persian" => CharFilter::Persian,
        "mapping" => {
            let mappings = reader.required(reader.inner("mappings")?, "mappings")?;
            let mut pairs = Vec::new();
            for pair in mappings.document() {
                let to = mappings.required(mappings.string(pair.name)?, pair.name)?;
                if !pair.name.is_empty() {
                    pairs.push((pair.name.to_owned(), to.to_owned()));
                }
            }
            CharFilter::Mapping(pairs)
        }
        other => return Err(reader.wrong("type", &format!("\"{other}\" is not a character filter"))),
    };
    reader.done()?;
    Ok(parsed)
}

fn pattern(reader: &Reader<'_>) -> Result<Pattern> {
    let text = reader.required(reader.string("pattern")?, "pattern")?;
    Pattern::compile(text, "").map_err(|why| reader.wrong("pattern", &format!("is not a pattern: {why}")))
}

/// Reads `minGram` and `maxGram`.
fn bounds(reader: &Reader<'_>) -> Result<(usize, usize)> {
    let least = reader.required(reader.integer_within("minGram", 1, 1_000)?, "minGram")?;
    let most = reader.required(reader.integer_within("maxGram", 1, 1_000)?, "maxGram")?;
    if least > most {
        return Err(reader.wrong("minGram", "cannot be greater than maxGram"));
    }
    Ok((least as usize, most as usize))
}

/// Reads `maxTokenLength`.
fn token_characters_max(reader: &Reader<'_>) -> Result<usize> {
    let most = reader.integer_within("maxTokenLength", 1, 1_048_576)?;
    Ok(most.map_or(TOKEN_CHARACTERS_MAX, |most| most as usize))
}

fn tokenizer(reader: &Reader<'_>) -> Result<Tokenizer> {
    let parsed = match kind(reader)? {
        "standard" => Tokenizer::Standard(token_characters_max(reader)?),
        "whitespace" => Tokenizer::Whitespace(token_characters_max(reader)?),
        "keyword" => Tokenizer::Keyword,
        "edgeGram" => {
            let (least, most) = bounds(reader)?;
            Tokenizer::EdgeGram(least, most)
        }
        "nGram" => {
            let (least, most) = bounds(reader)?;
            Tokenizer::NGram(least, most)
        }
        "regexSplit" => Tokenizer::RegexSplit(pattern(reader)?),
        "regexCaptureGroup" => {
            let group = reader.required(reader.integer_within("group", 0, 99)?, "group")?;
            Tokenizer::RegexGroup(pattern(reader)?, group as usize)
        }
        other @ "uaxUrlEmail" => return Err(Failure::not_supported_yet(&format!("the tokenizer {other}"))),
        other => return Err(reader.wrong("type", &format!("\"{other}\" is not a tokenizer"))),
    };
    reader.done()?;
    Ok(parsed)
}

/// Filters of MongoDB that are not supported.
const FILTERS_MISSING: &[&str] = &[
    "daitchMokotoffSoundex",
    "flattenGraph",
    "kStemming",
    "keywordRepeat",
    "spanishPluralStemming",
    "stempel",
    "wordDelimiterGraph",
];

fn filter(reader: &Reader<'_>) -> Result<Filter> {
    let originals = &[("include", true), ("omit", false)];
    let parsed = match kind(reader)? {
        "lowercase" => Filter::Lowercase,
        "uppercase" => Filter::Uppercase,
        "asciiFolding" => {
            Filter::AsciiFolding { keeps_original: reader.one_of("originalTokens", originals)?.unwrap_or(false) }
        }
        "icuFolding" => Filter::IcuFolding,
        "icuNormalizer" => match reader.string("normalizationForm")? {
            None | Some("nfkc") => Filter::IcuNormalize,
            Some("nfc" | "nfd" | "nfkd") => {
                return Err(Failure::not_supported_yet(&reader.at("normalizationForm")));
            }
            Some(_) => return Err(reader.wrong("normalizationForm", "must be one of [nfc, nfd, nfkc, nfkd]")),
        },
        "englishPossessive" => Filter::EnglishPossessive,
        "stopword" => stop_words(reader)?,
        "porterStemming" => Filter::Stem(rust_stemmers::Algorithm::English),
        "snowballStemming" => {
            let name = reader.required(reader.string("stemmerName")?, "stemmerName")?;
            let name = if name == "porter" || name == "german2" { name.trim_end_matches('2') } else { name };
            let name = if name == "porter" { "english" } else { name };
            let missing = || Failure::not_supported_yet(&format!("the stemmer {name}"));
            Filter::Stem(named::stemmer(name).ok_or_else(missing)?)
        }
        "length" => {
            let least = reader.integer_within("min", 0, i64::from(i32::MAX))?.unwrap_or(0);
            let most = reader.integer_within("max", 0, i64::from(i32::MAX))?.unwrap_or(255);
            Filter::Length(least as usize, most as usize)
        }
        name @ ("edgeGram" | "nGram") => {
            let (least, most) = bounds(reader)?;
            let keeps = reader.one_of("termNotInBounds", originals)?.unwrap_or(false);
            if name == "nGram" { Filter::NGram(least, most, keeps) } else { Filter::EdgeGram(least, most, keeps) }
        }
        "trim" => Filter::Trim,
        "reverse" => Filter::Reverse,
        "removeDuplicates" => Filter::RemoveDuplicates,
        "shingle" => {
            let least = reader.required(reader.integer_within("minShingleSize", 2, 100)?, "minShingleSize")?;
            let most = reader.required(reader.integer_within("maxShingleSize", 2, 100)?, "maxShingleSize")?;
            Filter::Shingle(least as usize, most as usize)
        }
        "regex" => {
            let by = reader.required(reader.string("replacement")?, "replacement")?.to_owned();
            let everywhere = reader.one_of("matches", &[("all", true), ("first", false)])?;
            let everywhere = reader.required(everywhere, "matches")?;
            Filter::Regex { pattern: pattern(reader)?, by, everywhere }
        }
        other if FILTERS_MISSING.contains(&other) => {
            return Err(Failure::not_supported_yet(&format!("the token filter {other}")));
        }
        other => return Err(reader.wrong("type", &format!("\"{other}\" is not a token filter"))),
    };
    reader.done()?;
    Ok(parsed)
}

fn stop_words(reader: &Reader<'_>) -> Result<Filter> {
    let words = reader.required(reader.array("tokens")?, "tokens")?;
    let folds = reader.boolean("ignoreCase")?.unwrap_or(true);
    let read = |word: ValueRef<'_>| word.as_str().map(str::to_owned);
    let mut words: HashSet<String> = words
        .iter()
        .map(read)
        .collect::<Option<_>>()
        .ok_or_else(|| reader.wrong("tokens", "must be an array of strings"))?;
    if folds {
        let small: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        words.extend(small);
    }
    Ok(Filter::Stop(Arc::new(words)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_operation::OperationContext;
    use bunko_testkit::shell;

    fn analyzers(definition: &str) -> Result<Analyzers> {
        Analyzers::parse(&[shell::parse_document(definition).expect("a document")], "definition")
    }

    #[test]
    fn a_definition_makes_an_analyzer() {
        let made = analyzers(
            "{name: 'own', charFilters: [{type: 'htmlStrip'}], tokenizer: {type: 'standard'}, \
             tokenFilters: [{type: 'lowercase'}, {type: 'stopword', tokens: ['the']}]}",
        );
        let own = made.expect("it is well formed").get("own").expect("it is there");
        let tokens = own.analyze("<b>The Cat</b>", &OperationContext::unlimited()).expect("without limits");
        assert_eq!(tokens.iter().map(|token| token.text.as_str()).collect::<Vec<_>>(), ["cat"]);
    }

    #[test]
    fn wrong_definitions_are_refused() {
        let code = |definition: &str| analyzers(definition).map_err(|failure| failure.code().0).err();
        assert_eq!(code("{name: 'own'}"), Some(2));
        assert_eq!(code("{name: 'lucene.own', tokenizer: {type: 'keyword'}}"), Some(2));
        assert_eq!(code("{name: 'own', tokenizer: {type: 'uaxUrlEmail'}}"), Some(115));
        assert_eq!(code("{name: 'own', tokenizer: {type: 'keyword', more: 1}}"), Some(2));
    }
}
