package clients

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

func identifiers(from, to int) []any {
	documents := make([]any, 0, to-from)
	for i := from; i < to; i++ {
		documents = append(documents, bson.D{{"_id", i}})
	}
	return documents
}

func TestBulkWriteWithDuplicates(t *testing.T) {
	models := []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(bson.D{{"_id", 1}}),
		mongo.NewInsertOneModel().SetDocument(bson.D{{"_id", 1}, {"again", 1}}),
		mongo.NewInsertOneModel().SetDocument(bson.D{{"_id", 2}}),
		mongo.NewUpdateOneModel().SetFilter(bson.D{{"_id", 2}}).SetUpdate(bson.D{{"$set", bson.D{{"a", 1}}}}),
		mongo.NewDeleteOneModel().SetFilter(bson.D{{"_id", 1}}),
	}
	for _, test := range []struct {
		ordered bool
		kept    string
	}{{true, `[{"_id":1}]`}, {false, `[{"_id":2,"a":1}]`}} {
		t.Run(fmt.Sprintf("ordered %v", test.ordered), func(t *testing.T) {
			things := things(t)
			_, err := things.BulkWrite(t.Context(), models, options.BulkWrite().SetOrdered(test.ordered))
			var failure mongo.BulkWriteException
			if !errors.As(err, &failure) || len(failure.WriteErrors) != 1 {
				t.Fatalf("not one write error: %v", err)
			}
			equal(t, failure.WriteErrors[0].Code, 11000)
			equal(t, failure.WriteErrors[0].Index, 1)
			kept, err := things.Find(t.Context(), bson.D{})
			equal(t, fmt.Sprint(all(t, kept, err)), test.kept)
		})
	}
}

func TestDuplicateKeyNamesTheKey(t *testing.T) {
	things, ctx := things(t), t.Context()
	_, err := things.Indexes().CreateOne(ctx, mongo.IndexModel{
		Keys: bson.D{{"a", 1}, {"b", -1}}, Options: options.Index().SetUnique(true),
	})
	must(t, err)
	_, err = things.InsertOne(ctx, bson.D{{"_id", 1}, {"a", "x"}, {"b", 2}})
	must(t, err)
	_, err = things.InsertOne(ctx, bson.D{{"_id", 2}, {"a", "x"}, {"b", 2}})
	var failure mongo.WriteException
	if !mongo.IsDuplicateKeyError(err) || !errors.As(err, &failure) {
		t.Fatalf("not a duplicate key: %v", err)
	}
	var facts struct {
		KeyPattern bson.D `bson:"keyPattern"`
		KeyValue   bson.D `bson:"keyValue"`
	}
	must(t, bson.Unmarshal(failure.WriteErrors[0].Raw, &facts))
	equal(t, relaxed(t, facts.KeyPattern), `{"a":1,"b":-1}`)
	equal(t, relaxed(t, facts.KeyValue), `{"a":"x","b":2}`)
}

func TestCursorOver100000Documents(t *testing.T) {
	things, ctx := things(t), t.Context()
	_, err := things.InsertMany(ctx, identifiers(0, 100_000))
	must(t, err)
	cursor, err := things.Find(ctx, bson.D{})
	must(t, err)
	next := int32(0)
	for cursor.Next(ctx) {
		if found := cursor.Current.Lookup("_id").Int32(); found != next {
			t.Fatalf("found %d, expected %d", found, next)
		}
		next++
	}
	must(t, cursor.Err())
	equal(t, next, 100_000)
}

func TestKilledCursorIsGone(t *testing.T) {
	things, ctx := things(t), t.Context()
	_, err := things.InsertMany(ctx, identifiers(0, 10))
	must(t, err)
	session, err := things.Database().Client().StartSession()
	must(t, err)
	defer session.EndSession(ctx)
	ctx = mongo.NewSessionContext(ctx, session)
	reply, err := things.Database().RunCommand(ctx, bson.D{{"find", "things"}, {"batchSize", 2}}).Raw()
	must(t, err)
	cursor := reply.Lookup("cursor", "id").Int64()
	must(t, things.Database().RunCommand(ctx, bson.D{{"killCursors", "things"}, {"cursors", bson.A{cursor}}}).Err())
	err = things.Database().RunCommand(ctx, bson.D{{"getMore", cursor}, {"collection", "things"}}).Err()
	equal(t, code(t, err), 43)
}

func TestIndexes(t *testing.T) {
	things, ctx := things(t), t.Context()
	documents := make([]any, 200)
	for i := range documents {
		documents[i] = bson.D{{"_id", i}, {"a", i % 10}, {"b", i}}
	}
	_, err := things.InsertMany(ctx, documents)
	must(t, err)
	names, err := things.Indexes().CreateMany(ctx, []mongo.IndexModel{
		{Keys: bson.D{{"a", 1}}}, {Keys: bson.D{{"b", -1}}, Options: options.Index().SetUnique(true)}, {Keys: bson.D{{"a", 1}, {"b", 1}}},
	})
	must(t, err)
	equal(t, fmt.Sprint(names), "[a_1 b_-1 a_1_b_1]")
	specifications, err := things.Indexes().ListSpecifications(ctx)
	must(t, err)
	equal(t, len(specifications), 4)
	equal(t, specifications[0].Name, "_id_")
	equal(t, *specifications[2].Unique, true)

	equal(t, winningIndex(t, things, bson.D{{"a", 3}, {"b", bson.D{{"$gt", 150}}}}, nil), "a_1_b_1")
	equal(t, winningIndex(t, things, bson.D{{"a", 3}}, "a_1"), "a_1")
	must(t, things.Indexes().DropOne(ctx, "a_1"))
	_, err = things.Find(ctx, bson.D{}, options.Find().SetHint("a_1"))
	equal(t, code(t, err), 2)
	equal(t, code(t, things.Indexes().DropOne(ctx, "a_1")), 27)
}

// winningIndex is the index that explain says the query will use.
func winningIndex(t *testing.T, things *mongo.Collection, filter bson.D, hint any) string {
	t.Helper()
	find := bson.D{{"find", things.Name()}, {"filter", filter}}
	if hint != nil {
		find = append(find, bson.E{"hint", hint})
	}
	reply, err := things.Database().RunCommand(t.Context(), bson.D{{"explain", find}, {"verbosity", "queryPlanner"}}).Raw()
	must(t, err)
	scan := reply.Lookup("queryPlanner", "winningPlan", "inputStage").Document()
	equal(t, scan.Lookup("stage").StringValue(), "IXSCAN")
	return scan.Lookup("indexName").StringValue()
}

func TestErrorCodes(t *testing.T) {
	database, ctx := database(t), t.Context()
	admin := database.Client().Database("admin")
	run := func(database *mongo.Database, command bson.D) int {
		t.Helper()
		return code(t, database.RunCommand(ctx, command).Err())
	}
	equal(t, run(database, bson.D{{"listIndexes", "missing"}}), 26)
	equal(t, run(admin, bson.D{{"renameCollection", databaseName + ".missing"}, {"to", databaseName + ".x"}}), 26)
	must(t, database.CreateCollection(ctx, "one"))
	must(t, database.CreateCollection(ctx, "two"))
	equal(t, run(admin, bson.D{{"renameCollection", databaseName + ".one"}, {"to", databaseName + ".two"}}), 48)
	equal(t, run(database, bson.D{{"noSuchCommand", 1}}), 59)
	equal(t, run(database, bson.D{{"find", "one"}, {"filter", 5}}), 14)
	equal(t, run(database, bson.D{{"find", "one"}, {"bogus", 5}}), 40415)
	_, err := database.Collection("one").UpdateOne(ctx, bson.D{}, bson.D{{"$bogus", bson.D{{"a", 1}}}})
	equal(t, code(t, err), 9)
}

func TestCompression(t *testing.T) {
	for _, compressor := range []string{"zlib", "snappy", "zstd"} {
		t.Run(compressor, func(t *testing.T) {
			database := database(t, options.Client().SetCompressors([]string{compressor}))
			_, err := database.Collection("things").InsertMany(t.Context(), identifiers(0, 5_000))
			must(t, err)
			count, err := database.Collection("things").CountDocuments(t.Context(), bson.D{})
			must(t, err)
			equal(t, count, 5_000)
			hello, err := database.RunCommand(t.Context(), bson.D{{"hello", 1}, {"compression", bson.A{compressor}}}).Raw()
			must(t, err)
			equal(t, hello.Lookup("compression", "0").StringValue(), compressor)
		})
	}
}

func TestWriteConcerns(t *testing.T) {
	database, ctx := database(t), t.Context()
	journaled := true
	for i, concern := range []*writeconcern.WriteConcern{writeconcern.W1(), {Journal: &journaled}, writeconcern.Majority()} {
		_, err := database.Collection("things", options.Collection().SetWriteConcern(concern)).InsertOne(ctx, bson.D{{"_id", i}})
		must(t, err)
	}
	unacknowledged := database.Collection("things", options.Collection().SetWriteConcern(writeconcern.Unacknowledged()))
	_, err := unacknowledged.InsertOne(ctx, bson.D{{"_id", 10}})
	must(t, err)
	deadline := time.Now().Add(5 * time.Second)
	for database.Collection("things").FindOne(ctx, bson.D{{"_id", 10}}).Err() != nil && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	count, err := database.Collection("things").CountDocuments(ctx, bson.D{})
	must(t, err)
	equal(t, count, 4)

	two := database.Collection("things", options.Collection().SetWriteConcern(&writeconcern.WriteConcern{W: 2}))
	_, err = two.InsertOne(ctx, bson.D{})
	// BadValue from a server that stands alone, UnsatisfiableWriteConcern from a replica set.
	if refused := code(t, err); !slices.Contains([]int{2, 100}, refused) {
		t.Errorf("refused with %d", refused)
	}
}

func TestSessionReadsItsOwnWrites(t *testing.T) {
	things := things(t)
	session, err := things.Database().Client().StartSession(options.Session().SetCausalConsistency(true))
	must(t, err)
	defer session.EndSession(t.Context())
	ctx := mongo.NewSessionContext(t.Context(), session)
	_, err = things.InsertOne(ctx, bson.D{{"_id", 1}})
	must(t, err)
	must(t, things.FindOne(ctx, bson.D{{"_id", 1}}).Err())
}
