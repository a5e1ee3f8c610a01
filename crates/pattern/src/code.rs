//! Calls of PCRE2's functions.

use libc::{c_int, c_void};
use parking_lot::{Mutex, MutexGuard};
use pcre2_sys::{
    PCRE2_AUTO_CALLOUT, PCRE2_CASELESS, PCRE2_DOTALL, PCRE2_ERROR_CALLOUT, PCRE2_ERROR_JIT_STACKLIMIT,
    PCRE2_ERROR_MATCHLIMIT, PCRE2_ERROR_NOMATCH, PCRE2_EXTENDED, PCRE2_JIT_COMPLETE, PCRE2_MULTILINE, PCRE2_NO_JIT,
    PCRE2_NO_UTF_CHECK, PCRE2_UNSET, PCRE2_UTF, pcre2_code_8, pcre2_code_free_8, pcre2_compile_8,
    pcre2_get_error_message_8, pcre2_get_ovector_count_8, pcre2_get_ovector_pointer_8, pcre2_jit_compile_8,
    pcre2_jit_stack_8, pcre2_jit_stack_assign_8, pcre2_jit_stack_create_8, pcre2_jit_stack_free_8, pcre2_match_8,
    pcre2_match_context_8, pcre2_match_context_create_8, pcre2_match_context_free_8, pcre2_match_data_8,
    pcre2_match_data_create_from_pattern_8, pcre2_match_data_free_8, pcre2_set_heap_limit_8, pcre2_set_match_limit_8,
};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Byte ranges of a match and its groups; the whole match comes first.
pub type Groups = Vec<Option<Range<usize>>>;

/// Flag for a callout before each item of the pattern.
pub(crate) const ASK_BEFORE_ITEMS: u32 = PCRE2_AUTO_CALLOUT;

/// Greatest memory that an interpreted match may use for backtracking, in KiB.
const HEAP_KIBIBYTES_MAX: u32 = 64 << 10;
/// Greatest and initial size of the stack on which machine code backtracks, in bytes.
const STACK_BYTES_MAX: usize = 1 << 20;
const STACK_BYTES_MIN: usize = 32 << 10;
/// Number of scratches that are kept for a pattern, each for one search at a time. Each thread tries a place of its own
/// first, so that threads do not contend for cache lines.
const KEPT_MAX: usize = 8;
/// A callout reports one step, and one more for each `1 << STEPS_SHIFT` bytes of the text, up to `STEPS_MAX`. In a text
/// of 16 MB, some milliseconds pass between two callouts.
const STEPS_SHIFT: u32 = 17;
const STEPS_MAX: usize = 8;

// The bindings lack this function. Source: pcre2_set_callout(3).
unsafe extern "C" {
    fn pcre2_set_callout_8(
        context: *mut pcre2_match_context_8,
        callout: Option<unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int>,
        data: *mut c_void,
    ) -> c_int;
}

/// Outcome of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Searched {
    Found,
    Nothing,
    /// PCRE2 failed with this code.
    Failed(i32),
}

impl Searched {
    pub fn exceeds_steps(self) -> bool {
        self == Self::Failed(PCRE2_ERROR_MATCHLIMIT)
    }

    pub fn exceeds_stack(self) -> bool {
        self == Self::Failed(PCRE2_ERROR_JIT_STACKLIMIT)
    }
}

/// How a pattern is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// As machine code, where the system allows that.
    Machine,
    Interpreter,
}

/// A compiled pattern.
pub(crate) struct Code {
    code: *mut pcre2_code_8,
    kept: [Kept; KEPT_MAX],
}

/// A scratch for the next search, in a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Kept(Mutex<Option<Scratch>>);

thread_local! {
    /// The place where this thread looks for a scratch first.
    static OWN_PLACE: usize = {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        THREADS.fetch_add(1, Ordering::Relaxed) % KEPT_MAX
    };
}

// SAFETY: compiled patterns never change, and each search has a scratch of its own.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

/// Memory that one search writes to.
struct Scratch {
    data: *mut pcre2_match_data_8,
    context: *mut pcre2_match_context_8,
    stack: *mut pcre2_jit_stack_8,
}

/// The data that a callout gets: the steps that it reports, and the function that decides whether to go on.
struct Asking<'a> {
    steps: usize,
    goes_on: &'a mut dyn FnMut(usize) -> bool,
}

/// PCRE2's flags for MongoDB's options.
pub(crate) fn flags(options: &str) -> u32 {
    let known = [('i', PCRE2_CASELESS), ('m', PCRE2_MULTILINE), ('s', PCRE2_DOTALL), ('x', PCRE2_EXTENDED)];
    known.iter().filter(|(option, _)| options.contains(*option)).fold(PCRE2_UTF, |flags, (_, flag)| flags | flag)
}

fn message(code: c_int) -> String {
    let mut buffer = [0_u8; 256];
    // SAFETY: the length is the buffer's.
    let length = unsafe { pcre2_get_error_message_8(code, buffer.as_mut_ptr(), buffer.len()) };
    let text = usize::try_from(length).ok().and_then(|length| buffer.get(..length)).unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// # Safety
/// `data` points to an [`Asking`] that nothing else refers to.
unsafe extern "C" fn callout(_block: *mut c_void, data: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    let asking = unsafe { &mut *data.cast::<Asking<'_>>() };
    if (asking.goes_on)(asking.steps) { 0 } else { PCRE2_ERROR_CALLOUT }
}

impl Code {
    pub fn compile(source: &str, flags: u32) -> Result<Self, String> {
        let (mut error, mut offset) = (0, 0);
        // SAFETY: the length is the source's.
        let code = unsafe {
            pcre2_compile_8(source.as_ptr(), source.len(), flags, &raw mut error, &raw mut offset, null_mut())
        };
        if code.is_null() {
            return Err(message(error));
        }
        // If the system forbids machine code, the pattern is interpreted.
        // SAFETY: no other thread has the pattern yet.
        let _ = unsafe { pcre2_jit_compile_8(code, PCRE2_JIT_COMPLETE) };
        Ok(Self { code, kept: Default::default() })
    }

    /// Searches for a match that begins at byte `from` or after it.
    pub fn search(
        &self,
        text: &str,
        from: usize,
        limits: (u32, Means),
        groups: Option<&mut Groups>,
        goes_on: &mut dyn FnMut(usize) -> bool,
    ) -> Searched {
        assert!(text.is_char_boundary(from), "a search begins at a character");
        let steps = (1 + (text.len() >> STEPS_SHIFT)).min(STEPS_MAX);
        let run = |scratch: &mut Scratch| {
            let searched = scratch.search(self.code, text, from, limits, Asking { steps, goes_on });
            if let (Searched::Found, Some(groups)) = (searched, groups) {
                scratch.read(groups);
            }
            searched
        };
        let Some(mut kept) = self.free_place() else { return run(&mut Scratch::new(self.code)) };
        let searched = run(kept.get_or_insert_with(|| Scratch::new(self.code)));
        // The scratch would keep the memory that an interpreted match took.
        if limits.1 == Means::Interpreter {
            *kept = None;
        }
        searched
    }

    /// Locks a place for a scratch that no search is using; `None` if all are in use.
    fn free_place(&self) -> Option<MutexGuard<'_, Option<Scratch>>> {
        let own = OWN_PLACE.with(|own| *own);
        (own..own + KEPT_MAX).find_map(|place| self.kept[place % KEPT_MAX].0.try_lock())
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // Scratches refer to the pattern, so they go first.
        self.kept.iter_mut().for_each(|kept| *kept.0.get_mut() = None);
        // SAFETY: no reference to the pattern is left.
        unsafe { pcre2_code_free_8(self.code) }
    }
}

impl Scratch {
    fn new(code: *mut pcre2_code_8) -> Self {
        // SAFETY: the pattern is valid, and the stack lives as long as the context that uses it.
        unsafe {
            let data = pcre2_match_data_create_from_pattern_8(code, null_mut());
            let context = pcre2_match_context_create_8(null_mut());
            let stack = pcre2_jit_stack_create_8(STACK_BYTES_MIN, STACK_BYTES_MAX, null_mut());
            assert!(!data.is_null() && !context.is_null() && !stack.is_null(), "memory for a search");
            pcre2_jit_stack_assign_8(context, None, stack.cast());
            Self { data, context, stack }
        }
    }

    fn search(
        &mut self,
        code: *const pcre2_code_8,
        text: &str,
        from: usize,
        (steps_max, means): (u32, Means),
        mut asking: Asking<'_>,
    ) -> Searched {
        // A `str` is valid UTF-8 and `from` is a character boundary, so PCRE2 need not check them.
        // SAFETY: `asking` outlives the call, and the callout is not called after it. An empty text may have no pointer
        // to bytes, so it gets one.
        let outcome = unsafe {
            pcre2_set_match_limit_8(self.context, steps_max);
            pcre2_set_heap_limit_8(self.context, HEAP_KIBIBYTES_MAX);
            pcre2_set_callout_8(self.context, Some(callout), (&raw mut asking).cast());
            let bytes = if text.is_empty() { [0].as_ptr() } else { text.as_ptr() };
            let options = PCRE2_NO_UTF_CHECK | if means == Means::Interpreter { PCRE2_NO_JIT } else { 0 };
            pcre2_match_8(code, bytes, text.len(), from, options, self.data, self.context)
        };
        match outcome {
            PCRE2_ERROR_NOMATCH => Searched::Nothing,
            found if found > 0 => Searched::Found,
            code => Searched::Failed(code),
        }
    }

    /// Reads the groups that the last search found.
    fn read(&mut self, groups: &mut Groups) {
        // SAFETY: PCRE2 has as many pairs as it says, and the search has set all of them.
        let places = unsafe {
            let count = pcre2_get_ovector_count_8(self.data) as usize;
            std::slice::from_raw_parts(pcre2_get_ovector_pointer_8(self.data), 2 * count)
        };
        groups.clear();
        // A match may begin after its end, by `\K` in a lookahead. It is empty then.
        let range = |pair: &[usize]| (pair[0] != PCRE2_UNSET).then(|| pair[0].min(pair[1])..pair[1]);
        groups.extend(places.chunks_exact(2).map(range));
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: the scratch owned them, and nothing else refers to them.
        unsafe {
            pcre2_match_data_free_8(self.data);
            pcre2_match_context_free_8(self.context);
            pcre2_jit_stack_free_8(self.stack);
        }
    }
}

// SAFETY: a scratch owns everything that it points to.
unsafe impl Send for Scratch {}
