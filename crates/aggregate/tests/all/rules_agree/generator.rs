//! Documents and pipelines that follow from a seed. Every stage that a rule knows is drawn, mostly with a `$match` after
//! it, on fields that the stage keeps, renames, computes, joins or groups by.

use bunko_testkit::random::Random;

/// No MinKey, MaxKey and code: whether a group hands them on unchanged depends on the stages after it.
const VALUES: [&str; 20] = [
    "1",
    "1.0",
    "NumberLong(2)",
    "2",
    "-1.5",
    "'a'",
    "'A'",
    "'b'",
    "null",
    "undefined",
    "true",
    "[]",
    "[1]",
    "[1, 2]",
    "[[1]]",
    "[null, 'a']",
    "{e: 1}",
    "{e: [1, 2], f: 2}",
    "[{e: 1}, {e: 2, f: 1}]",
    "[{e: [1]}, 5]",
];

const SCALARS: [&str; 20] = [
    "1",
    "1",
    "1",
    "2",
    "2",
    "3",
    "1.0",
    "-1.5",
    "'a'",
    "'a'",
    "'A'",
    "'b'",
    "null",
    "null",
    "true",
    "MinKey",
    "MaxKey",
    "ISODate('2020-01-01T00:00:00Z')",
    "5",
    "0",
];

/// Fields that documents have.
const FIELDS: [&str; 14] = ["k", "k", "k", "b", "b.e", "d", "d.e", "d.f", "d.0.e", "k.e", "k.0", "l", "n", "_id"];

/// Fields that documents have after a stage.
fn fields_behind(stage: &str) -> &'static [&'static str] {
    let knows = |text: &str| stage.contains(text);
    match () {
        () if knows("_id: {x") => &["_id.x", "_id.x", "_id.y", "_id", "n"],
        () if knows("$group") || knows("$sortByCount") => &["_id", "_id", "_id.e", "n", "_id.0"],
        () if knows("$lookup") || knows("'$j'") => &["j.k", "j.n", "j.d.e", "j._id", "k", "n", "j", "d.e"],
        () if knows("newRoot: '$d'") || knows("With: '$d'") => &["e", "e", "f", "e.f"],
        () if knows("{$set: {'d.e': '$n'}") || knows("{$project: {'d.e': 1, k") => &["d.e", "d.f", "d.f"],
        () if knows("$replace") => &["k", "b", "e", "w", "n", "f"],
        () if knows("z.y") || knows("z: {y") => &["z.y", "z.y", "k", "d.e", "d.f"],
        () if knows("b: '$") => &["b", "b", "b.e", "b.0", "k", "d.f"],
        () if knows("$redact") => &["d.e", "d.e", "d.f", "k", "b.e", "b"],
        () if knows("w: {") => &["k", "b", "n", "w", "k.e"],
        () => &FIELDS,
    }
}

/// A document of a collection.
pub fn document(id: u64, random: &mut Random) -> String {
    let mut fields = vec![format!("_id: {id}"), format!("n: {}", random.below(6))];
    for name in ["k", "d", "l", "b"] {
        match random.below(10) {
            0 => {}
            1..=3 => fields.push(format!("{name}: {}", random.pick(&["1", "2", "'a'", "1.0"]))),
            4 | 5 if name == "d" => fields.push(format!("d: {{e: {}, f: 1}}", random.pick(&["1", "2", "'a'", "null"]))),
            _ => fields.push(format!("{name}: {}", random.pick(&VALUES))),
        }
    }
    format!("{{{}}}", fields.join(", "))
}

fn operators(random: &mut Random) -> String {
    let scalar = random.pick(&SCALARS);
    match random.below(18) {
        16 => random.pick(&["null", "{$ne: null}", "{$exists: false}"]).into(),
        0 => format!("{{$gt: {scalar}}}"),
        1 => format!("{{$gte: {scalar}}}"),
        2 => format!("{{$lte: {scalar}}}"),
        3 => format!("{{$ne: {scalar}}}"),
        4 => format!("{{$in: [{scalar}, {}]}}", random.pick(&SCALARS)),
        5 => format!("{{$nin: [{scalar}, 2]}}"),
        6 => format!("{{$exists: {}}}", random.one_in(2)),
        7 => format!("{{$type: {}}}", random.pick(&["'int'", "'array'", "'string'", "'object'"])),
        8 => "{$elemMatch: {$gte: 1}}".into(),
        9 => format!("{{$size: {}}}", random.below(3)),
        10 => "{$not: {$gt: 1}}".into(),
        11 => random.pick(&["/a/", "{$mod: [2, 1]}", "{$in: [1, /b/]}", "{$all: [1, 2]}"]).into(),
        12 => random.pick(&VALUES).into(),
        _ => scalar.into(),
    }
}

fn condition(fields: &[&str], random: &mut Random) -> String {
    let path = random.pick(fields);
    match random.below(20) {
        0 => format!("$or: [{{{}}}, {{{}}}]", condition(fields, random), condition(fields, random)),
        1 => format!("$nor: [{{{}}}]", condition(fields, random)),
        2 => format!("$and: [{{{}}}, {{{}}}]", condition(fields, random), condition(fields, random)),
        3 => format!(
            "$expr: {{{}: ['${}', {}]}}",
            random.pick(&["$eq", "$gt", "$ne"]),
            path.replace(".0", ""),
            random.pick(&SCALARS)
        ),
        4 => "$expr: {$gt: [{$divide: [6, '$n']}, 2]}".into(),
        5 => {
            random.pick(&["$alwaysFalse: 1", "$expr: false", "$comment: 'c'", "$comment: 'd'", "$alwaysTrue: 1"]).into()
        }
        _ => format!("'{path}': {}", operators(random)),
    }
}

fn filter(behind: &str, random: &mut Random) -> String {
    let fields = fields_behind(behind);
    let mut parts = vec![condition(fields, random)];
    if behind.contains("$redact") && random.one_in(4) {
        parts = vec![format!("$nor: [{{'d.e': {}}}]", random.pick(&SCALARS))];
    }
    if random.one_in(2) {
        let other = condition(fields, random);
        // A field that is named twice would count once.
        let name = |part: &str| part.split(':').next().map(str::to_owned);
        if name(&other) != name(&parts[0]) {
            parts.push(other);
        }
    }
    format!("{{$match: {{{}}}}}", parts.join(", "))
}

const PROJECTIONS: [&str; 6] = [
    "{$project: {k: 1}}",
    "{$project: {b: '$k', d: 1}}",
    "{$project: {b: '$d.e', k: 1, 'd.f': 1}}",
    "{$project: {'d.e': 1, n: 1}}",
    "{$project: {'d.f': 0}}",
    "{$project: {z: {y: '$k'}, k: {$add: ['$n', 1]}}}",
];

const ADDITIONS: [&str; 6] = [
    "{$set: {w: {$divide: [1, '$n']}}}",
    "{$set: {b: '$k'}}",
    "{$set: {'d.e': '$n', 'z.y': '$k'}}",
    "{$set: {k: '$d.e'}}",
    "{$unset: ['d.f', 'l']}",
    "{$addFields: {b: '$b.e'}}",
];

const NEW_ROOTS: [&str; 7] = [
    "{$replaceRoot: {newRoot: '$k'}}",
    "{$replaceWith: '$d.e'}",
    "{$replaceWith: {b: '$k', k: '$n', w: {$add: [1, '$n']}}}",
    "{$replaceWith: {$mergeObjects: ['$$ROOT', {b: '$k'}]}}",
    "{$replaceWith: {$mergeObjects: [{b: 1, k: 2}, '$$ROOT']}}",
    "{$replaceWith: {$mergeObjects: [{b: 1}, {b: '$k'}]}}",
    "{$replaceWith: '$$ROOT'}",
];

const UNWINDS: [&str; 3] = [
    "{$unwind: '$l'}",
    "{$unwind: {path: '$k', preserveNullAndEmptyArrays: true}}",
    "{$unwind: {path: '$d.e', includeArrayIndex: 'n'}}",
];

const PRUNES_AND_SEARCHES: [&str; 3] = [
    "{$redact: {$cond: [{$eq: ['$e', 2]}, '$$PRUNE', '$$DESCEND']}}",
    "{$redact: {$cond: [{$eq: ['$f', 1]}, '$$PRUNE', '$$DESCEND']}}",
    "{$graphLookup: {from: 'other', startWith: '$n', connectFromField: 'n', connectToField: '_id', as: 'b', maxDepth: 1}}",
];

const GROUPS: [&str; 6] = [
    "{$group: {_id: '$k', n: {$sum: 1}}}",
    "{$group: {_id: '$d.e', n: {$sum: 1}}}",
    "{$group: {_id: {x: '$k', y: '$d.e'}, n: {$sum: 1}}}",
    "{$group: {_id: {x: '$k'}, n: {$sum: 1}}}",
    "{$group: {_id: null, n: {$sum: '$n'}}}",
    "{$sortByCount: '$k'}",
];

const PARTITIONS: [&str; 6] = [
    "{$setWindowFields: {partitionBy: '$k', sortBy: {_id: 1}, output: {w: {$sum: '$n', window: {documents: ['unbounded', 'current']}}}}}",
    "{$setWindowFields: {partitionBy: {x: '$k', y: '$d.e'}, output: {w: {$sum: '$n'}}}}",
    "{$setWindowFields: {partitionBy: '$b', output: {b: {$max: '$n'}, w: {$sum: 1}}}}",
    "{$fill: {partitionByFields: ['k', 'n'], sortBy: {_id: 1}, output: {l: {method: 'locf'}}}}",
    "{$densify: {field: 'n', partitionByFields: ['b'], range: {step: 1, bounds: 'partition'}}}",
    "{$densify: {field: 'n', partitionByFields: ['b'], range: {step: 1, bounds: [0, 3]}}}",
];

/// A join, mostly unwound.
fn join(random: &mut Random) -> Vec<String> {
    let by = random.pick(&[
        "localField: 'n', foreignField: '_id'",
        "localField: 'k', foreignField: 'k'",
        "localField: 'n', foreignField: 'n', pipeline: [{$set: {k: '$d'}}]",
        "pipeline: [{$limit: 4}]",
    ]);
    let unwind = random.pick(&[
        "",
        "{$unwind: '$j'}",
        "{$unwind: '$j'}",
        "{$unwind: {path: '$j', preserveNullAndEmptyArrays: true}}",
        "{$unwind: {path: '$j', includeArrayIndex: 'n'}}",
    ]);
    let mut stages = vec![format!("{{$lookup: {{from: 'other', {by}, as: 'j'}}}}")];
    stages.extend((!unwind.is_empty()).then(|| unwind.to_owned()));
    stages
}

/// A stage that a rule knows.
fn stage(random: &mut Random) -> Vec<String> {
    let guarded = |stage: &str, guard: &str| vec![format!("{{$match: {{$expr: {guard}}}}}"), stage.to_owned()];
    let any = |random: &mut Random, stages: &[&str]| vec![random.pick(stages).to_owned()];
    match random.below(15) {
        12 => guarded(
            random.pick(&["{$replaceRoot: {newRoot: '$d'}}", "{$replaceWith: '$d'}"]),
            "{$eq: [{$type: '$d'}, 'object']}",
        ),
        13 => {
            guarded("{$setWindowFields: {partitionBy: '$k', output: {w: {$sum: '$n'}}}}", "{$not: [{$isArray: '$k'}]}")
        }
        14 => any(random, &["{$set: {'d.e': '$n'}}", "{$project: {'d.e': 1, k: 1}}"]),
        0 => any(random, &PROJECTIONS),
        1 => any(random, &ADDITIONS),
        2 => any(random, &NEW_ROOTS),
        3 => any(random, &UNWINDS),
        4 | 5 => join(random),
        6 => any(random, &PRUNES_AND_SEARCHES),
        7 => any(random, &["{$sort: {n: 1, _id: 1}}", "{$sort: {_id: -1}}"]),
        8 | 9 => any(random, &GROUPS),
        10 => any(random, &PARTITIONS),
        _ => any(
            random,
            &["{$unionWith: 'other'}", "{$unionWith: {coll: 'other', pipeline: [{$set: {k: '$n'}}, {$limit: 5}]}}"],
        ),
    }
}

/// A sort, stages that may keep its order, and then another sort or a stage that may depend on the order.
fn sorted_twice(random: &mut Random) -> Vec<String> {
    let mut stages = vec!["{$sort: {n: 1, _id: 1}}".to_owned()];
    for _ in 0..random.below(3) {
        let between = [
            "{$project: {n: 1, k: 1, d: 1}}",
            "{$project: {b: '$n', k: 1}}",
            "{$set: {n: '$k'}}",
            "{$set: {b: '$n'}}",
            "{$match: {k: {$ne: 2}}}",
            "{$limit: 20}",
            "{$group: {_id: '$_id', n: {$first: '$n'}, k: {$first: '$k'}}}",
            "{$setWindowFields: {sortBy: {_id: -1}, output: {w: {$sum: '$n'}}}}",
            "{$lookup: {from: 'other', localField: 'n', foreignField: 'n', as: 'j'}}",
        ];
        stages.push(random.pick(&between).to_owned());
    }
    let last = [
        "{$sort: {n: 1, _id: 1}}, {$limit: 7}",
        "{$sort: {b: 1, _id: 1}}, {$limit: 7}",
        "{$sort: {n: 1, _id: -1}}, {$limit: 7}",
        "{$sort: {n: -1, _id: 1}}, {$limit: 7}",
        "{$group: {_id: null, n: {$sum: 1}}}",
        "{$count: 'n'}",
        "{$group: {_id: null, n: {$push: '$_id'}}}",
        "{$group: {_id: null, n: {$sum: 1}, k: {$first: '$k'}}}",
    ];
    stages.push(random.pick(&last).to_owned());
    stages
}

/// Stages that may keep the number, the order and the sorted values of documents, and then a sort of which the first
/// documents are read.
pub fn sorted_behind(random: &mut Random) -> Vec<String> {
    let between = [
        "{$lookup: {from: 'other', localField: 'n', foreignField: 'n', as: 'j'}}",
        "{$lookup: {from: 'other', localField: 'n', foreignField: 'n', as: 'k'}}",
        "{$lookup: {from: 'other', localField: 'n', foreignField: '_id', as: 'k.j'}}",
        "{$graphLookup: {from: 'other', startWith: '$n', connectFromField: 'n', connectToField: '_id', as: 'b', maxDepth: 1}}",
        "{$unwind: {path: '$l', preserveNullAndEmptyArrays: true}}",
        "{$unwind: {path: '$k', preserveNullAndEmptyArrays: true}}",
        "{$unwind: {path: '$l', preserveNullAndEmptyArrays: true, includeArrayIndex: 'n'}}",
        "{$unwind: '$l'}",
        "{$unwind: '$j'}",
        "{$unwind: {path: '$j', preserveNullAndEmptyArrays: true}}",
        "{$set: {b: '$k', k: '$n'}}",
        "{$set: {'d.e': '$n'}}",
        "{$project: {b: '$k', n: 1, d: 1, l: 1}}",
        "{$project: {k: 1, n: 1, l: 1}}",
        "{$replaceWith: '$$ROOT'}",
        "{$match: {j: {$ne: []}}}",
    ];
    let mut stages: Vec<_> = (0..=random.below(3)).map(|_| random.pick(&between).to_owned()).collect();
    let path = random.pick(&["k", "n", "b", "d", "d.f", "l", "k.j"]);
    let sort = match random.below(4) {
        0 => "{_id: -1}".to_owned(),
        1 => "{_id: 1}".to_owned(),
        sign => format!("{{'{path}': {}, _id: 1}}", if sign == 2 { 1 } else { -1 }),
    };
    stages.push(format!("{{$sort: {sort}}}"));
    stages.extend(random.one_in(3).then(|| format!("{{$skip: {}}}", 1 + random.below(4))));
    stages.extend((!random.one_in(4)).then(|| format!("{{$limit: {}}}", 1 + random.below(12))));
    // Several documents may be made of one, and then one of them is read or another. They have their `_id` in common.
    stages.push("{$project: {_id: 1}}".to_owned());
    stages
}

/// Stages that change, drop or add documents, and then a stage that may only count them.
pub fn counted(random: &mut Random) -> Vec<String> {
    let between = [
        "{$set: {k: '$n', w: 1}}",
        "{$skip: 3}",
        "{$limit: 30}",
        "{$match: {k: {$gte: 2}}}",
        "{$match: {d: {$exists: false}}}",
        "{$unionWith: 'other'}",
        "{$sort: {n: 1}}",
    ];
    let mut stages = Vec::new();
    for _ in 0..=random.below(4) {
        stages.push(match random.below(4) {
            0 => random.pick(&PROJECTIONS).to_owned(),
            1 => random.pick(&ADDITIONS).to_owned(),
            2 => random.pick(&between).to_owned(),
            _ => random.pick(&[UNWINDS[0], UNWINDS[1], NEW_ROOTS[6]]).to_owned(),
        });
    }
    let last = [
        "{$count: 'n'}",
        "{$group: {_id: null, n: {$sum: 1}}}",
        "{$group: {_id: null, n: {$sum: '$k'}}}",
        "{$group: {_id: '$k', n: {$sum: 1}}}",
    ];
    stages.push(random.pick(&last).to_owned());
    stages
}

/// A pipeline. Positions count only where the order of documents is defined: right after a sort by `_id`, if no stage has
/// made several documents with one `_id` or put other values there.
pub fn pipeline(random: &mut Random) -> Vec<String> {
    let mut stages = Vec::new();
    if random.one_in(4) {
        stages.extend(random.one_in(2).then(|| "{$sort: {n: -1, _id: 1}}".to_owned()));
        stages.push("{$sort: {_id: 1}}".to_owned());
        let between = [
            "{$project: {k: 1, n: 1, d: 1}}",
            "{$unwind: '$l'}",
            "{$lookup: {from: 'other', localField: 'n', foreignField: 'n', as: 'j'}}",
        ];
        stages.extend(random.one_in(2).then(|| random.pick(&between).to_owned()));
        for _ in 0..=random.below(3) {
            stages.push(random.pick(&["{$limit: 12}", "{$skip: 2}", "{$limit: 30}", "{$skip: 5}"]).to_owned());
        }
    }
    if random.one_in(6) {
        stages = sorted_twice(random);
    }
    for _ in 0..=random.below(3) {
        let drawn = stage(random);
        // Documents that `$densify` makes have the key of their partition's first document. A
        // dropped sort decides which of several equal keys of different types that is.
        let is_sorted = stages.iter().any(|before: &String| before.starts_with("{$sort:"));
        if !(is_sorted && drawn[0].starts_with("{$densify")) {
            stages.extend(drawn);
        }
        if !random.one_in(3) {
            let last = stages.last().cloned().unwrap_or_default();
            stages.push(filter(&last, random));
        }
    }
    stages.extend(random.one_in(4).then(|| filter("", random)));
    stages
}
