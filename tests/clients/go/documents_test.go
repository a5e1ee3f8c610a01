package clients

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func TestEveryTypeComesBackByteForByte(t *testing.T) {
	things := things(t)
	decimal, err := bson.ParseDecimal128("1.10")
	must(t, err)
	object, err := bson.ObjectIDFromHex("0123456789abcdef01234567")
	must(t, err)
	document, err := bson.Marshal(bson.D{
		{"_id", int32(1)}, {"double", 1.5}, {"infinity", math.Inf(-1)}, {"string", "文庫 \x00 é"},
		{"object", bson.D{{"a", bson.D{}}}}, {"array", bson.A{int32(1), "two", bson.A{}}},
		{"generic", bson.Binary{Data: []byte{0, 1, 255}}}, {"uuid", bson.Binary{Subtype: 4, Data: make([]byte, 16)}},
		{"object_id", object}, {"true", true}, {"false", false}, {"date", time.UnixMilli(-1_234_567)}, {"null", nil},
		{"regex", bson.Regex{Pattern: "^a.*b$", Options: "im"}}, {"code", bson.JavaScript("f()")},
		{"scoped", bson.CodeWithScope{Code: "x", Scope: bson.D{{"x", int32(1)}}}}, {"int32", int32(math.MinInt32)},
		{"timestamp", bson.Timestamp{T: 4_000_000_000, I: 7}}, {"int64", int64(math.MaxInt64)}, {"decimal", decimal},
		{"min", bson.MinKey{}}, {"max", bson.MaxKey{}}, {"symbol", bson.Symbol("s")}, {"undefined", bson.Undefined{}},
	})
	must(t, err)
	_, err = things.InsertOne(t.Context(), bson.Raw(document))
	must(t, err)
	found, err := things.FindOne(t.Context(), bson.D{{"_id", 1}}).Raw()
	must(t, err)
	if !bytes.Equal(found, document) {
		t.Errorf("found %v, expected %v", found, bson.Raw(document))
	}
	elements, err := found.Elements()
	must(t, err)
	for _, element := range elements {
		if element.Value().Type == bson.TypeRegex || element.Value().Type == bson.TypeUndefined {
			continue // these are no operands of equality
		}
		count, err := things.CountDocuments(t.Context(), bson.D{{element.Key(), element.Value()}})
		must(t, err)
		if count != 1 {
			t.Errorf("not found by %s", element)
		}
	}
}

func TestCreateReadUpdateDelete(t *testing.T) {
	things, ctx := things(t), t.Context()
	inserted, err := things.InsertMany(ctx, []any{bson.D{{"_id", 1}, {"n", 1}}, bson.D{{"_id", 2}}, bson.D{}})
	must(t, err)
	if _, is := inserted.InsertedIDs[2].(bson.ObjectID); !is {
		t.Errorf("an _id of type %T", inserted.InsertedIDs[2])
	}
	updated, err := things.UpdateMany(ctx, bson.D{}, bson.D{{"$inc", bson.D{{"n", 1}}}})
	must(t, err)
	equal(t, updated.ModifiedCount, 3)
	updated, err = things.UpdateOne(ctx, bson.D{{"_id", 1}}, bson.D{{"$set", bson.D{{"n", 2}}}})
	must(t, err)
	equal(t, updated.MatchedCount, 1)
	equal(t, updated.ModifiedCount, 0)
	_, err = things.ReplaceOne(ctx, bson.D{{"_id", 2}}, bson.D{{"replaced", true}})
	must(t, err)
	found, err := things.FindOne(ctx, bson.D{{"_id", 2}}).Raw()
	must(t, err)
	equal(t, relaxed(t, found), `{"_id":2,"replaced":true}`)

	updated, err = things.UpdateOne(ctx, bson.D{{"_id", 9}}, bson.D{{"$set", bson.D{{"n", 9}}}}, options.UpdateOne().SetUpsert(true))
	must(t, err)
	equal(t, updated.UpsertedID.(int32), 9)
	deleted, err := things.DeleteMany(ctx, bson.D{{"n", bson.D{{"$exists", true}}}})
	must(t, err)
	equal(t, deleted.DeletedCount, 3)
	equal(t, things.FindOne(ctx, bson.D{{"_id", 1}}).Err(), mongo.ErrNoDocuments)
}

func TestUpdateOperators(t *testing.T) {
	for _, test := range []struct{ before, update, after string }{
		{`{"a": 1}`, `{"$set": {"b.c": 1}, "$unset": {"a": ""}}`, `{"_id":1,"b":{"c":1}}`},
		{`{"a": 2147483647}`, `{"$inc": {"a": 1}}`, `{"_id":1,"a":2147483648}`},
		{`{"a": 3}`, `{"$mul": {"a": 2.5}}`, `{"_id":1,"a":7.5}`},
		{`{"a": 3, "b": 3}`, `{"$min": {"a": 2}, "$max": {"b": 4}}`, `{"_id":1,"a":2,"b":4}`},
		{`{"a": 1}`, `{"$rename": {"a": "z"}}`, `{"_id":1,"z":1}`},
		{`{"a": [5, 1]}`, `{"$push": {"a": {"$each": [3, 4], "$sort": 1, "$slice": -3}}}`, `{"_id":1,"a":[3,4,5]}`},
		{`{"a": [1, 5, 2]}`, `{"$pull": {"a": {"$gt": 1}}}`, `{"_id":1,"a":[1]}`},
		{`{"a": [1, 2, 3]}`, `{"$pop": {"a": -1}}`, `{"_id":1,"a":[2,3]}`},
		{`{"a": [1]}`, `{"$addToSet": {"a": {"$each": [1, 2]}}}`, `{"_id":1,"a":[1,2]}`},
		{`{"a": 12}`, `{"$bit": {"a": {"and": 10}}}`, `{"_id":1,"a":8}`},
	} {
		t.Run(test.update, func(t *testing.T) {
			things := things(t)
			var before, update bson.D
			must(t, bson.UnmarshalExtJSON([]byte(test.before), false, &before))
			must(t, bson.UnmarshalExtJSON([]byte(test.update), false, &update))
			_, err := things.InsertOne(t.Context(), append(bson.D{{"_id", 1}}, before...))
			must(t, err)
			_, err = things.UpdateOne(t.Context(), bson.D{{"_id", 1}}, update)
			must(t, err)
			found, err := things.FindOne(t.Context(), bson.D{}).Raw()
			must(t, err)
			equal(t, relaxed(t, found), test.after)
		})
	}
}

func TestArrayFilters(t *testing.T) {
	things, ctx := things(t), t.Context()
	_, err := things.InsertOne(ctx, bson.D{{"_id", 1}, {"rows", bson.A{bson.D{{"n", 1}}, bson.D{{"n", 5}}}}})
	must(t, err)
	_, err = things.UpdateOne(ctx, bson.D{{"_id", 1}}, bson.D{{"$inc", bson.D{{"rows.$[big].n", 100}}}},
		options.UpdateOne().SetArrayFilters([]any{bson.D{{"big.n", bson.D{{"$gte", 3}}}}}))
	must(t, err)
	_, err = things.UpdateOne(ctx, bson.D{{"rows.n", 1}}, bson.D{{"$set", bson.D{{"rows.$.n", 10}}}})
	must(t, err)
	found, err := things.FindOne(ctx, bson.D{}).Raw()
	must(t, err)
	equal(t, relaxed(t, found), `{"_id":1,"rows":[{"n":10},{"n":105}]}`)
}

func TestFindAndModify(t *testing.T) {
	things, ctx := things(t), t.Context()
	_, err := things.InsertMany(ctx, []any{bson.D{{"_id", 1}, {"n", 1}}, bson.D{{"_id", 2}, {"n", 2}}, bson.D{{"_id", 3}, {"n", 3}}})
	must(t, err)
	increment := bson.D{{"$inc", bson.D{{"n", 10}}}}
	before, err := things.FindOneAndUpdate(ctx, bson.D{{"_id", 1}}, increment).Raw()
	must(t, err)
	equal(t, relaxed(t, before), `{"_id":1,"n":1}`)
	after, err := things.FindOneAndUpdate(ctx, bson.D{{"_id", 1}}, increment,
		options.FindOneAndUpdate().SetReturnDocument(options.After)).Raw()
	must(t, err)
	equal(t, relaxed(t, after), `{"_id":1,"n":21}`)
	upserted, err := things.FindOneAndReplace(ctx, bson.D{{"_id", 9}}, bson.D{{"m", 1}},
		options.FindOneAndReplace().SetUpsert(true).SetReturnDocument(options.After)).Raw()
	must(t, err)
	equal(t, relaxed(t, upserted), `{"_id":9,"m":1}`)
	deleted, err := things.FindOneAndDelete(ctx, bson.D{{"_id", bson.D{{"$lt", 9}}}},
		options.FindOneAndDelete().SetSort(bson.D{{"_id", -1}}).SetProjection(bson.D{{"_id", 0}})).Raw()
	must(t, err)
	equal(t, relaxed(t, deleted), `{"n":3}`)
	equal(t, things.FindOneAndDelete(ctx, bson.D{{"_id", 99}}).Err(), mongo.ErrNoDocuments)
}

func TestSortSkipLimitProjectionCountDistinct(t *testing.T) {
	things, ctx := things(t), t.Context()
	for i := range 10 {
		_, err := things.InsertOne(ctx, bson.D{{"_id", i}, {"a", i % 3}, {"list", bson.A{i, i + 1}}})
		must(t, err)
	}
	page, err := things.Find(ctx, bson.D{}, options.Find().SetSort(bson.D{{"a", -1}, {"_id", 1}}).
		SetSkip(2).SetLimit(3).SetProjection(bson.D{{"a", 1}}))
	expected := []string{`{"_id":8,"a":2}`, `{"_id":1,"a":1}`, `{"_id":4,"a":1}`}
	if found := all(t, page, err); !slices.Equal(found, expected) {
		t.Errorf("found %v, expected %v", found, expected)
	}
	sliced, err := things.Find(ctx, bson.D{{"_id", 5}}, options.Find().SetProjection(bson.D{{"list", bson.D{{"$slice", -1}}}, {"a", 0}}))
	equal(t, fmt.Sprint(all(t, sliced, err)), `[{"_id":5,"list":[6]}]`)

	count, err := things.CountDocuments(ctx, bson.D{{"a", 1}})
	must(t, err)
	equal(t, count, 3)
	count, err = things.EstimatedDocumentCount(ctx)
	must(t, err)
	equal(t, count, 10)
	var distinct []int
	must(t, things.Distinct(ctx, "list", bson.D{{"_id", bson.D{{"$lt", 2}}}}).Decode(&distinct))
	slices.Sort(distinct)
	equal(t, fmt.Sprint(distinct), "[0 1 2]")
}

func TestAggregation(t *testing.T) {
	things, ctx := things(t), t.Context()
	_, err := things.InsertMany(ctx, []any{
		bson.D{{"_id", 1}, {"who", "ann"}, {"lines", bson.A{bson.D{{"sku", "a"}, {"n", 2}}, bson.D{{"sku", "b"}, {"n", 1}}}}},
		bson.D{{"_id", 2}, {"who", "bob"}, {"lines", bson.A{bson.D{{"sku", "a"}, {"n", 5}}}}},
		bson.D{{"_id", 3}, {"who", "ann"}, {"lines", bson.A{}}},
	})
	must(t, err)
	cursor, err := things.Aggregate(ctx, mongo.Pipeline{
		{{"$match", bson.D{{"_id", bson.D{{"$lte", 3}}}}}},
		{{"$unwind", "$lines"}},
		{{"$group", bson.D{{"_id", "$lines.sku"}, {"n", bson.D{{"$sum", "$lines.n"}}}, {"mean", bson.D{{"$avg", "$lines.n"}}}}}},
		{{"$sort", bson.D{{"n", -1}}}},
		{{"$project", bson.D{{"_id", 0}, {"sku", "$_id"}, {"n", 1}, {"mean", 1}}}},
	})
	equal(t, fmt.Sprint(all(t, cursor, err)), `[{"n":7,"mean":3.5,"sku":"a"} {"n":1,"mean":1.0,"sku":"b"}]`)
	cursor, err = things.Aggregate(ctx, mongo.Pipeline{{{"$match", bson.D{{"who", "ann"}}}}, {{"$count", "n"}}})
	equal(t, fmt.Sprint(all(t, cursor, err)), `[{"n":2}]`)
}
