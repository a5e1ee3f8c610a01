package bunko;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoCredential;
import com.mongodb.MongoException;
import com.mongodb.MongoSecurityException;
import com.mongodb.MongoTimeoutException;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.bson.BsonDocument;
import org.bson.BsonInt32;
import org.bson.BsonString;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** TLS, passwords and certificates, on the server that BUNKO_TLS_URI names, with the certificates of BUNKO_TLS_CERTIFICATES. */
class TlsTest {
    /** As RFC 2253 writes it. */
    private static final String ANN = "CN=ann,OU=clients\\, tests,O=Bunko";
    private static final String DATABASE = "clients_java_tls";

    @BeforeEach
    void thereIsAServer() {
        assumeTrue(System.getenv("BUNKO_TLS_URI") != null, "BUNKO_TLS_URI names no server");
    }

    private static String pem(String name) throws Exception {
        return Files.readString(Path.of(System.getenv("BUNKO_TLS_CERTIFICATES"), name + ".pem"));
    }

    private static Certificate certificate(String pem) throws Exception {
        String text = pem.substring(pem.indexOf("-----BEGIN CERTIFICATE-----"));
        try (InputStream in = new ByteArrayInputStream(text.getBytes())) {
            return CertificateFactory.getInstance("X.509").generateCertificate(in);
        }
    }

    /** Trusts an authority, and shows a certificate where one is named. */
    private static SSLContext context(String authority, String certificate) throws Exception {
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry("ca", certificate(pem(authority)));
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        KeyStore own = KeyStore.getInstance("PKCS12");
        own.load(null, null);
        if (certificate != null) {
            String pem = pem(certificate);
            String key = pem.substring(pem.indexOf("-----BEGIN PRIVATE KEY-----") + 27, pem.indexOf("-----END PRIVATE KEY-----"));
            var decoded = new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(key));
            var secret = KeyFactory.getInstance("RSA").generatePrivate(decoded);
            own.setKeyEntry("own", secret, new char[0], new Certificate[] {certificate(pem)});
        }
        keys.init(own, new char[0]);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        return context;
    }

    private static MongoClient connect(String authority, String certificate, MongoCredential credential) throws Exception {
        SSLContext context = authority == null ? null : context(authority, certificate);
        var settings = MongoClientSettings.builder()
                .applyConnectionString(new ConnectionString(System.getenv("BUNKO_TLS_URI")))
                .applyToClusterSettings(cluster -> cluster.serverSelectionTimeout(3, TimeUnit.SECONDS));
        if (context != null) {
            settings.applyToSslSettings(ssl -> ssl.enabled(true).context(context));
        } else {
            settings.applyToSslSettings(ssl -> ssl.enabled(false));
        }
        if (credential != null) {
            settings.credential(credential);
        }
        return MongoClients.create(settings.build());
    }

    private static MongoCredential scram(String mechanism, String password) {
        return mechanism.equals("SCRAM-SHA-1")
                ? MongoCredential.createScramSha1Credential("root", "admin", password.toCharArray())
                : MongoCredential.createScramSha256Credential("root", "admin", password.toCharArray());
    }

    private static BsonDocument run(MongoClient client, String database, BsonDocument command) {
        return client.getDatabase(database).runCommand(command, BsonDocument.class);
    }

    private static final BsonDocument PING = new BsonDocument("ping", new BsonInt32(1));

    /** Refused as the driver tells it: the server's code is that of the cause. */
    private static void refusedLogin(MongoClient client) {
        var refusal = assertThrows(MongoSecurityException.class, () -> run(client, DATABASE, PING));
        assertEquals(18, ((MongoException) refusal.getCause()).getCode());
    }

    @ParameterizedTest
    @ValueSource(strings = {"SCRAM-SHA-1", "SCRAM-SHA-256"})
    void passwordsOverTls(String mechanism) throws Exception {
        try (var client = connect("ca", null, scram(mechanism, "secret"))) {
            var things = client.getDatabase(DATABASE).getCollection("things", BsonDocument.class);
            var pad = new BsonString("x".repeat(10_000));
            things.insertMany(IntStream.range(0, 500)
                    .mapToObj(i -> new BsonDocument("_id", new BsonInt32(i)).append("pad", pad)).toList());
            int found = 0;
            for (var thing : things.find().batchSize(50)) {
                found++;
                assertEquals(pad, thing.get("pad"));
            }
            assertEquals(500, found);
            client.getDatabase(DATABASE).drop();
        }
        try (var client = connect("ca", null, scram(mechanism, "wrong"))) {
            refusedLogin(client);
        }
    }

    @Test
    void whoIsNotTrustedIsNotSpokenWith() throws Exception {
        var credential = scram("SCRAM-SHA-256", "secret");
        for (var client : List.of(connect("other-ca", null, credential), connect(null, null, credential))) {
            try (client) {
                assertThrows(MongoTimeoutException.class, () -> run(client, DATABASE, PING));
            }
        }
    }

    @Test
    void loginsByCertificate() throws Exception {
        try (var root = connect("ca", null, scram("SCRAM-SHA-256", "secret"))) {
            var roles = "[{role: 'readWrite', db: '" + DATABASE + "'}]";
            run(root, "$external", BsonDocument.parse("{createUser: '', roles: " + roles + "}")
                    .append("createUser", new BsonString(ANN)));
            try (var client = connect("ca", "ann", MongoCredential.createMongoX509Credential())) {
                var status = run(client, "admin", BsonDocument.parse("{connectionStatus: 1}"));
                var user = status.getDocument("authInfo").getArray("authenticatedUsers").get(0).asDocument();
                assertEquals(ANN, user.getString("user").getValue());
                client.getDatabase(DATABASE).getCollection("things").insertOne(new org.bson.Document("_id", 1));
                var refusal = assertThrows(MongoException.class,
                        () -> run(client, "admin", BsonDocument.parse("{serverStatus: 1}")));
                assertEquals(13, refusal.getCode());
                assertFalse(refusal.getMessage().isEmpty());
            } finally {
                run(root, "$external", new BsonDocument("dropUser", new BsonString(ANN)));
                root.getDatabase(DATABASE).drop();
            }
            try (var client = connect("ca", "nobody", MongoCredential.createMongoX509Credential())) {
                refusedLogin(client);
            }
        }
    }
}
