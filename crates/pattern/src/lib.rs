//! Regular expressions: PCRE2, with a callback during searches that decides whether to go on.
//!
//! PCRE2 limits the steps of each match attempt, and makes an attempt at each character of the text. A single step may
//! go over the whole text: within these limits a search in 16 MB may take weeks. So for long texts, a pattern is
//! compiled with a callout at its beginning, which PCRE2 calls at every place where a match may begin, and its limit of
//! steps keeps the time between two callouts short. If that limit is exceeded, the pattern is compiled once more, with
//! a callout before each of its items, and searched with the usual limit. If the stack of its machine code overflows,
//! the pattern is interpreted.
//!
//! The callback may read the clock only once in some hundreds of steps, and many short texts may be searched between
//! two such readings. So a short text is first searched with a small limit. A search that exceeds it reports many
//! steps, and begins anew with a larger limit.
//!
//! **Invariant:** for every pattern and text, not much more than a second passes between two calls of the callback.

mod code;

use code::{Code, Means, Searched};
use std::fmt;
use std::sync::{Arc, OnceLock};

pub use code::Groups;

/// A compiled regular expression.
#[derive(Clone)]
pub struct Pattern(Arc<Compiled>);

struct Compiled {
    source: String,
    options: String,
    flags: u32,
    /// Has no callouts, for short texts: callouts prevent some of PCRE2's optimizations.
    plain: Code,
    /// Has a callout at each place where a match may begin. Compiled on first use; `None` if [`with_callout`] gives no
    /// pattern or it does not compile.
    asking: OnceLock<Option<Code>>,
    /// Has a callout before each item of the pattern. Compiled on first use; `None` if that fails.
    thorough: OnceLock<Option<Code>>,
}

/// Why a search was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped<E> {
    /// The callback stopped it with this error.
    Told(E),
    /// PCRE2's limits were exceeded; its error code.
    Exceeded(i32),
}

/// Steps of one match attempt after which PCRE2 gives up: its own default.
const STEPS_MAX: u32 = 10_000_000;
/// Characters that a search may look at between two calls of the callback: one or two tenths of a second.
const LOOKS_MAX: usize = 300_000_000;
/// Greatest length of a text that is first searched without callouts, in bytes.
const SHORT_TEXT_BYTES: usize = 4096;
/// Characters that a search of a short text may look at before it calls the callback: some milliseconds.
const LOOKS_UNASKED: usize = 4_000_000;
/// Steps that are reported for a search that exceeds [`LOOKS_UNASKED`]: enough that the callback reads the clock.
const STEPS_OF_LONG: usize = 1 << 20;
/// Greatest length of a pattern without repetition for which an attempt at a place is always short, in bytes.
const SHORT_BYTES: usize = 64;

impl Pattern {
    /// Compiles a pattern in UTF-8. The options `i`, `m`, `s` and `x` mean what they mean in Perl; others are ignored.
    /// # Errors
    /// PCRE2's reason.
    pub fn compile(source: &str, options: &str) -> Result<Self, String> {
        let flags = code::flags(options);
        Ok(Self(Arc::new(Compiled {
            source: source.to_owned(),
            options: options.to_owned(),
            flags,
            plain: Code::compile(source, flags)?,
            asking: OnceLock::new(),
            thorough: OnceLock::new(),
        })))
    }

    /// Whether it matches somewhere in `text`. `goes_on` is called now and then with the steps since its last call. Its
    /// error stops the search.
    /// # Errors
    /// [`Stopped`].
    pub fn is_match<E>(&self, text: &str, goes_on: impl FnMut(usize) -> Result<(), E>) -> Result<bool, Stopped<E>> {
        self.search(text, 0, None, goes_on)
    }

    /// The first match that begins at byte `from` or after it; see [`Pattern::is_match`].
    /// # Errors
    /// [`Stopped`].
    pub fn find<E>(
        &self,
        text: &str,
        from: usize,
        goes_on: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<Option<Groups>, Stopped<E>> {
        let mut groups = Groups::new();
        Ok(self.search(text, from, Some(&mut groups), goes_on)?.then_some(groups))
    }

    fn search<E>(
        &self,
        text: &str,
        from: usize,
        groups: Option<&mut Groups>,
        mut goes_on: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<bool, Stopped<E>> {
        let mut told = None;
        let searched = self.0.search(text, from, groups, &mut |steps| match goes_on(steps) {
            Ok(()) => true,
            Err(failure) => {
                told = Some(failure);
                false
            }
        });
        match (told, searched) {
            (Some(failure), _) => Err(Stopped::Told(failure)),
            (None, Searched::Found) => Ok(true),
            (None, Searched::Nothing) => Ok(false),
            (None, Searched::Failed(code)) => Err(Stopped::Exceeded(code)),
        }
    }
}

impl Compiled {
    /// Chooses the compiled form with which a text is searched first.
    fn first_for(&self, text: &str) -> &Code {
        if text.len() <= SHORT_TEXT_BYTES {
            return &self.plain;
        }
        let compile = || Code::compile(&with_callout(&self.source, &self.options)?, self.flags).ok();
        self.asking.get_or_init(compile).as_ref().unwrap_or(&self.plain)
    }

    fn search(
        &self,
        text: &str,
        from: usize,
        mut groups: Option<&mut Groups>,
        goes_on: &mut dyn FnMut(usize) -> bool,
    ) -> Searched {
        let is_short = text.len() <= SHORT_TEXT_BYTES;
        let first = self.first_for(text);
        let steps_max = steps_for(LOOKS_MAX, text);
        let unasked = if is_short { steps_for(LOOKS_UNASKED, text) } else { steps_max };
        let mut searched = first.search(text, from, (unasked, Means::Machine), groups.as_deref_mut(), goes_on);
        if is_short && searched.exceeds_steps() {
            if !goes_on(STEPS_OF_LONG) {
                return searched;
            }
            searched = first.search(text, from, (steps_max, Means::Machine), groups.as_deref_mut(), goes_on);
        }
        if !(searched.exceeds_steps() && steps_max < STEPS_MAX || searched.exceeds_stack()) {
            return searched;
        }
        let thorough =
            self.thorough.get_or_init(|| Code::compile(&self.source, self.flags | code::ASK_BEFORE_ITEMS).ok());
        let Some(thorough) = thorough else { return searched };
        if !searched.exceeds_stack() {
            let limits = (STEPS_MAX, Means::Machine);
            searched = thorough.search(text, from, limits, groups.as_deref_mut(), goes_on);
        }
        if searched.exceeds_stack() {
            searched = thorough.search(text, from, (STEPS_MAX, Means::Interpreter), groups, goes_on);
        }
        searched
    }
}

/// Limit of steps from each place of a text. So many steps look at about `looks` characters at most, even if each goes
/// over the whole text. At least 16.
fn steps_for(looks: usize, text: &str) -> u32 {
    u32::try_from(looks / (1 + text.len())).unwrap_or(u32::MAX).clamp(16, STEPS_MAX)
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.0.source)
    }
}

/// Puts a callout in front of the pattern; `None` if it needs none, or begins with `(*`, which must stay in front.
fn with_callout(source: &str, options: &str) -> Option<String> {
    let repeats = source.contains(['*', '+', '{', '(']);
    if source.starts_with("(*") || !repeats && source.len() <= SHORT_BYTES {
        return None;
    }
    if !source.contains('|') {
        return Some(format!("(?C1){source}"));
    }
    // The newline ends a comment that runs to the end of the pattern.
    let end = if options.contains('x') { "\n" } else { "" };
    Some(format!("(?C1)(?:{source}{end})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::cpu_time::CpuTime;
    use std::time::Duration;

    fn pattern(source: &str, options: &str) -> Pattern {
        Pattern::compile(source, options).expect("valid")
    }

    #[expect(clippy::unnecessary_wraps, reason = "it stands where a question may be answered otherwise")]
    fn endless(_: usize) -> Result<(), ()> {
        Ok(())
    }

    fn find(source: &str, options: &str, text: &str, from: usize) -> Option<Groups> {
        pattern(source, options).find(text, from, endless).expect("no limit")
    }

    #[test]
    fn groups_are_where_they_are() {
        assert_eq!(find("b(c)?(d)", "", "abd", 0), Some(vec![Some(1..3), None, Some(2..3)]));
        assert_eq!(find("a|b", "", "cab", 2), Some(vec![Some(2..3)]));
        assert_eq!(find("ü+", "", "aüü", 1), Some(vec![Some(1..5)]));
        assert_eq!(find("^b", "", "ab", 1), None);
        assert_eq!(find("(?<=a)b*", "", "abb", 1), Some(vec![Some(1..3)]));
        assert_eq!(find("", "", "", 0), Some(vec![Some(0..0)]));
    }

    #[test]
    fn options_and_what_stands_at_either_end_mean_what_they_did() {
        for (source, options, text) in [
            ("A+|C", "i", "xaa"),
            ("^b|^x+", "m", "a\nb"),
            ("a.+b|x", "s", "a\n\nb"),
            ("a + # or\n | b # the end", "x", "b"),
            ("(?x) a+ | b # the end", "", "b"),
            ("(*ANYCRLF)^b+|x", "m", "a\rb"),
            ("(?i)x|Ab+", "", "AB"),
            ("(a)|(b)\\2+", "", "bb"),
            ("(?C)a|b*c", "", "bc"),
        ] {
            assert_eq!(pattern(source, options).is_match(text, endless), Ok(true), "{source}");
        }
        assert_eq!(pattern("a+ | b", "").is_match("b", endless), Ok(false));
        assert!(Pattern::compile("(a", "").is_err_and(|why| why == "missing closing parenthesis"));
        assert!(Pattern::compile("a)|(b", "").is_err());
    }

    #[test]
    fn a_limit_of_steps_for_long_texts_changes_no_answer() {
        // Each character is a step.
        let text = format!("{}c", "ab".repeat(20_000));
        assert_eq!(pattern("^(?:a|b)*c$", "").is_match(&text, endless), Ok(true));
        assert_eq!(pattern("^(?:a|b)*d$", "").is_match(&text, endless), Ok(false));
    }

    #[test]
    fn a_runaway_pattern_is_given_up() {
        let text = format!("{}!", "a".repeat(40));
        assert_eq!(pattern("(a+)+$", "").is_match(&text, endless), Err(Stopped::Exceeded(-47)));
    }

    #[test]
    fn whatever_takes_long_asks_often() {
        let short = "a".repeat(22) + "!";
        for (source, text) in [
            // Each attempt runs to the end of the text.
            ("(?=a*[cd])e|a*?[bc]", "a".repeat(2_000_000)),
            ("a+[bc]|a+[de]", "a".repeat(2_000_000)),
            // Each attempt takes many steps, but none exceeds the limit.
            ("(a+)+$", short.repeat(2000)),
            ("(?:a|a)+?(?:a|a)+[bc]", "a".repeat(300_000)),
            ("(*LIMIT_MATCH=9000000)(?:a+)+(?:a+)+$", short.repeat(2000)),
        ] {
            let pattern = pattern(source, "");
            let (began, mut last, mut longest) = (CpuTime::now(), CpuTime::now(), Duration::ZERO);
            let mut steps = 0;
            let stopped = pattern.is_match(&text, |more| {
                steps += more;
                // An operation also reads the clock only once in some hundreds of steps.
                if steps < 512 {
                    return Ok(());
                }
                steps = 0;
                longest = longest.max(last.elapsed());
                last = CpuTime::now();
                if began.elapsed() < Duration::from_millis(500) { Ok(()) } else { Err("told") }
            });
            longest = longest.max(last.elapsed());
            assert!(matches!(stopped, Err(Stopped::Told("told") | Stopped::Exceeded(_))), "{source}: {stopped:?}");
            assert!(longest < Duration::from_millis(900), "{source}: {longest:?}");
        }
    }

    /// Each text takes some tens of milliseconds, and none exceeds the limit of steps.
    #[test]
    fn many_short_texts_are_asked_about_often() {
        for (source, text) in [("^(([a-z])+.)+[A-Z]([a-z])+$", "abc".repeat(10)), ("(a+)+$", "a".repeat(20) + "!")] {
            let pattern = pattern(source, "");
            let (mut last, mut longest, mut steps) = (CpuTime::now(), Duration::ZERO, 0);
            for _ in 0..24 {
                let matched = pattern.is_match(&text, |more| {
                    steps += more;
                    if steps >= 512 {
                        steps = 0;
                        longest = longest.max(last.elapsed());
                        last = CpuTime::now();
                    }
                    Ok::<_, ()>(())
                });
                assert_eq!(matched, Ok(false), "{source}");
            }
            longest = longest.max(last.elapsed());
            println!("{source}: {longest:?}");
            assert!(longest < Duration::from_millis(500), "{source}: {longest:?}");
        }
    }

    #[test]
    fn threads_share_a_pattern() {
        let pattern = pattern("(a|b)+c", "");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let pattern = &pattern;
                scope.spawn(move || {
                    for length in 1..200 {
                        let text = format!("{}c", "ab".repeat(length + thread));
                        let groups = pattern.find(&text, 0, endless).expect("no limit").expect("a match");
                        assert_eq!(groups[0], Some(0..text.len()));
                    }
                });
            }
        });
    }
}
