import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.h2.H2Backend;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

/** Starts mongo-java-server on a free port and prints its URI: Serve memory, or Serve h2. Its own main methods take
 * port 27017. */
class Serve {
    public static void main(String[] arguments) {
        var backend = switch (arguments[0]) {
            case "memory" -> new MemoryBackend();
            case "h2" -> H2Backend.inMemory();
            default -> throw new IllegalArgumentException("no backend is called " + arguments[0]);
        };
        System.out.println(new MongoServer(backend).bindAndGetConnectionString());
    }
}
