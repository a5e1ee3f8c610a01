"""Libraries that write the queries of applications: MongoEngine, Beanie, and kombu, which Celery stands on."""

import asyncio
import datetime
import os

import beanie
import mongoengine
import pymongo
import pytest
from kombu import Connection
from mongoengine.context_managers import query_counter
from pydantic import BaseModel
from pymongo.errors import DuplicateKeyError

DATABASE = "clients_python"
URI = os.environ["BUNKO_URI"]


class Address(mongoengine.EmbeddedDocument):
    city = mongoengine.StringField(required=True)
    place = mongoengine.PointField()


class Author(mongoengine.Document):
    name = mongoengine.StringField(required=True, unique=True)
    born = mongoengine.DateTimeField()
    addresses = mongoengine.EmbeddedDocumentListField(Address)
    tags = mongoengine.ListField(mongoengine.StringField())
    meta = {"indexes": ["tags", ("name", "-born"), {"fields": ["$name"]}], "ordering": ["name"]}


class Book(mongoengine.Document):
    title = mongoengine.StringField(required=True)
    author = mongoengine.ReferenceField(Author, reverse_delete_rule=mongoengine.CASCADE)
    copies = mongoengine.IntField(min_value=0)


@pytest.fixture
def engine(database):
    connection = mongoengine.connect(DATABASE, host=URI, uuidRepresentation="standard")
    yield connection
    mongoengine.disconnect()


def test_mongoengine(engine):
    Author.ensure_indexes()
    mishima = Author(
        name="Mishima", born=datetime.datetime(1925, 1, 14), tags=["novel", "play"],
        addresses=[Address(city="Tokyo", place=[139.7, 35.7])],
    ).save()
    Author(name="Abe", tags=["novel"]).save()
    with pytest.raises(mongoengine.NotUniqueError):
        Author(name="Abe").save()
    Book.objects.insert([Book(title=f"volume {n}", author=mishima, copies=n) for n in range(10)])

    assert [author.name for author in Author.objects(tags="novel")] == ["Abe", "Mishima"]
    assert Author.objects(addresses__city="Tokyo", born__lt=datetime.datetime(1930, 1, 1)).get() == mishima
    assert Author.objects(name__icontains="MISH").count() == 1
    assert Author.objects.search_text("mishima").first() == mishima
    assert Book.objects(copies__gte=5).order_by("-copies").first().author.name == "Mishima"
    assert Book.objects(title="volume 3").update_one(inc__copies=7, set__title="volume three") == 1
    assert Book.objects(title="volume three").modify(new=True, inc__copies=1).copies == 11
    assert Book.objects.sum("copies") == 53 and Book.objects.average("copies") == 5.3
    assert Book.objects.aggregate([{"$group": {"_id": "$author", "n": {"$sum": 1}}}]).next()["n"] == 10
    assert Author.objects.item_frequencies("tags") == {"novel": 2, "play": 1} if has_scripts(engine) else True
    mishima.update(push__tags="poem")
    mishima.update(pull__tags="play")
    mishima.reload()
    assert mishima.tags == ["novel", "poem"]
    mishima.delete()
    assert Book.objects.count() == 0


def test_mongoengine_counts_queries(engine):
    def counted(run):
        with query_counter() as queries:
            run()
            return int(queries)

    Author.ensure_indexes()
    Author.objects.insert([Author(name=f"author {n}") for n in range(300)])
    assert counted(lambda: Author(name="one more").save()) == 1
    assert counted(lambda: Author.objects(name="author 1").update_one(set__tags=["a"])) == 1
    assert counted(lambda: Author.objects(name__ne="author 1").update(set__tags=["b"])) == 1
    assert counted(lambda: Author.objects(name="author 2").modify(set__tags=["c"])) == 1
    assert counted(lambda: Author.objects(name="author 3").delete()) >= 1
    assert counted(lambda: Author.objects.count()) == 1
    assert counted(lambda: Author.objects.distinct("tags")) == 1
    assert counted(lambda: list(Author.objects.batch_size(200))) == 2
    assert counted(lambda: list(Author.objects.aggregate([{"$match": {"tags": "b"}}]))) >= 1


def has_scripts(client):
    return client.admin.command("buildInfo").get("javascriptEngine", "none") != "none"


class Category(BaseModel):
    name: str


class Product(beanie.Document):
    name: str
    price: float
    category: Category

    class Settings:
        name = "products"
        indexes = [pymongo.IndexModel("name", unique=True), [("category.name", 1), ("price", -1)]]


def test_beanie(database):
    asyncio.run(use_beanie())


async def use_beanie():
    client = pymongo.AsyncMongoClient(URI)
    await beanie.init_beanie(database=client[DATABASE], document_models=[Product])
    await Product.insert_many(
        [Product(name=f"p{n}", price=n / 2, category=Category(name="even" if n % 2 == 0 else "odd")) for n in range(20)]
    )
    with pytest.raises(DuplicateKeyError):
        await Product(name="p1", price=0, category=Category(name="odd")).insert()
    dear = await Product.find(Product.price > 5, Product.category.name == "odd").sort(-Product.price).to_list()
    assert [product.name for product in dear] == ["p19", "p17", "p15", "p13", "p11"]
    assert await Product.find(Product.category.name == "even").avg(Product.price) == 4.5
    one = await Product.find_one(Product.name == "p3")
    await one.set({Product.price: 99})
    await one.inc({Product.price: 1})
    assert (await Product.get(one.id)).price == 100
    await Product.find_one(Product.name == "new").upsert(
        {"$set": {"price": 1.0}}, on_insert=Product(name="new", price=0, category=Category(name="odd"))
    )
    assert await Product.find_all().count() == 21
    class Total(BaseModel):
        id: str
        total: float
    totals = await Product.find(Product.price < 50).aggregate(
        [{"$group": {"_id": "$category.name", "total": {"$sum": "$price"}}}, {"$sort": {"_id": 1}},
         {"$project": {"id": "$_id", "total": 1, "_id": 0}}], projection_model=Total,
    ).to_list()
    assert [(total.id, total.total) for total in totals] == [("even", 45.0), ("odd", 48.5)]
    await Product.find(Product.category.name == "odd").delete()
    assert await Product.count() == 10
    await client.close()


def test_kombu(database):
    with Connection(f"{URI.rstrip('/')}/{DATABASE}") as connection:
        queue = connection.SimpleQueue("letters")
        for n in range(20):
            queue.put({"n": n}, priority=5)
        assert queue.qsize() == 20
        received = []
        for _ in range(20):
            message = queue.get(timeout=5)
            received.append(message.payload["n"])
            message.ack()
        assert received == list(range(20))
        with pytest.raises(queue.Empty):
            queue.get(timeout=0.2)
        queue.close()
    assert {"messages", "messages.routing", "messages.queues"} & set(database.list_collection_names())
