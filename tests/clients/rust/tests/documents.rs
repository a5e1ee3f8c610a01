//! Documents: every type of BSON, updates, findAndModify, queries, aggregation.

use bunko_clients_rust::{Scratch, documents, sorted};
use mongodb::bson::{
    Binary, Bson, DateTime, Document, JavaScriptCodeWithScope, Regex, Timestamp, bson, doc, oid::ObjectId,
    spec::BinarySubtype,
};
use mongodb::options::ReturnDocument;

fn every_type() -> Document {
    let binary = |subtype, bytes: &[u8]| Binary { subtype, bytes: bytes.to_vec() };
    let regex = Regex { pattern: "^a.*b$".try_into().unwrap(), options: "im".try_into().unwrap() };
    doc! {
        "_id": 1, "double": 1.5, "infinity": f64::NEG_INFINITY, "string": "文庫 \0", "object": { "a": {} },
        "array": [1, "two", []], "generic": binary(BinarySubtype::Generic, &[0, 1, 255]),
        "uuid": binary(BinarySubtype::Uuid, &[7; 16]), "object_id": ObjectId::parse_str("0123456789abcdef01234567").unwrap(),
        "true": true, "false": false, "date": DateTime::from_millis(-1_234_567), "null": null, "regex": regex,
        "code": Bson::JavaScriptCode("f()".to_owned()),
        "scoped": JavaScriptCodeWithScope { code: "x".to_owned(), scope: doc! { "x": 1 } }, "int32": i32::MIN,
        "timestamp": Timestamp { time: 4_000_000_000, increment: 7 }, "int64": i64::MAX,
        "decimal": "1.10".parse::<mongodb::bson::Decimal128>().unwrap(), "min": Bson::MinKey, "max": Bson::MaxKey,
    }
}

#[test]
fn every_type_comes_back_and_is_found() {
    let scratch = Scratch::new("every_type");
    let things = scratch.things();
    things.insert_one(every_type()).run().unwrap();
    assert_eq!(sorted(&things), [every_type()]);
    for (field, value) in every_type().into_iter().filter(|(field, _)| field != "regex") {
        assert_eq!(things.count_documents(doc! { &field: value }).run().unwrap(), 1, "{field}");
    }
}

#[test]
fn create_read_update_delete() {
    let scratch = Scratch::new("crud");
    let things = scratch.things();
    things.insert_many([doc! { "_id": 1, "n": 1 }, doc! { "_id": 2 }, doc! { "_id": 3 }]).run().unwrap();
    assert_eq!(things.update_many(doc! {}, doc! { "$inc": { "n": 1 } }).run().unwrap().modified_count, 3);
    let updated = things.update_one(doc! { "_id": 1 }, doc! { "$set": { "n": 2 } }).run().unwrap();
    assert_eq!((updated.matched_count, updated.modified_count), (1, 0));
    things.replace_one(doc! { "_id": 2 }, doc! { "replaced": true }).run().unwrap();
    assert_eq!(things.find_one(doc! { "_id": 2 }).run().unwrap(), Some(doc! { "_id": 2, "replaced": true }));
    let upserted =
        things.update_one(doc! { "_id": 9 }, doc! { "$setOnInsert": { "born": true } }).upsert(true).run().unwrap();
    assert_eq!(upserted.upserted_id, Some(Bson::Int32(9)));
    assert_eq!(things.delete_many(doc! { "n": { "$exists": true } }).run().unwrap().deleted_count, 2);
    assert_eq!(things.delete_one(doc! {}).run().unwrap().deleted_count, 1);
    assert_eq!(things.find_one(doc! { "_id": 1 }).run().unwrap(), None);
}

#[test]
fn update_operators() {
    let scratch = Scratch::new("operators");
    let things = scratch.things();
    for (before, update, after) in [
        (doc! { "a": 1 }, doc! { "$set": { "b.c": 1 }, "$unset": { "a": "" } }, doc! { "b": { "c": 1 } }),
        (doc! { "a": i32::MAX }, doc! { "$inc": { "a": 1 } }, doc! { "a": 2_147_483_648_i64 }),
        (doc! { "a": 3 }, doc! { "$mul": { "a": 2.5 } }, doc! { "a": 7.5 }),
        (doc! { "a": 3, "b": 3 }, doc! { "$min": { "a": 2 }, "$max": { "b": 4 } }, doc! { "a": 2, "b": 4 }),
        (doc! { "a": 1 }, doc! { "$rename": { "a": "z" } }, doc! { "z": 1 }),
        (
            doc! { "a": [5, 1] },
            doc! { "$push": { "a": { "$each": [3, 4], "$sort": 1, "$slice": -3 } } },
            doc! { "a": [3, 4, 5] },
        ),
        (doc! { "a": [1, 5, 2] }, doc! { "$pull": { "a": { "$gt": 1 } } }, doc! { "a": [1] }),
        (doc! { "a": [1, 2, 1] }, doc! { "$pullAll": { "a": [1] } }, doc! { "a": [2] }),
        (doc! { "a": [1, 2, 3] }, doc! { "$pop": { "a": -1 } }, doc! { "a": [2, 3] }),
        (doc! { "a": [1] }, doc! { "$addToSet": { "a": { "$each": [1, 2] } } }, doc! { "a": [1, 2] }),
        (doc! { "a": 12 }, doc! { "$bit": { "a": { "and": 10 } } }, doc! { "a": 8 }),
    ] {
        things.delete_many(doc! {}).run().unwrap();
        things.insert_one(before).run().unwrap();
        things.update_one(doc! {}, update.clone()).run().unwrap();
        let found = things.find_one(doc! {}).projection(doc! { "_id": 0 }).run().unwrap();
        assert_eq!(found, Some(after), "{update}");
    }
}

#[test]
fn positional_operators_and_array_filters() {
    let scratch = Scratch::new("positional");
    let things = scratch.things();
    things.insert_one(doc! { "_id": 1, "rows": [{ "n": 1 }, { "n": 5 }] }).run().unwrap();
    let increment = things.update_one(doc! { "_id": 1 }, doc! { "$inc": { "rows.$[big].n": 100 } });
    increment.array_filters([doc! { "big.n": { "$gte": 3 } }]).run().unwrap();
    things.update_one(doc! { "rows.n": 1 }, doc! { "$set": { "rows.$.n": 10 } }).run().unwrap();
    assert_eq!(sorted(&things), [doc! { "_id": 1, "rows": [{ "n": 10 }, { "n": 105 }] }]);
}

#[test]
fn find_and_modify() {
    let scratch = Scratch::new("find_and_modify");
    let things = scratch.things();
    things.insert_many((1..4).map(|i| doc! { "_id": i, "n": i })).run().unwrap();
    let increment = || things.find_one_and_update(doc! { "_id": 1 }, doc! { "$inc": { "n": 10 } });
    assert_eq!(increment().run().unwrap(), Some(doc! { "_id": 1, "n": 1 }));
    assert_eq!(increment().return_document(ReturnDocument::After).run().unwrap(), Some(doc! { "_id": 1, "n": 21 }));
    let replaced = things.find_one_and_replace(doc! { "_id": 9 }, doc! { "m": 1 }).upsert(true);
    assert_eq!(replaced.return_document(ReturnDocument::After).run().unwrap(), Some(doc! { "_id": 9, "m": 1 }));
    let deleted = things.find_one_and_delete(doc! { "_id": { "$lt": 9 } }).sort(doc! { "_id": -1 });
    assert_eq!(deleted.projection(doc! { "_id": 0 }).run().unwrap(), Some(doc! { "n": 3 }));
    assert_eq!(things.find_one_and_delete(doc! { "_id": 99 }).run().unwrap(), None);
}

#[test]
fn sort_skip_limit_projection_count_distinct() {
    let scratch = Scratch::new("queries");
    let things = scratch.things();
    things.insert_many((0..10).map(|i| doc! { "_id": i, "a": i % 3, "list": [i, i + 1] })).run().unwrap();
    let page = things.find(doc! {}).sort(doc! { "a": -1, "_id": 1 }).skip(2).limit(3).projection(doc! { "a": 1 });
    let page: Vec<Document> = page.run().unwrap().map(Result::unwrap).collect();
    assert_eq!(page, documents(bson!([{ "_id": 8, "a": 2 }, { "_id": 1, "a": 1 }, { "_id": 4, "a": 1 }])));
    let sliced = things.find_one(doc! { "_id": 5 }).projection(doc! { "list": { "$slice": -1 }, "a": 0 });
    assert_eq!(sliced.run().unwrap(), Some(doc! { "_id": 5, "list": [6] }));
    assert_eq!(things.count_documents(doc! { "a": 1 }).run().unwrap(), 3);
    assert_eq!(things.estimated_document_count().run().unwrap(), 10);
    let mut distinct = things.distinct("list", doc! { "_id": { "$lt": 2 } }).run().unwrap();
    distinct.sort_by_key(Bson::as_i32);
    assert_eq!(distinct, [0, 1, 2].map(Bson::Int32));
}

#[test]
fn aggregation() {
    let scratch = Scratch::new("aggregation");
    let things = scratch.things();
    let orders = documents(bson!([
        { "_id": 1, "who": "ann", "lines": [{ "sku": "a", "n": 2 }, { "sku": "b", "n": 1 }] },
        { "_id": 2, "who": "bob", "lines": [{ "sku": "a", "n": 5 }] }, { "_id": 3, "who": "ann", "lines": [] },
    ]));
    things.insert_many(orders).run().unwrap();
    let run = |pipeline| -> Vec<Document> {
        things.aggregate(documents(pipeline)).run().unwrap().map(Result::unwrap).collect()
    };
    let grouped = run(bson!([
        { "$match": { "_id": { "$lte": 3 } } }, { "$unwind": "$lines" },
        { "$group": { "_id": "$lines.sku", "n": { "$sum": "$lines.n" }, "mean": { "$avg": "$lines.n" } } },
        { "$sort": { "n": -1 } }, { "$project": { "_id": 0, "sku": "$_id", "n": 1, "mean": 1 } },
    ]));
    assert_eq!(grouped, documents(bson!([{ "n": 7, "mean": 3.5, "sku": "a" }, { "n": 1, "mean": 1.0, "sku": "b" }])));
    assert_eq!(run(bson!([{ "$match": { "who": "ann" } }, { "$count": "n" }])), [doc! { "n": 2 }]);
}
