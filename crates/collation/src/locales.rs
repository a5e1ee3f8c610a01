//! The locales that MongoDB accepts, and their tables here.
//!
//! Source: MongoDB manual, "Collation Locales and Default Parameters".

/// A locale's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tables {
    /// The root's tables: the locale has no rules of its own.
    Root,
    /// The locale has rules of its own.
    Own,
}

/// Locales: languages, with scripts and regions where MongoDB has rules for them.
const LOCALES: &[&str] = &[
    "af",
    "am",
    "ar",
    "as",
    "az",
    "be",
    "bg",
    "bn",
    "bo",
    "bs",
    "bs_Cyrl",
    "ca",
    "chr",
    "cs",
    "cy",
    "da",
    "de",
    "de_AT",
    "dsb",
    "dz",
    "ee",
    "el",
    "en",
    "en_US",
    "en_US_POSIX",
    "eo",
    "es",
    "et",
    "fa",
    "fa_AF",
    "fi",
    "fil",
    "fo",
    "fr",
    "fr_CA",
    "ga",
    "gl",
    "gu",
    "ha",
    "haw",
    "he",
    "hi",
    "hr",
    "hsb",
    "hu",
    "hy",
    "id",
    "ig",
    "is",
    "it",
    "ja",
    "ka",
    "kk",
    "kl",
    "km",
    "kn",
    "ko",
    "kok",
    "ky",
    "lb",
    "lkt",
    "ln",
    "lo",
    "lt",
    "lv",
    "mk",
    "ml",
    "mn",
    "mr",
    "ms",
    "mt",
    "my",
    "nb",
    "ne",
    "nl",
    "nn",
    "om",
    "or",
    "pa",
    "pl",
    "ps",
    "pt",
    "ro",
    "ru",
    "se",
    "si",
    "sk",
    "sl",
    "smn",
    "sq",
    "sr",
    "sr_Latn",
    "sv",
    "sw",
    "ta",
    "te",
    "th",
    "to",
    "tr",
    "ug",
    "uk",
    "ur",
    "vi",
    "wae",
    "yi",
    "yo",
    "zh",
    "zh_Hant",
    "zu",
];

/// Locales of [`LOCALES`] that follow the root's rules.
const ROOT: &[&str] = &[
    "bo", "ca", "de", "de_AT", "dz", "en", "en_US", "fr", "ga", "haw", "id", "it", "kl", "lb", "lkt", "ln", "ms", "nl",
    "pt", "se", "smn", "sw", "wae", "yi", "zu",
];

/// Locales of [`ROOT`] that had rules of their own in ICU 57.
const MISSING: &[&str] = &["ca", "dz", "kl", "ln", "se", "smn", "wae", "yi"];

/// Variants after `@collation=`: the locale, MongoDB's name, and the name in a language tag; `None` if there are no
/// tables for it.
const VARIANTS: &[(&str, &str, Option<&str>)] = &[
    ("ar", "compat", Some("compat")),
    ("bn", "traditional", Some("trad")),
    ("de", "eor", Some("eor")),
    ("de", "phonebook", Some("phonebk")),
    ("de_AT", "phonebook", Some("phonebk")),
    ("es", "traditional", Some("trad")),
    ("fi", "traditional", Some("trad")),
    ("ja", "unihan", Some("unihan")),
    ("kn", "traditional", Some("trad")),
    ("ko", "searchjl", None),
    ("ko", "unihan", Some("unihan")),
    ("ln", "phonetic", None),
    ("si", "dictionary", Some("dict")),
    ("sv", "reformed", None),
    ("vi", "traditional", Some("trad")),
    ("zh", "big5han", None),
    ("zh", "gb2312han", None),
    ("zh", "pinyin", Some("pinyin")),
    ("zh", "stroke", Some("stroke")),
    ("zh", "unihan", Some("unihan")),
    ("zh", "zhuyin", Some("zhuyin")),
    ("zh_Hant", "pinyin", Some("pinyin")),
    ("zh_Hant", "stroke", Some("stroke")),
    ("zh_Hant", "unihan", Some("unihan")),
    ("zh_Hant", "zhuyin", Some("zhuyin")),
];

/// Locales for which MongoDB has a `search` variant.
const SEARCHED: &[&str] = &[
    "ar", "az", "bs", "ca", "cs", "da", "de", "es", "fi", "fo", "fr", "gl", "he", "hr", "is", "kl", "ko", "nb", "nn",
    "se", "sk", "smn", "sr_Latn", "sv", "th", "tr", "yi",
];

/// Locales whose texts are normalized by default.
const NORMALIZED: &[&str] =
    &["as", "bn", "fa", "fa_AF", "gu", "hi", "kn", "kok", "ml", "mr", "or", "pa", "ta", "te", "th", "vi"];

/// Result of looking for a locale by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LocaleLookup {
    /// The language tag of the locale's tables.
    Tag(String, Tables),
    /// MongoDB has the locale, Bunko does not.
    Missing,
    /// There is no such locale, but there is this one without the script, region or variant.
    Language(&'static str),
    Unknown,
}

/// Looks for a locale: `de`, `zh_Hant`, `de@collation=phonebook`.
pub(crate) fn find(name: &str) -> LocaleLookup {
    let (base, variant) = name.split_once("@collation=").map_or((name, None), |(base, variant)| (base, Some(variant)));
    let Some(base) = LOCALES.iter().find(|locale| **locale == base) else {
        let language = base.split(['_', '-', '@']).next().unwrap_or_default();
        let language = LOCALES.iter().find(|locale| **locale == language);
        return language.map_or(LocaleLookup::Unknown, |language| LocaleLookup::Language(language));
    };
    let tag = match *base {
        "en_US_POSIX" => "en-US-posix".to_owned(),
        base => base.replace('_', "-"),
    };
    match variant {
        None if MISSING.contains(base) => LocaleLookup::Missing,
        None if ROOT.contains(base) => LocaleLookup::Tag(tag, Tables::Root),
        None | Some("standard") => LocaleLookup::Tag(tag, Tables::Own),
        Some("search") if SEARCHED.contains(base) => LocaleLookup::Missing,
        Some(variant) => match VARIANTS.iter().find(|known| known.0 == *base && known.1 == variant) {
            Some((_, _, Some(keyword))) => LocaleLookup::Tag(format!("{tag}-u-co-{keyword}"), Tables::Own),
            Some(_) => LocaleLookup::Missing,
            None => LocaleLookup::Language(base),
        },
    }
}

/// Whether a locale's texts are normalized by default.
pub(crate) fn is_normalized(name: &str) -> bool {
    NORMALIZED.contains(&name.split('@').next().unwrap_or_default())
}
