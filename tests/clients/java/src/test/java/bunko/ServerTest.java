package bunko;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.mongodb.ClientSessionOptions;
import com.mongodb.MongoBulkWriteException;
import com.mongodb.MongoCompressor;
import com.mongodb.MongoException;
import com.mongodb.MongoWriteException;
import com.mongodb.WriteConcern;
import com.mongodb.client.MongoClients;
import com.mongodb.client.model.BulkWriteOptions;
import com.mongodb.client.model.DeleteOneModel;
import com.mongodb.client.model.IndexModel;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.InsertOneModel;
import com.mongodb.client.model.UpdateOneModel;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.bson.BsonDocument;
import org.bson.BsonInt32;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ServerTest extends Suite {
    private static List<BsonDocument> identifiers(int count) {
        return IntStream.range(0, count).mapToObj(i -> new BsonDocument("_id", new BsonInt32(i))).toList();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {"true | {_id: 1}", "false | {_id: 2, a: 1}"})
    void bulkWriteWithDuplicates(boolean ordered, String kept) {
        var writes = List.of(
                new InsertOneModel<>(doc("{_id: 1}")), new InsertOneModel<>(doc("{_id: 1, again: 1}")),
                new InsertOneModel<>(doc("{_id: 2}")),
                new UpdateOneModel<BsonDocument>(doc("{_id: 2}"), doc("{$set: {a: 1}}")),
                new DeleteOneModel<BsonDocument>(doc("{_id: 1}")));
        var refusal = assertThrows(MongoBulkWriteException.class,
                () -> things.bulkWrite(writes, new BulkWriteOptions().ordered(ordered)));
        assertEquals(1, refusal.getWriteErrors().size());
        assertEquals(11000, refusal.getWriteErrors().get(0).getCode());
        assertEquals(1, refusal.getWriteErrors().get(0).getIndex());
        assertEquals(List.of(doc(kept)), things.find().into(new ArrayList<>()));
    }

    @Test
    void duplicateKeyNamesTheKey() {
        things.createIndex(doc("{a: 1, b: -1}"), new IndexOptions().unique(true));
        things.insertOne(doc("{_id: 1, a: 'x', b: 2}"));
        var refusal = assertThrows(MongoWriteException.class, () -> things.insertOne(doc("{_id: 2, a: 'x', b: 2}")));
        assertEquals(11000, refusal.getError().getCode());
        // The driver keeps no keyPattern; the command's reply has it.
        var reply = database.runCommand(doc("{insert: 'things', documents: [{_id: 3, a: 'x', b: 2}]}"), BsonDocument.class);
        var error = reply.getArray("writeErrors").get(0).asDocument();
        assertEquals(doc("{a: 1, b: -1}"), error.getDocument("keyPattern"));
        assertEquals(doc("{a: 'x', b: 2}"), error.getDocument("keyValue"));
    }

    @Test
    void cursorOver100000Documents() {
        things.insertMany(identifiers(100_000));
        int next = 0;
        for (BsonDocument document : things.find()) {
            assertEquals(next++, document.getInt32("_id").getValue());
        }
        assertEquals(100_000, next);
    }

    @Test
    void killedCursorIsGone() {
        things.insertMany(identifiers(10));
        try (var session = client.startSession()) {
            var reply = database.runCommand(session, doc("{find: 'things', batchSize: 2}"), BsonDocument.class);
            var cursor = reply.getDocument("cursor").getInt64("id");
            database.runCommand(session, doc("{killCursors: 'things', cursors: [{$numberLong: '%d'}]}".formatted(cursor.getValue())));
            refused(43, () -> database.runCommand(session, new BsonDocument("getMore", cursor).append("collection", new org.bson.BsonString("things"))));
        }
    }

    @Test
    void indexes() {
        things.insertMany(IntStream.range(0, 200).mapToObj(i -> doc("{_id: %d, a: %d, b: %d}".formatted(i, i % 10, i))).toList());
        assertEquals(List.of("a_1", "b_-1", "a_1_b_1"), things.createIndexes(List.of(
                new IndexModel(doc("{a: 1}")), new IndexModel(doc("{b: -1}"), new IndexOptions().unique(true)),
                new IndexModel(doc("{a: 1, b: 1}")))));
        var listed = things.listIndexes(BsonDocument.class).into(new ArrayList<>());
        assertEquals(List.of("_id_", "a_1", "b_-1", "a_1_b_1"), listed.stream().map(index -> index.getString("name").getValue()).toList());
        assertTrue(listed.get(2).getBoolean("unique").getValue());
        assertFalse(listed.get(1).containsKey("unique"));

        assertEquals("a_1_b_1", winningIndex("{a: 3, b: {$gt: 150}}", null));
        assertEquals("a_1", winningIndex("{a: 3}", "a_1"));
        things.dropIndex("a_1");
        refused(2, () -> things.find().hintString("a_1").first());
        refused(27, () -> database.runCommand(doc("{dropIndexes: 'things', index: 'a_1'}")));
    }

    private String winningIndex(String filter, String hint) {
        var explained = things.find(doc(filter)).hintString(hint).explain(BsonDocument.class);
        var scan = explained.getDocument("queryPlanner").getDocument("winningPlan").getDocument("inputStage");
        assertEquals("IXSCAN", scan.getString("stage").getValue());
        return scan.getString("indexName").getValue();
    }

    @Test
    void errorCodes() {
        var admin = client.getDatabase("admin");
        refused(26, () -> database.runCommand(doc("{listIndexes: 'missing'}")));
        refused(26, () -> admin.runCommand(doc("{renameCollection: 'clients_java.missing', to: 'clients_java.x'}")));
        database.createCollection("one");
        database.createCollection("two");
        refused(48, () -> admin.runCommand(doc("{renameCollection: 'clients_java.one', to: 'clients_java.two'}")));
        refused(59, () -> database.runCommand(doc("{noSuchCommand: 1}")));
        refused(14, () -> database.runCommand(doc("{find: 'one', filter: 5}")));
        refused(40415, () -> database.runCommand(doc("{find: 'one', bogus: 5}")));
        refused(9, () -> things.updateOne(doc("{}"), doc("{$bogus: {a: 1}}")));
    }

    @ParameterizedTest
    @ValueSource(strings = {"zlib", "snappy", "zstd"})
    void compression(String name) {
        var compressor = switch (name) {
            case "zlib" -> MongoCompressor.createZlibCompressor();
            case "snappy" -> MongoCompressor.createSnappyCompressor();
            default -> MongoCompressor.createZstdCompressor();
        };
        try (var compressed = MongoClients.create(settings().compressorList(List.of(compressor)).build())) {
            var compressedThings = compressed.getDatabase(DATABASE).getCollection("things", BsonDocument.class);
            compressedThings.insertMany(identifiers(5_000));
            assertEquals(5_000, compressedThings.find().into(new ArrayList<>()).size());
        }
        var hello = database.runCommand(doc("{hello: 1, compression: ['%s']}".formatted(name)), BsonDocument.class);
        assertEquals(name, hello.getArray("compression").get(0).asString().getValue());
    }

    @Test
    void writeConcerns() throws InterruptedException {
        int i = 0;
        for (var concern : List.of(WriteConcern.W1, WriteConcern.JOURNALED, WriteConcern.MAJORITY, WriteConcern.UNACKNOWLEDGED)) {
            var result = things.withWriteConcern(concern).insertOne(new BsonDocument("_id", new BsonInt32(i++)));
            assertEquals(concern != WriteConcern.UNACKNOWLEDGED, result.wasAcknowledged());
        }
        for (int attempt = 0; attempt < 500 && things.countDocuments() < 4; attempt++) {
            Thread.sleep(10);
        }
        assertEquals(4, things.countDocuments());
        var refusal = assertThrows(MongoException.class, () -> things.withWriteConcern(WriteConcern.W2).insertOne(doc("{_id: 9}")));
        // BadValue from a server that stands alone, UnsatisfiableWriteConcern from a replica set.
        assertTrue(List.of(2, 100).contains(refusal.getCode()), refusal.toString());
    }

    @Test
    void sessionReadsItsOwnWrites() {
        try (var session = client.startSession(ClientSessionOptions.builder().causallyConsistent(true).build())) {
            things.insertOne(session, doc("{_id: 1}"));
            assertEquals(doc("{_id: 1}"), things.find(session).first());
        }
    }
}
