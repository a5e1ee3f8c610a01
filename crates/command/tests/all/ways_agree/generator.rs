//! Documents and filters that follow from a seed: each type beside each other, texts and places alone and with other
//! conditions, and filters that fail.

use bunko_testkit::random::Random;

/// Values of all types that an index accepts beside each other, and numbers whose types lose fractions in different ways.
const SCALARS: [&str; 38] = [
    "1",
    "2",
    "3.0",
    "NumberLong(3)",
    "NumberDecimal('2.50')",
    "2.5",
    "1.5",
    "-1.5",
    "NumberDecimal('-1.5')",
    "NumberDecimal('1.5')",
    "NumberDecimal('3')",
    "NumberDecimal('1E19')",
    "1e19",
    "NumberLong('9007199254740993')",
    "9007199254740992.0",
    "-0.0",
    "0",
    "NaN",
    "NumberDecimal('NaN')",
    "Infinity",
    "-Infinity",
    "null",
    "'a'",
    "'A'",
    "'b'",
    "''",
    "{p: 1}",
    "{}",
    "true",
    "false",
    "MinKey",
    "MaxKey",
    "ISODate('2020-01-01T00:00:00Z')",
    "Timestamp(1, 2)",
    "ObjectId('0123456789abcdef01234567')",
    "BinData(0, 'AQID')",
    "BinData(4, 'AAAAAAAAAAAAAAAAAAAAAA==')",
    "{p: -1.5}",
];

const ARRAYS: [&str; 8] =
    ["[1, 3]", "[]", "[null]", "[[2]]", "[undefined]", "[{p: 1}, {q: 2}]", "[1.5, 'a']", "[[], 3]"];

/// A value that an operator compares with.
fn operand(random: &mut Random) -> &'static str {
    if random.one_in(6) { random.pick(&ARRAYS) } else { random.pick(&SCALARS) }
}

/// A value of a document.
fn value(random: &mut Random) -> &'static str {
    match random.below(12) {
        0 => "undefined",
        1 => "/^a/i",
        2 => random.pick(&["Code('f')", "Timestamp(1, 3)", "2", "3"]),
        _ => operand(random),
    }
}

fn words(random: &mut Random, count: u64) -> Vec<&'static str> {
    (0..count).map(|_| random.pick(&["apple", "Apple", "pear", "café", "Cafe", "plum", "fig"])).collect()
}

/// Fields: `n` and `x` hold any value, `s` strings, `h` no arrays, `o` and `w` documents, `v` names of digits and arrays with positions,
/// `g` and `place` places, `t` texts.
pub fn document(id: u64, random: &mut Random) -> String {
    let mut fields = vec![format!("_id: {id}")];
    let mut some = |chances: u64, random: &mut Random, field: &dyn Fn(&mut Random) -> String| {
        if !random.one_in(chances) {
            fields.push(field(random));
        }
    };
    some(4, random, &|random| format!("n: {}", value(random)));
    some(3, random, &|random| format!("s: '{}'", random.pick(&["a", "A", "b", "B", "ab", ""])));
    some(5, random, &|random| {
        if random.one_in(2) { format!("h: {}", random.below(4)) } else { format!("h: {}", random.pick(&SCALARS)) }
    });
    some(2, random, &|random| format!("x: {}", value(random)));
    some(3, random, &|random| match random.below(3) {
        0 => format!("o: {{p: {}, q: {}}}", random.below(4), value(random)),
        1 => format!("o: [{{p: {}}}, {{q: {}}}, 5]", random.below(4), random.below(4)),
        _ => format!("o: {{p: [{}, {}]}}", random.below(4), random.below(4)),
    });
    some(3, random, &|random| format!("w: {{a: {}, b: {{c: {}}}}}", value(random), random.below(3)));
    some(3, random, &|random| match random.below(5) {
        0 => format!("v: [{}, {{p: {}}}]", value(random), random.below(4)),
        1 => format!("v: [{{p: [{}, {}]}}, {}]", random.below(4), value(random), random.below(4)),
        2 => format!("v: {{'0': {}, p: {}}}", value(random), random.below(4)),
        3 => format!("v: {{'0': {{p: {}}}}}", value(random)),
        _ => random.pick(&["v: []", "v: [[1, 3], 2]", "v: [[{p: 1}, {p: 2}]]", "v: 3"]).to_owned(),
    });
    some(3, random, &|random| format!("g: [{}, {}]", random.below(6), random.below(6)));
    let point = |random: &mut Random| {
        format!("place: {{type: 'Point', coordinates: [{}, {}]}}", random.below(6), random.below(6))
    };
    some(3, random, &point);
    some(4, random, &|random| {
        let count = 1 + random.below(4);
        format!("t: '{}'", words(random, count).join(" "))
    });
    format!("{{{}}}", fields.join(", "))
}

/// A text search.
fn search(random: &mut Random) -> String {
    let mut parts = Vec::new();
    for word in words(random, 3) {
        parts.push(match random.below(6) {
            0 | 1 => format!("-{word}"),
            2 => format!("\\\"{word} {}\\\"", words(random, 1)[0]),
            3 => format!("-\\\"{word} {}\\\"", words(random, 1)[0]),
            _ => word.to_owned(),
        });
    }
    let flags = random.pick(&[
        "",
        "",
        ", $caseSensitive: true",
        ", $diacriticSensitive: true",
        ", $caseSensitive: true, $diacriticSensitive: true",
    ]);
    format!("{{$text: {{$search: \"{}\"{flags}}}}}", parts.join(" "))
}

/// A region.
fn place(random: &mut Random) -> String {
    let number = random.below(5);
    let polygon = format!("{{$geometry: {{type: 'Polygon', coordinates: [[[0, 0], [5, 0], [{number}, 5], [0, 0]]]}}}}");
    match random.below(6) {
        0 => format!("{{g: {{$geoWithin: {{$box: [[0, 0], [{number}, 4]]}}}}}}"),
        1 => format!("{{g: {{$geoWithin: {{$center: [[2, 2], {number}]}}}}}}"),
        2 => format!("{{place: {{$geoWithin: {{$centerSphere: [[2, 2], 0.0{}]}}}}}}", 2 + number),
        3 => format!("{{place: {{$geoWithin: {polygon}}}}}"),
        4 => format!("{{place: {{$geoIntersects: {polygon}}}}}"),
        _ => format!("{{place: {{$geoIntersects: {{$geometry: {{type: 'Point', coordinates: [{number}, 2]}}}}}}}}"),
    }
}

fn condition(random: &mut Random) -> String {
    let path = random.pick(&["n", "n", "s", "h", "h", "x", "o.p", "o.q", "w.a", "w.b.c", "o", "_id", "v.0", "v.0.p"]);
    let (number, operand, other) = (random.below(4), operand(random), operand(random));
    match random.below(20) {
        0..=3 => format!("{{'{path}': {operand}}}"),
        4 => format!("{{'{path}': {{$gte: {number}, $lt: {}}}}}", number + 2),
        5 => format!("{{'{path}': {{$in: [{operand}, {other}, {number}]}}}}"),
        6 => format!("{{'{path}': {{$ne: {operand}}}}}"),
        7 => format!("{{'{path}': {{$exists: {}}}}}", random.one_in(2)),
        8 => {
            let kinds =
                ["number", "string", "null", "array", "object", "decimal", "double", "binData", "minKey", "date"];
            format!("{{'{path}': {{$type: '{}'}}}}", random.pick(&kinds))
        }
        9 => format!("{{'{path}': {{$regex: '{}'}}}}", random.pick(&["^a", "b", "^A$"])),
        10 => format!("{{'{path}': {{$mod: [2, {}]}}}}", number % 2),
        11 => format!("{{'{path}': {{$elemMatch: {{$gte: {operand}}}}}}}"),
        12 => place(random),
        13 => format!("{{'{path}': {{$nin: [{operand}, {other}]}}}}"),
        14 => format!("{{$jsonSchema: {{required: ['{path}']}}}}"),
        15 => format!("{{'{path}': {{{}: {operand}}}}}", random.pick(&["$gt", "$gte", "$lt", "$lte"])),
        16 => format!("{{$expr: {{{}: ['${path}', {{$literal: {operand}}}]}}}}", random.pick(&["$eq", "$gt", "$lte"])),
        17 => format!("{{o: {{$elemMatch: {{p: {number}}}}}}}"),
        18 => format!("{{$nor: [{{'{path}': {operand}}}, {{'{path}': {{$gt: {number}}}}}]}}"),
        _ => format!("{{'{path}': {{$not: {{$gt: {number}}}}}}}"),
    }
}

/// Negations, elements, arrays of arrays, null and types, each on fields that have indexes.
fn rare(random: &mut Random) -> String {
    let path = random.pick(&["n", "h", "x", "o.p", "o.q", "v", "v.0", "v.0.p", "v.p", "w.a", "w.b.c", "s"]);
    let (number, operand, other) = (random.below(4), operand(random), operand(random));
    match random.below(18) {
        0 => format!("{{'{path}': {{$not: {{$gt: {operand}, $lt: {other}}}}}}}"),
        1 => format!("{{'{path}': {{$not: {{$in: [{operand}, null]}}}}}}"),
        2 => format!("{{'{path}': {{$not: {{$elemMatch: {{$gte: {number}}}}}}}}}"),
        3 => format!("{{'{path}': {{$elemMatch: {{$elemMatch: {{$lte: {number}}}}}}}}}"),
        4 => format!("{{o: {{$elemMatch: {{p: {number}, q: {{$exists: {}}}}}}}}}", random.one_in(2)),
        5 => format!("{{v: {{$elemMatch: {{p: {{$in: [{number}, null]}}}}}}}}"),
        6 => format!("{{'{path}': {{$all: [{operand}, {number}]}}}}"),
        7 => format!("{{'{path}': {{$size: {number}}}}}"),
        8 => format!("{{'{path}': {{$in: [null, {operand}]}}}}"),
        9 => format!("{{'{path}': {{$type: ['null', '{}']}}}}", random.pick(&["array", "int", "undefined", "string"])),
        10 => format!("{{'{path}': {{$not: {{$type: 'array'}}}}}}"),
        11 => format!("{{'{path}': {{$not: {{$exists: false}}, $ne: {operand}}}}}"),
        12 => format!("{{$nor: [{{$and: [{{'{path}': {{$gt: {number}}}}}, {{h: {{$lt: {operand}}}}}]}}]}}"),
        13 => {
            format!("{{$nor: [{{$and: [{{s: {{$ne: 'a'}}}}, {{h: {{$gte: {number}}}}}]}}, {{'{path}': {operand}}}]}}")
        }
        14 => format!("{{'{path}': {{$not: {{$regex: '^a'}}}}}}"),
        15 => format!("{{'{path}': {{$eq: [{number}, 3]}}}}"),
        16 => format!("{{$nor: [{}]}}", alternatives(1, random)),
        _ => expression(random),
    }
}

/// An expression of several comparisons, with variables of its own or of the command.
fn expression(random: &mut Random) -> String {
    let path = random.pick(&["n", "h", "x", "o.p", "w.b.c", "_id", "s"]);
    let (number, operand) = (random.below(4), operand(random));
    let expression = match random.below(7) {
        0 => format!("{{$let: {{vars: {{own: '${path}'}}, in: {{$eq: ['$$own', {{$literal: {operand}}}]}}}}}}"),
        1 => format!("{{$and: [{{$gte: ['${path}', {number}]}}, {{$ne: ['$h', {{$literal: {operand}}}]}}]}}"),
        2 => format!("{{$or: [{{$eq: ['${path}', {{$literal: {operand}}}]}}, {{$lt: ['$h', {number}]}}]}}"),
        3 => format!("{{$in: ['${path}', [{number}, {{$literal: {operand}}}]]}}"),
        4 => format!("{{$gte: [{{$literal: {operand}}}, '${path}']}}"),
        5 => format!("{{$eq: ['${path}', '$$asked']}}"),
        _ => format!("{{$and: [{{$lte: ['$$asked', '${path}']}}, {{$eq: ['$s', 'a']}}]}}"),
    };
    format!("{{$expr: {expression}}}")
}

/// The values of the variables that expressions of a command name.
pub fn variables(random: &mut Random) -> String {
    format!("{{asked: {{$literal: {}}}}}", operand(random))
}

/// A region beside conditions that a geospatial index of several fields serves.
fn place_beside(random: &mut Random) -> String {
    let beside = match random.below(4) {
        0 => format!("{{s: '{}'}}", random.pick(&["a", "A", "b"])),
        1 => "{s: {$in: ['a', 'B', null]}}".to_owned(),
        _ => behind(random),
    };
    match random.below(4) {
        0 => format!("{{$and: [{}, {beside}, {}]}}", place(random), alternatives(1, random)),
        1 => format!("{{$or: [{{$and: [{}, {beside}]}}, {}]}}", place(random), behind(random)),
        _ => format!("{{$and: [{}, {beside}, {}]}}", place(random), condition(random)),
    }
}

/// A sort of at most one field that may hold arrays, and of `_id`, which makes the order whole.
pub fn sort(random: &mut Random) -> String {
    let sign = |random: &mut Random| if random.one_in(2) { 1 } else { -1 };
    let any = random.pick(&["n", "n", "x", "o.p", "o.q", "v.0", "v.0.p", "w.a", "h", "s"]);
    let (one, other, last) = (sign(random), sign(random), sign(random));
    match random.below(4) {
        0 => format!("{{_id: {last}}}"),
        1 if !matches!(any, "s") => format!("{{s: {one}, '{any}': {other}, _id: {last}}}"),
        2 if !matches!(any, "h") => format!("{{h: {one}, '{any}': {other}, _id: {last}}}"),
        _ => format!("{{'{any}': {one}, _id: {last}}}"),
    }
}

/// A condition that an index on two fields serves after `s` or `h`.
fn behind(random: &mut Random) -> String {
    let (number, operand) = (random.below(4), operand(random));
    match random.below(9) {
        0 => format!("{{n: {operand}}}"),
        1 => format!("{{h: {number}}}"),
        2 => format!("{{x: {operand}}}"),
        3 => format!("{{h: {{$gte: {number}, $lt: {}}}}}", number + 2),
        4 => format!("{{n: {{$in: [{number}, {operand}]}}}}"),
        5 => format!("{{$nor: [{{h: {number}}}, {{n: {operand}}}]}}"),
        6 => format!("{{h: {{$ne: {number}}}}}"),
        7 => place(random),
        _ => condition(random),
    }
}

/// An `$or` of two or three branches; some have another `$or` inside.
fn alternatives(depth: u64, random: &mut Random) -> String {
    let branches: Vec<_> = (0..2 + random.below(2))
        .map(|_| match random.below(4) {
            0 if depth > 0 => format!("{{$and: [{}, {}]}}", behind(random), alternatives(depth - 1, random)),
            1 => format!("{{$and: [{}, {}]}}", behind(random), behind(random)),
            _ => behind(random),
        })
        .collect();
    format!("{{$or: [{}]}}", branches.join(", "))
}

/// Conditions beside an `$or`, with indexes for both together.
fn beside_alternatives(random: &mut Random) -> String {
    let beside = match random.below(4) {
        0 => format!("{{s: '{}'}}", random.pick(&["a", "A", "b"])),
        1 => format!("{{h: {}}}", random.below(4)),
        2 => format!("{{s: {{$in: ['{}', 'b']}}}}", random.pick(&["a", "A", ""])),
        _ => condition(random),
    };
    match random.below(5) {
        0 => format!("{{$or: [{{$and: [{beside}, {}]}}, {}]}}", alternatives(1, random), behind(random)),
        1 => format!("{{$and: [{beside}, {}, {}]}}", alternatives(1, random), alternatives(0, random)),
        2 => format!("{{$and: [{beside}, {}, {}]}}", behind(random), alternatives(1, random)),
        _ => format!("{{$and: [{beside}, {}]}}", alternatives(2, random)),
    }
}

/// A filter that is refused, or that fails on some document.
fn failing(random: &mut Random) -> &'static str {
    random.pick(&[
        "{n: {$in: 5}}",
        "{n: {$mod: [0, 1]}}",
        "{n: {$regex: '('}}",
        "{n: {$elemMatch: 5}}",
        "{n: {$gt: /a/}}",
        "{$expr: {$gt: [{$divide: [6, '$_id']}, 1]}}",
        "{$expr: {$toInt: 'a'}}",
        "{g: {$geoWithin: {$box: [[0, 0]]}}}",
        "{$and: []}",
        "{n: {$unknown: 1}}",
    ])
}

/// A filter, usually with one condition.
pub fn filter(random: &mut Random) -> String {
    match random.below(48) {
        32..=38 => rare(random),
        39..=41 => format!("{{$and: [{}, {}]}}", rare(random), condition(random)),
        42 | 43 => format!("{{$and: [{}, {}]}}", rare(random), alternatives(1, random)),
        44 => format!("{{$or: [{}, {}]}}", rare(random), rare(random)),
        45..=47 => place_beside(random),
        24..=31 => beside_alternatives(random),
        0..=2 => search(random),
        3 => format!("{{$and: [{}, {}]}}", search(random), condition(random)),
        4 => format!("{{$or: [{}, {}]}}", search(random), condition(random)),
        5 | 6 => place(random),
        7 if random.one_in(2) => failing(random).to_owned(),
        7 if random.one_in(4) => "{}".to_owned(),
        8..=10 => format!("{{$or: [{}, {}]}}", condition(random), condition(random)),
        11..=13 => format!("{{$and: [{}, {}]}}", condition(random), condition(random)),
        14 => format!("{{$and: [{}, {{$or: [{}, {}]}}]}}", condition(random), condition(random), condition(random)),
        _ => condition(random),
    }
}
