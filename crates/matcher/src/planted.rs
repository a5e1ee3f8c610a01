//! Faults that are planted on purpose in filters, plans and rewrites, to see that the tests of their agreement fail.
//!
//! Each fault leaves out one condition of a proof. Only builds with debug assertions can plant one: without them, [`active`]
//! is the constant `false`, and the compiler drops the other branch. A fault is planted on one thread, so that tests on other
//! threads do not meet it. The tests `each_planted_fault_turns_red` plant one after the other.

#[cfg(debug_assertions)]
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Once,
};

/// The tests that must find a fault.
#[cfg(debug_assertions)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Simplified filters match the same documents.
    Filters,
    /// Plans find the documents that collection scans find.
    Plans,
    /// Plans give the values, groups and ends of groups that collection scans give.
    Readings,
    /// Pipelines give the same with each rule on and off.
    Rewrites,
    /// None: no generated case shows it, or it changes no answer. No test plants these faults.
    Unseen,
}

macro_rules! faults {
    ($($guard:ident: $($(#[$about:meta])+ $name:ident),+;)+) => {
        /// A condition of a proof that can be left out on request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault { $($($(#[$about])+ $name,)+)+ }

        /// All faults with their guards.
        #[cfg(debug_assertions)]
        pub const FAULTS: &[(Fault, Guard)] = &[$($((Fault::$name, Guard::$guard),)+)+];
    };
}

faults! {
    Filters:
        /// A condition that follows from another one stays in its place.
        FollowingStays,
        /// The narrower one of two alternatives stays.
        NarrowerAlternativeStays,
        /// A `$nor` among alternatives is decided by one of its conditions.
        NorDecidesAlternatives,
        /// An inclusive edge is within an exclusive one.
        EdgesAlike,
        /// Values of different types compare with each other.
        TypesCompare,
        /// NaN compares with numbers.
        NanCompares,
        /// A list follows if one of its values does.
        OneOfListFollows,
        /// Alternatives imply what one of them implies.
        OneAlternativeImplies,
        /// Regexes with other options are the same.
        RegexOptionsAlike;
    Plans:
        /// Comparisons with null and the ends of the order imply that a field exists.
        MissingExists,
        /// A partial index serves every filter.
        PartialServesAll,
        /// A range ends before its inclusive edge.
        InclusiveEdgeLeftOut,
        /// An array has a key of its own.
        ArrayHasOwnKey,
        /// Bounds of a negation follow from inexact ones.
        InexactNegated,
        /// Below an array, each document with the key of null equals null.
        NullIsExactBelowArrays,
        /// Keys within the bounds of an `$elemMatch` decide it.
        ElementIsExact,
        /// Bounds of one condition on a path decide all of them.
        OneOfSeveralDecides,
        /// `$expr` has bounds on paths with arrays.
        ExprBelowArrays,
        /// A missing field is not less than null in `$expr`.
        MissingNotBelowNull,
        /// Comparisons with NaN have ranges.
        NanHasRange,
        /// Everything greater than MinKey is MinKey.
        EndsHaveRanges,
        /// A field whose path has an array position has bounds.
        PositionHasBounds,
        /// Several conditions narrow a field with arrays.
        ElementsNarrowTogether,
        /// Equal hashes mean equal values.
        HashIsExact,
        /// Conditions are checked on the keys of arrays.
        ArraysChecked,
        /// Conditions are checked on hashes.
        HashesChecked,
        /// A sparse index holds all documents.
        SparseHoldsAll,
        /// A field exists where its key is not null.
        NullNeverExists,
        /// A wildcard index has keys of missing fields.
        WildcardHoldsMissing,
        /// Fields behind a range are not checked.
        ChecksLeftOut,
        /// An index serves strings in every order.
        OrderOfStringsIgnored,
        /// Keys with a collation serve patterns.
        PatternsCollated,
        /// A field with arrays gives an order.
        ArraysSort,
        /// The directions of a sort's fields are not compared.
        DirectionsIgnored,
        /// Fields between those of the sort may have several values.
        GapsSort,
        /// Merged scans are compared ascending.
        MergedAscending,
        /// Scans that are merged read all values of their field.
        PartsUnsplit,
        /// A record comes once for each of its keys.
        RecordsRepeat,
        /// The keys of one branch decide all.
        BranchesDecide,
        /// Conditions that keys do not decide are not tested.
        UndecidedPasses;
    Readings:
        /// Keys whose types differ give values back.
        TypesCovered,
        /// An index with arrays names each group once.
        ArraysGrouped,
        /// A scan in any order finds the first of each group.
        FirstInAnyOrder,
        /// The key of null is a value.
        NullIsDistinct;
    Rewrites:
        /// A sort's paths are those of the sort before it, whatever stands between.
        SortPathsKept,
        /// The directions of the sort before do not matter.
        SortDirectionsIgnored,
        /// Every stage keeps the order.
        OrderKeptByAll,
        /// A sort before `$skip` and `$limit` is unread.
        SortedCutUnread,
        /// Every `$group` ignores the order of its documents.
        GroupIgnoresOrder,
        /// A sort whose keys are read is unread.
        SortErrorsHidden,
        /// `$limit` needs no documents for the `$skip` before it.
        SkippedNotKept,
        /// Every stage makes one document of each.
        OneOfEach,
        /// Values beside a nested change stay as they are.
        BesideNestedKept,
        /// Numbers in paths are no positions.
        PositionsKept,
        /// A copy of a nested path is exact.
        NestedCopyExact,
        /// A condition on a copied value needs no value.
        NoValueNeeded,
        /// A condition that is implied replaces the exact one.
        ImpliedReplaces,
        /// Equal values have the same answer to every condition.
        EqualsAnswerAlike,
        /// A partition's paths are not written to.
        PartitionUnwritten,
        /// Documents without a new root are dropped.
        RootlessDropped,
        /// A negation of an implied condition is implied.
        ImpliedNegated,
        /// Unmatched documents of a join satisfy conditions on joined ones as the rest does.
        UnmatchedAlike,
        /// Every stage is empty if its input is.
        EmptyMakesNothing;
    Unseen:
        /// A regex that is asked for as a value joins a list as a pattern.
        PatternJoinsList,
        /// A path below an array exists if it is not null.
        NotNullExistsBelowArrays,
        /// Conditions on strings imply each other in different orders.
        OrdersImply,
        /// A missing field below an array has a key.
        MissingHasKeyBelowArrays,
        /// An element without the field has the key of null.
        ElementHasNull,
        /// Ranges of different elements of an array are joined.
        RangesOfElementsJoined,
        /// NaN is no number.
        NanIsNoNumber,
        /// The keys of a pattern's literal part decide it.
        PatternIsExact,
        /// A regex is no value.
        RegexIsNoValue,
        /// Two fields below one array both have bounds.
        FieldsOfArrayBothBound,
        /// Equal numbers have one hash.
        EqualsHaveOneHash,
        /// Conditions are checked on keys with another order of strings.
        CollatedKeysChecked,
        /// Shortened keys decide.
        LongKeysDecide,
        /// Shortened keys are within the ranges of whole ones.
        LongKeysInRanges,
        /// Ranges of descending fields are ascending.
        DescendingIgnored,
        /// An index gives the order of a query with other strings.
        SortsOtherStrings,
        /// Merged scans do not find a record twice.
        MergedScansDisjoint,
        /// Alternatives keep the checks of another one with the same keys.
        ChecksOfOtherBranch,
        /// Keys of arrays give values back.
        ArraysCovered,
        /// An index that has one of the fields covers all.
        HalfCovered,
        /// Keys with a collation give values back.
        CollatedCovered,
        /// The elements of a matching array are within the bounds.
        ElementsDistinct;
}

#[cfg(debug_assertions)]
thread_local! {
    static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
    /// The faults that were asked for, as bits.
    static ASKED: Cell<u128> = const { Cell::new(0) };
}

/// Whether that fault is planted on this thread; always false in a build without debug assertions.
#[inline]
pub fn active(fault: Fault) -> bool {
    #[cfg(debug_assertions)]
    {
        ASKED.set(ASKED.get() | 1 << fault as u32);
        PLANTED.get() == Some(fault)
    }
    #[cfg(not(debug_assertions))]
    {
        let _ = fault;
        false
    }
}

/// Whether a check fails or panics while a fault is planted on this thread. The panic is not printed.
#[cfg(debug_assertions)]
pub fn is_found(fault: Fault, check: impl FnOnce() -> bool) -> bool {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if PLANTED.get().is_none() {
                usual(panic);
            }
        }));
    });
    PLANTED.set(Some(fault));
    let outcome = catch_unwind(AssertUnwindSafe(check));
    PLANTED.set(None);
    !matches!(outcome, Ok(true))
}

/// Whether a run without faults on this thread comes to the place of each fault. A fault elsewhere changes nothing.
#[cfg(debug_assertions)]
pub fn places_in(run: impl FnOnce()) -> impl Fn(Fault) -> bool {
    ASKED.set(0);
    run();
    let asked = ASKED.get();
    move |fault| asked & 1 << fault as u32 != 0
}

/// The faults that these tests must find.
#[cfg(debug_assertions)]
pub fn guarded_by(guard: Guard) -> impl Iterator<Item = Fault> {
    FAULTS.iter().filter(move |(_, own)| *own == guard).map(|(fault, _)| *fault)
}
