package bunko;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoException;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import org.bson.BsonDocument;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.function.Executable;

/** Gives every test an empty database on the server that BUNKO_URI names. */
abstract class Suite {
    static final String DATABASE = "clients_java";

    MongoClient client;
    MongoDatabase database;
    MongoCollection<BsonDocument> things;

    static MongoClientSettings.Builder settings() {
        return MongoClientSettings.builder().applyConnectionString(new ConnectionString(System.getenv("BUNKO_URI")));
    }

    static BsonDocument doc(String json) {
        return BsonDocument.parse(json);
    }

    /** Asserts that the server refuses with this code. */
    static MongoException refused(int code, Executable act) {
        MongoException refusal = assertThrows(MongoException.class, act);
        assertEquals(code, refusal.getCode(), refusal.getMessage());
        return refusal;
    }

    @BeforeEach
    void connect() {
        client = MongoClients.create(settings().build());
        database = client.getDatabase(DATABASE);
        database.drop();
        things = database.getCollection("things", BsonDocument.class);
    }

    @AfterEach
    void disconnect() {
        database.drop();
        client.close();
    }
}
