//! Pipelines that follow from a seed. The generator tracks the properties of each pipeline's documents, so that no
//! stage depends on an order that is not defined.

use bunko_testkit::random::Random;

/// Properties of a stream of documents.
#[derive(Clone, Copy)]
struct Stream {
    /// The order of the documents does not depend on the plan.
    is_ordered: bool,
    /// The `_id`s are all different, and none is an array, of which a sort would see only one element.
    has_unique_ids: bool,
}

/// A pipeline, and whether its results have a defined order.
pub struct Made {
    pub stages: Vec<String>,
    pub is_ordered: bool,
    /// Options of the command besides the pipeline.
    pub options: &'static str,
}

/// A document of the collection. Numbers are sums of powers of two, so that no order of additions rounds.
pub fn document(id: u64, count: u64, random: &mut Random) -> String {
    let number = random.below(4_000) as i64 - 2_000;
    let summed = match random.below(8) {
        0 => "n: null, ".to_owned(),
        1 => String::new(),
        2 | 3 => format!("n: NumberLong({number}), "),
        _ => format!("n: {number}.25, "),
    };
    let elements: Vec<_> = (0..random.below(5)).map(|_| random.below(30).to_string()).collect();
    let text = "xyz".repeat(random.below(20) as usize);
    // No two of these are equal: otherwise the value that stands for a group would depend on the order of documents.
    let mixed = random.pick(&[
        "",
        "m: null, ",
        "m: NaN, ",
        "m: -0.0, ",
        "m: NumberLong(2), ",
        "m: NumberDecimal('1.50'), ",
        "m: 'x', ",
        "m: [], ",
        "m: [1, null], ",
        "m: {b: 1}, ",
        "m: {}, ",
        "m: undefined, ",
    ]);
    let inner = random.below(4);
    let nested = match random.below(6) {
        0 => String::new(),
        1 => format!("d: {inner}, "),
        2 => format!("d: [{{e: {inner}}}, {{e: null, f: {{g: 1}}}}, 5], "),
        3 => format!("d: {{e: null, f: {{g: {inner}}}}}, "),
        _ => format!("d: {{e: {inner}, f: [{{g: 1}}, {{}}]}}, "),
    };
    let (key, other) = (random.below(40), random.below(count + 20));
    let (place, quantity) = (random.below(6), random.below(9));
    format!(
        "{{_id: {id}, k: {key}, {summed}{mixed}{nested}t: '{text}{}', a: [{}], other: {other}, o: {{p: {place}, q: 'q{quantity}'}}}}",
        random.below(50),
        elements.join(", ")
    )
}

fn condition(random: &mut Random) -> String {
    let number = random.below(40);
    match random.below(19) {
        14 => "{m: null}".into(),
        15 => format!("{{m: {{$exists: {}}}}}", random.one_in(2)),
        16 => format!("{{'d.e': {}}}", random.pick(&["null", "1", "{$gte: 1}", "{$exists: false}", "{$ne: 2}"])),
        17 => "{m: {$in: ['X', NaN, 0, null]}}".into(),
        18 => format!("{{t: {{$gte: 'XYZXYZ', $lt: 'xyzxyzxyz{number}'}}}}"),
        0 => format!("{{k: {number}}}"),
        1 => format!("{{k: {{$gte: {number}}}}}"),
        2 => format!("{{k: {{$in: [{number}, {}, 3]}}}}", number + 2),
        3 => format!("{{n: {{$gt: {}, $lt: 1500}}}}", number * 10),
        4 => "{n: null}".into(),
        5 => "{n: {$exists: true, $ne: null}}".into(),
        6 => format!("{{a: {}}}", number % 30),
        7 => format!("{{a: {{$elemMatch: {{$gt: {}, $lt: 25}}}}}}", number % 20),
        8 => format!("{{'o.p': {}}}", number % 6),
        9 => format!("{{t: {{$regex: 'z{}'}}}}", number % 10),
        10 => format!("{{$or: [{{k: {number}}}, {{'o.q': 'q{}'}}]}}", number % 9),
        11 => format!("{{$expr: {{$gt: ['$k', {number}]}}}}"),
        12 => format!("{{_id: {{$lt: {}}}}}", number * 20),
        _ => format!("{{$nor: [{{k: {{$lt: {}}}}}], t: {{$type: 'string'}}}}", number / 2),
    }
}

fn expression(random: &mut Random) -> &'static str {
    random.pick(&[
        "{$add: ['$k', 1]}",
        "{$multiply: [{$ifNull: ['$n', 2]}, 2]}",
        "{$concat: [{$toString: '$k'}, '-', '$o.q']}",
        "{$size: {$cond: [{$isArray: '$a'}, '$a', []]}}",
        "{$cond: [{$gt: ['$n', 0]}, '$o.p', '$k']}",
        "{$mod: ['$k', 7]}",
        "{$max: '$a'}",
        "{$filter: {input: {$cond: [{$isArray: '$a'}, '$a', []]}, cond: {$gt: ['$$this', 9]}}}",
        "'$o.p'",
        "{x: '$k', y: ['$o.p', '$n']}",
        "{$strLenCP: {$ifNull: ['$t', '']}}",
        "'$m'",
        "'$d.e'",
        "{e: '$d.e', m: '$m'}",
        "{$mod: ['$k', 3.0]}",
        "{$mergeObjects: [{a: 1}, {$cond: [{$eq: [{$type: '$d'}, 'object']}, '$d', null]}]}",
        "{$ifNull: ['$d.f.g', '$m', 0]}",
    ])
}

/// One or more stages that may follow this stream.
fn next(stream: &mut Stream, random: &mut Random) -> Vec<String> {
    let sort = |stream: &mut Stream, random: &mut Random| {
        let field = random.pick(&["n", "k", "t", "o.p", "a", "other", "m", "d.e"]);
        let direction = random.pick(&["1", "-1"]);
        stream.is_ordered = stream.has_unique_ids;
        format!("{{$sort: {{'{field}': {direction}, _id: 1}}}}")
    };
    match random.below(21) {
        17 => vec!["{$set: {'d.e': '$k', 'd.f.g': '$m'}}".into()],
        18 => {
            stream.has_unique_ids = false;
            let keeps = if random.one_in(2) { ", preserveNullAndEmptyArrays: true" } else { "" };
            vec![format!("{{$unwind: {{path: '{}'{keeps}}}}}", random.pick(&["$d", "$d.f", "$m"]))]
        }
        19 => vec![format!(
            "{{$project: {{{}}}}}",
            random.pick(&["'d.e': 1, m: 1", "'d.f.g': 0, m: 0", "d: {f: 1}, k: 1"])
        )],
        20 => vec![
            format!(
                "{{$graphLookup: {{from: 'c', startWith: '$other', connectFromField: 'other', connectToField: '_id', as: '{}', maxDepth: 2}}}}",
                random.pick(&["j", "d.j"])
            ),
            "{$set: {j: {$cond: [{$isArray: '$j'}, {$size: '$j'}, 0]}}}".into(),
            "{$unset: 'd.j'}".into(),
        ],
        0..=2 => vec![format!("{{$match: {}}}", condition(random))],
        3 => vec![sort(stream, random)],
        4 => {
            let mut stages = vec![sort(stream, random)];
            if stream.is_ordered {
                stages.extend(random.one_in(2).then(|| format!("{{$skip: {}}}", random.below(40))));
                stages.push(format!("{{$limit: {}}}", 1 + random.below(200)));
            }
            stages
        }
        5 => vec![format!(
            "{{$addFields: {{x: {}, '{}': {}}}}}",
            expression(random),
            random.pick(&["k", "z.y"]),
            "{$add: ['$other', 1]}"
        )],
        6 => {
            let fields = random.pick(&["k: 1, n: 1", "t: 1, o: 1, k: 1", "'o.p': 1, a: 1, k: 1, n: 1", "k: 1"]);
            vec![format!("{{$project: {{{fields}, y: {}}}}}", expression(random))]
        }
        7 => vec![format!("{{$project: {{{}: 0}}}}", random.pick(&["t", "a", "'o.q'", "other"]))],
        8 | 9 => {
            stream.has_unique_ids = false;
            let keeps = if random.one_in(3) { ", preserveNullAndEmptyArrays: true" } else { "" };
            let index = if random.one_in(4) { ", includeArrayIndex: 'i'" } else { "" };
            vec![format!("{{$unwind: {{path: '$a'{keeps}{index}}}}}")]
        }
        10 | 11 => vec![group(stream, random)],
        12 => {
            let by = random.pick(&["$k", "$o.p", "$a"]);
            *stream = Stream { is_ordered: false, has_unique_ids: by != "$a" };
            vec![format!("{{$sortByCount: '{by}'}}")]
        }
        13 | 14 => lookup(stream, random),
        15 if stream.is_ordered => vec![window(stream, random)],
        15 => vec![sort(stream, random)],
        _ => {
            *stream = Stream { is_ordered: true, has_unique_ids: true };
            vec!["{$count: 'k'}".into(), "{$set: {_id: 1}}".into()]
        }
    }
}

/// A window function over a stream in order.
fn window(stream: &mut Stream, random: &mut Random) -> String {
    let field = random.pick(&[
        "$sum: '$k', window: {documents: [-2, 1]}",
        "$sum: '$k', window: {documents: ['unbounded', 'current']}",
        "$sum: '$other', window: {documents: [-200, -190]}",
        "$max: '$t', window: {documents: ['current', 40]}",
        "$stdDevPop: '$n', window: {documents: [-60, 60]}",
        "$avg: '$n'",
        "$shift: {output: '$t', by: 333}",
        "$shift: {output: '$k', by: -70, default: 0}",
        "$locf: '$n'",
        "$covariancePop: ['$k', '$n'], window: {documents: [-30, 'current']}",
        "$denseRank: {}",
        "$documentNumber: {}",
    ]);
    let part = random.pick(&["", "partitionBy: '$k', ", "partitionBy: {$mod: ['$other', 3]}, "]);
    stream.is_ordered = stream.has_unique_ids && part.is_empty();
    format!("{{$setWindowFields: {{{part}sortBy: {{_id: 1}}, output: {{w: {{{field}}}, v: {{$sum: '$k'}}}}}}}}")
}

fn group(stream: &mut Stream, random: &mut Random) -> String {
    let id = random.pick(&[
        "'$k'",
        "'$o.p'",
        "'$a'",
        "null",
        "{$mod: ['$other', 5]}",
        "{k: '$k', q: '$o.q'}",
        "'$_id'",
        "'$m'",
        "{m: '$m'}",
        "{e: '$d.e'}",
        "{m: '$m', e: '$d.e'}",
        "{k: '$k'}",
        "{n: '$n'}",
        "'$n'",
    ]);
    let mut fields = vec![
        "k: {$sum: '$k'}",
        "n: {$avg: '$n'}",
        "t: {$max: '$t'}",
        "other: {$min: '$other'}",
        "c: {$count: {}}",
        "d: {$sum: {$multiply: ['$k', 2]}}",
    ];
    if stream.is_ordered {
        fields.extend(["f: {$first: '$t'}", "l: {$last: '$a'}", "a: {$push: '$k'}", "r: {$push: '$$ROOT'}"]);
    }
    let chosen: Vec<_> = fields.into_iter().filter(|_| random.one_in(2)).collect();
    // An earlier stage may have put an array into any field. Only null and computed keys are certain not to be arrays.
    let has_unique_ids = id == "null" || id.starts_with('{');
    *stream = Stream { is_ordered: false, has_unique_ids };
    let separator = if chosen.is_empty() { "" } else { ", " };
    format!("{{$group: {{_id: {id}{separator}{}}}}}", chosen.join(", "))
}

/// A join whose array has a defined order: by a unique field, or sorted inside.
fn lookup(stream: &mut Stream, random: &mut Random) -> Vec<String> {
    let from = random.pick(&["c", "plain"]);
    let sorted = "pipeline: [{$sort: {_id: 1}}, {$limit: 3}, {$project: {t: 1, k: 1}}]";
    let joined = match random.below(4) {
        0 | 1 => format!("{{$lookup: {{from: '{from}', localField: 'other', foreignField: '_id', as: 'j'}}}}"),
        2 => format!("{{$lookup: {{from: '{from}', localField: 'k', foreignField: 'k', {sorted}, as: 'j'}}}}"),
        _ => format!(
            "{{$lookup: {{from: '{from}', let: {{v: '$k'}}, pipeline: [{{$match: {{$expr: {{$eq: ['$_id', '$$v']}}}}}},
              {{$project: {{t: 1}}}}], as: 'j'}}}}"
        ),
    };
    match random.below(7) {
        4..=6 => {
            // The join writes to a path that leads through documents, arrays and numbers, and `$unwind` reads it there.
            stream.has_unique_ids = false;
            let index = random.pick(&["", ", includeArrayIndex: 'd.at'", ", includeArrayIndex: 'd'"]);
            let keeps = random.pick(&["true", "true", "false"]);
            let path = random.pick(&["d.j", "d.f.j"]);
            let unwind = format!("{{$unwind: {{path: '${path}', preserveNullAndEmptyArrays: {keeps}{index}}}}}");
            vec![joined.replace("as: 'j'", &format!("as: '{path}'")), unwind]
        }
        0 => {
            stream.has_unique_ids = false;
            vec![joined, "{$unwind: '$j'}".into()]
        }
        1 => {
            stream.has_unique_ids = false;
            vec![joined, "{$unwind: {path: '$j', preserveNullAndEmptyArrays: true, includeArrayIndex: 'at'}}".into()]
        }
        2 => vec![joined, "{$set: {j: {$size: '$j'}}}".into()],
        _ => vec![joined],
    }
}

pub fn pipeline(random: &mut Random) -> Made {
    let mut stream = Stream { is_ordered: false, has_unique_ids: true };
    let mut stages = Vec::new();
    for _ in 0..=random.below(5) {
        stages.extend(next(&mut stream, random));
    }
    let options = if random.one_in(4) { ", collation: {locale: 'en', strength: 2}" } else { "" };
    Made { stages, is_ordered: stream.is_ordered, options }
}
