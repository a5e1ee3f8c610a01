//! Faults that are planted on purpose in filters, plans and rewrites, to see that the tests of their agreement fail.
//!
//! Each fault leaves out one condition of a proof. Only builds with debug assertions can plant one: without them,
//! [`active`] is the constant `false`, and the compiler drops the other branch. A fault is planted on one thread, so
//! that tests on other threads do not meet it. The tests `each_planted_fault_turns_red` plant one after the other.

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
    /// The test that simplified filters match the same documents.
    Filters,
    /// The test that plans find the documents that collection scans find.
    Plans,
    /// The test that plans give the values, groups and ends of groups that collection scans give.
    Readings,
    /// The test that pipelines give the same results with each rule on and off.
    Rewrites,
}

macro_rules! faults {
    ($($guard:ident: $($(#[$about:meta])+ $name:ident),+;)+) => {
        /// A condition of a proof that can be left out on request. Each variant is described by the false claim that
        /// holds for the planner while the fault is planted.
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
        /// If conditions do not hold together, none of them holds.
        OppositesTogether,
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
        /// A regex that is asked for as a value joins a list as a pattern.
        PatternJoinsList,
        /// A path below an array exists if it is not null.
        NotNullExistsBelowArrays,
        /// Conditions on strings imply each other in different orders.
        OrdersImply,
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
        /// In `$expr` an array is greater than no number.
        ArraysBelowNumbers,
        /// A missing field is not less than null in `$expr`.
        MissingNotBelowNull,
        /// Comparisons with NaN have ranges.
        NanHasRange,
        /// Everything greater than MinKey is MinKey.
        EndsHaveRanges,
        /// A field whose path has an array position has bounds of every condition.
        PositionHasBounds,
        /// Keys at a path with an array position decide, though the field holds arrays.
        PositionsDecide,
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
        /// Fields after a range are not checked.
        ChecksLeftOut,
        /// A scan that seeks past a value outside the bounds skips all keys with the same values before it.
        SkipsAllOfPrefix,
        /// An index serves strings in every order.
        OrderOfStringsIgnored,
        /// Keys with a collation serve patterns.
        PatternsCollated,
        /// A field with arrays has one value.
        ArraysSort,
        /// Elements outside the bounds do not matter to an order.
        ElementsOutsideSort,
        /// Bounds on another field of an array's elements do not matter to an order.
        NeighboursOutsideSort,
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
        /// Ranges of different elements of an array are joined.
        RangesOfElementsJoined,
        /// NaN is not a number.
        NanIsNoNumber,
        /// The keys of a pattern's literal part decide it.
        PatternIsExact,
        /// A regex is not a value.
        RegexIsNoValue,
        /// Two fields below one array both have bounds.
        FieldsOfArrayBothBound,
        /// Different `$elemMatch` conditions bound fields below one array.
        ElementsBoundTogether,
        /// Two fields of an array inside the element of an `$elemMatch` both have bounds.
        ArraysOfElementBothBound,
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
        /// Keys that decide an alternative decide the conditions beside the `$or`.
        BesideIsDecided,
        /// The first alternative of an `$or` inside a branch stands for all of them.
        FirstNestedServes,
        /// Conditions that keys do not decide are not tested.
        UndecidedPasses;
    Readings:
        /// Keys whose types differ give values back.
        TypesCovered,
        /// An index with arrays names each group once.
        ArraysGrouped,
        /// Equal values have one type.
        GroupsHaveOneForm,
        /// A scan in any order finds the first of each group.
        FirstInAnyOrder,
        /// The first document of a group stands for the first few.
        FirstIsEnough,
        /// Keys of arrays give values back.
        ArraysCovered,
        /// An index that has one of the fields covers all.
        HalfCovered,
        /// Keys with a collation give values back.
        CollatedCovered,
        /// The elements of a matching array are within the bounds.
        ElementsDistinct,
        /// The key of null is a value.
        NullIsDistinct,
        /// Null is the least value of a group.
        NullIsLeast,
        /// An intersection passes on what its second scan finds, until it has as many records as the first.
        SecondScanPasses;
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
        /// A stage that may fail is dropped before a count.
        FailingDropped,
        /// `$unwind` makes one document of each before a count.
        UnwindUncounted,
        /// A filter before a count passes as many documents, whatever is in them.
        FilteredUncounted,
        /// A sort moves before stages that write its paths.
        SortMovesWritten,
        /// Every `$unwind` makes a document of each.
        UnwindKeepsEach,
        /// `$limit` needs no documents for the `$skip` before it.
        SkippedNotKept,
        /// Every stage makes one document of each.
        OneOfEach,
        /// Values beside a nested change stay as they are.
        BesideNestedKept,
        /// Numbers in paths are not positions.
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
