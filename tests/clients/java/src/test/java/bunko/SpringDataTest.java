package bunko;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.springframework.data.mongodb.core.aggregation.Aggregation.addFields;
import static org.springframework.data.mongodb.core.aggregation.Aggregation.group;
import static org.springframework.data.mongodb.core.aggregation.Aggregation.limit;
import static org.springframework.data.mongodb.core.aggregation.Aggregation.lookup;
import static org.springframework.data.mongodb.core.aggregation.Aggregation.match;
import static org.springframework.data.mongodb.core.aggregation.Aggregation.newAggregation;
import static org.springframework.data.mongodb.core.aggregation.Aggregation.project;
import static org.springframework.data.mongodb.core.aggregation.Aggregation.skip;
import static org.springframework.data.mongodb.core.aggregation.Aggregation.sort;
import static org.springframework.data.mongodb.core.aggregation.Aggregation.unwind;
import static org.springframework.data.mongodb.core.query.Criteria.where;
import static org.springframework.data.mongodb.core.query.Query.query;

import java.util.List;
import java.util.stream.IntStream;
import org.bson.Document;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.dao.OptimisticLockingFailureException;
import org.springframework.data.annotation.Id;
import org.springframework.data.annotation.Version;
import org.springframework.data.domain.Sort;
import org.springframework.data.geo.Distance;
import org.springframework.data.geo.Metrics;
import org.springframework.data.geo.Point;
import org.springframework.data.mongodb.core.FindAndModifyOptions;
import org.springframework.data.mongodb.core.MongoTemplate;
import org.springframework.data.mongodb.core.index.GeoSpatialIndexType;
import org.springframework.data.mongodb.core.index.GeospatialIndex;
import org.springframework.data.mongodb.core.index.Index;
import org.springframework.data.mongodb.core.query.NearQuery;
import org.springframework.data.mongodb.core.query.Update;

/** What Spring Data's template sends: mapped documents with versions, updates, places and pipelines. */
class SpringDataTest extends Suite {
    record Line(String product, int pieces, double price) {}

    static class Order {
        @Id String id;
        @Version Long version;
        String customer;
        List<Line> lines;

        Order(String id, String customer, List<Line> lines) {
            this.id = id;
            this.customer = customer;
            this.lines = lines;
        }
    }

    record Customer(@Id String id, String name, Point place) {}

    private MongoTemplate template;

    @BeforeEach
    void openTemplate() {
        template = new MongoTemplate(client, database.getName());
    }

    @Test
    void documentsAndVersions() {
        template.indexOps(Order.class).createIndex(new Index("customer", Sort.Direction.ASC).unique());
        Order order = template.insert(new Order("1", "Abe", List.of(new Line("pen", 2, 1.5))));
        assertThrows(DuplicateKeyException.class, () -> template.insert(new Order("2", "Abe", List.of())));
        Order stale = template.findById("1", Order.class);
        order.customer = "Oe";
        template.save(order);
        assertThrows(OptimisticLockingFailureException.class, () -> template.save(stale));

        var pushed = new Update().push("lines").each(new Line("ink", 1, 9.0), new Line("pad", 5, 0.5)).inc("version", 1);
        assertEquals(1, template.updateFirst(query(where("customer").is("Oe")), pushed, Order.class).getModifiedCount());
        var filtered = new Update().set("lines.$[cheap].price", 2.0).filterArray(where("cheap.price").lt(1));
        var after = FindAndModifyOptions.options().returnNew(true);
        Order changed = template.findAndModify(query(where("lines.product").is("pad")), filtered, after, Order.class);
        assertEquals(List.of(1.5, 9.0, 2.0), changed.lines.stream().map(Line::price).toList());
        assertEquals(List.of("ink", "pad", "pen"), template.query(Order.class).distinct("lines.product").as(String.class).all()
                .stream().sorted().toList());
        assertEquals(1, template.remove(query(where("lines.pieces").gte(5)), Order.class).getDeletedCount());
    }

    @Test
    void places() {
        template.indexOps(Customer.class).createIndex(new GeospatialIndex("place").typed(GeoSpatialIndexType.GEO_2DSPHERE));
        template.insertAll(List.of(
                new Customer("1", "Tokyo", new Point(139.7, 35.7)), new Customer("2", "Kyoto", new Point(135.8, 35.0))));
        var near = template.query(Customer.class).near(
                NearQuery.near(139, 35).maxDistance(new Distance(200, Metrics.KILOMETERS)).spherical(true));
        assertEquals(List.of("Tokyo"), near.all().getContent().stream().map(found -> found.getContent().name()).toList());
    }

    @Test
    void aPipelineOfTenStages() {
        template.insertAll(List.of(new Customer("0", "even", new Point(0, 0)), new Customer("1", "odd", new Point(1, 1))));
        template.insertAll(IntStream.range(0, 40)
                .mapToObj(n -> new Order("o" + n, "" + n % 2, List.of(new Line("p" + n % 3, n, 2), new Line("q", 1, n))))
                .toList());
        var pipeline = newAggregation(Order.class,
                match(where("_id").ne("o0")),
                lookup("customer", "customer", "_id", "who"),
                unwind("who"),
                unwind("lines"),
                addFields().addFieldWithValue("paid", new Document("$multiply", List.of("$lines.pieces", "$lines.price"))).build(),
                group("who.name", "lines.product").sum("paid").as("paid").count().as("n"),
                project("paid", "n").and("_id.name").as("name").and("_id.product").as("product").andExclude("_id"),
                sort(Sort.Direction.DESC, "paid").and(Sort.Direction.ASC, "name"),
                skip(1L),
                limit(2));
        var rows = template.aggregate(pipeline, Document.class).getMappedResults();
        assertEquals(List.of(
                new Document("paid", 380.0).append("n", 19).append("name", "even").append("product", "q"),
                new Document("paid", 294.0).append("n", 7).append("name", "odd").append("product", "p0")), rows);
    }
}
