package bunko;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import com.mongodb.client.model.FindOneAndDeleteOptions;
import com.mongodb.client.model.FindOneAndReplaceOptions;
import com.mongodb.client.model.FindOneAndUpdateOptions;
import com.mongodb.client.model.ReturnDocument;
import com.mongodb.client.model.UpdateOptions;
import java.util.ArrayList;
import java.util.List;
import org.bson.BsonDocument;
import org.bson.BsonInt32;
import org.bson.BsonType;
import org.bson.BsonValue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DocumentsTest extends Suite {
    private static final BsonDocument EVERY_TYPE = doc("""
            {_id: 1, double: 1.5, infinity: {$numberDouble: "-Infinity"}, string: "\\u6587\\u5eab \\u0000",
             object: {a: {}}, array: [1, "two", []], generic: {$binary: {base64: "AAH/", subType: "00"}},
             uuid: {$uuid: "00112233-4455-6677-8899-aabbccddeeff"}, object_id: {$oid: "0123456789abcdef01234567"},
             yes: true, no: false, date: {$date: {$numberLong: "-1234567"}}, nothing: null,
             regex: {$regularExpression: {pattern: "^a.*b$", options: "im"}}, code: {$code: "f()"},
             scoped: {$code: "x", $scope: {x: 1}}, int32: -2147483648, timestamp: {$timestamp: {t: 4000000000, i: 7}},
             int64: {$numberLong: "9223372036854775807"}, decimal: {$numberDecimal: "1.10"}, min: {$minKey: 1}, max: {$maxKey: 1}}
            """);

    @Test
    void everyTypeComesBackAndIsFound() {
        things.insertOne(EVERY_TYPE);
        BsonDocument found = things.find().first();
        assertEquals(EVERY_TYPE, found);
        assertEquals(List.copyOf(EVERY_TYPE.keySet()), List.copyOf(found.keySet()));
        EVERY_TYPE.forEach((field, value) -> {
            if (value.getBsonType() != BsonType.REGULAR_EXPRESSION) {
                assertEquals(1, things.countDocuments(new BsonDocument(field, value)), field);
            }
        });
    }

    @Test
    void createReadUpdateDelete() {
        things.insertMany(List.of(doc("{_id: 1, n: 1}"), doc("{_id: 2}"), doc("{_id: 3}")));
        assertEquals(3, things.updateMany(doc("{}"), doc("{$inc: {n: 1}}")).getModifiedCount());
        var updated = things.updateOne(doc("{_id: 1}"), doc("{$set: {n: 2}}"));
        assertEquals(1, updated.getMatchedCount());
        assertEquals(0, updated.getModifiedCount());
        things.replaceOne(doc("{_id: 2}"), doc("{replaced: true}"));
        assertEquals(doc("{_id: 2, replaced: true}"), things.find(doc("{_id: 2}")).first());
        var upserted = things.updateOne(doc("{_id: 9}"), doc("{$setOnInsert: {born: true}}"), new UpdateOptions().upsert(true));
        assertEquals(new BsonInt32(9), upserted.getUpsertedId());
        assertEquals(2, things.deleteMany(doc("{n: {$exists: true}}")).getDeletedCount());
        assertEquals(1, things.deleteOne(doc("{}")).getDeletedCount());
        assertNull(things.find(doc("{_id: 1}")).first());
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "{a: 1}                 | {$set: {'b.c': 1}, $unset: {a: ''}}                        | {b: {c: 1}}",
        "{a: 2147483647}        | {$inc: {a: 1}}                                             | {a: 2147483648}",
        "{a: 3}                 | {$mul: {a: 2.5}}                                           | {a: 7.5}",
        "{a: 3, b: 3}           | {$min: {a: 2}, $max: {b: 4}}                               | {a: 2, b: 4}",
        "{a: 1}                 | {$rename: {a: 'z'}}                                        | {z: 1}",
        "{a: [5, 1]}            | {$push: {a: {$each: [3, 4], $sort: 1, $slice: -3}}}        | {a: [3, 4, 5]}",
        "{a: [1, 5, 2]}         | {$pull: {a: {$gt: 1}}}                                     | {a: [1]}",
        "{a: [1, 2, 1]}         | {$pullAll: {a: [1]}}                                       | {a: [2]}",
        "{a: [1, 2, 3]}         | {$pop: {a: -1}}                                            | {a: [2, 3]}",
        "{a: [1]}               | {$addToSet: {a: {$each: [1, 2]}}}                          | {a: [1, 2]}",
        "{a: 12}                | {$bit: {a: {and: 10}}}                                     | {a: 8}",
    }, quoteCharacter = '~')
    void updateOperators(String before, String update, String after) {
        things.insertOne(doc(before).append("_id", new BsonInt32(1)));
        things.updateOne(doc("{_id: 1}"), doc(update));
        BsonDocument found = things.find().first();
        found.remove("_id");
        assertEquals(doc(after), found);
    }

    @Test
    void positionalOperatorsAndArrayFilters() {
        things.insertOne(doc("{_id: 1, rows: [{n: 1}, {n: 5}]}"));
        things.updateOne(doc("{_id: 1}"), doc("{$inc: {'rows.$[big].n': 100}}"),
                new UpdateOptions().arrayFilters(List.of(doc("{'big.n': {$gte: 3}}"))));
        things.updateOne(doc("{'rows.n': 1}"), doc("{$set: {'rows.$.n': 10}}"));
        assertEquals(doc("{_id: 1, rows: [{n: 10}, {n: 105}]}"), things.find().first());
    }

    @Test
    void findAndModify() {
        things.insertMany(List.of(doc("{_id: 1, n: 1}"), doc("{_id: 2, n: 2}"), doc("{_id: 3, n: 3}")));
        var increment = doc("{$inc: {n: 10}}");
        assertEquals(doc("{_id: 1, n: 1}"), things.findOneAndUpdate(doc("{_id: 1}"), increment));
        assertEquals(doc("{_id: 1, n: 21}"), things.findOneAndUpdate(doc("{_id: 1}"), increment,
                new FindOneAndUpdateOptions().returnDocument(ReturnDocument.AFTER)));
        assertEquals(doc("{_id: 9, m: 1}"), things.findOneAndReplace(doc("{_id: 9}"), doc("{m: 1}"),
                new FindOneAndReplaceOptions().upsert(true).returnDocument(ReturnDocument.AFTER)));
        assertEquals(doc("{n: 3}"), things.findOneAndDelete(doc("{_id: {$lt: 9}}"),
                new FindOneAndDeleteOptions().sort(doc("{_id: -1}")).projection(doc("{_id: 0}"))));
        assertNull(things.findOneAndDelete(doc("{_id: 99}")));
    }

    @Test
    void sortSkipLimitProjectionCountDistinct() {
        for (int i = 0; i < 10; i++) {
            things.insertOne(doc("{_id: %d, a: %d, list: [%d, %d]}".formatted(i, i % 3, i, i + 1)));
        }
        var page = things.find().sort(doc("{a: -1, _id: 1}")).skip(2).limit(3).projection(doc("{a: 1}"));
        assertEquals(List.of(doc("{_id: 8, a: 2}"), doc("{_id: 1, a: 1}"), doc("{_id: 4, a: 1}")), page.into(new ArrayList<>()));
        assertEquals(doc("{_id: 5, list: [6]}"),
                things.find(doc("{_id: 5}")).projection(doc("{list: {$slice: -1}, a: 0}")).first());
        assertEquals(3, things.countDocuments(doc("{a: 1}")));
        assertEquals(10, things.estimatedDocumentCount());
        List<BsonValue> distinct = things.distinct("list", doc("{_id: {$lt: 2}}"), BsonValue.class).into(new ArrayList<>());
        distinct.sort((left, right) -> left.asInt32().compareTo(right.asInt32()));
        assertEquals(List.of(new BsonInt32(0), new BsonInt32(1), new BsonInt32(2)), distinct);
    }

    @Test
    void aggregation() {
        things.insertMany(List.of(
                doc("{_id: 1, who: 'ann', lines: [{sku: 'a', n: 2}, {sku: 'b', n: 1}]}"),
                doc("{_id: 2, who: 'bob', lines: [{sku: 'a', n: 5}]}"), doc("{_id: 3, who: 'ann', lines: []}")));
        var pipeline = List.of(doc("{$match: {_id: {$lte: 3}}}"), doc("{$unwind: '$lines'}"),
                doc("{$group: {_id: '$lines.sku', n: {$sum: '$lines.n'}, mean: {$avg: '$lines.n'}}}"),
                doc("{$sort: {n: -1}}"), doc("{$project: {_id: 0, sku: '$_id', n: 1, mean: 1}}"));
        assertEquals(List.of(doc("{n: 7, mean: 3.5, sku: 'a'}"), doc("{n: 1, mean: 1.0, sku: 'b'}")),
                things.aggregate(pipeline).into(new ArrayList<>()));
        assertEquals(doc("{n: 2}"), things.aggregate(List.of(doc("{$match: {who: 'ann'}}"), doc("{$count: 'n'}"))).first());
    }
}
