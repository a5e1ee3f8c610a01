// Imports JSON lines as a plain program with MongoDB's driver does, with the defaults that mongoimport documents: decoders for
// all processors, one connection that inserts, 1,000 documents in a command, unordered.
package main

import (
	"bufio"
	"context"
	"flag"
	"log"
	"os"
	"runtime"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const (
	batchDocuments = 1000
	recordBytesMax = 16 << 20
	waitingBatches = 8
)

func main() {
	uri := flag.String("uri", "mongodb://127.0.0.1:27017", "the server")
	file := flag.String("file", "", "the input")
	collection := flag.String("collection", "orders", "the collection")
	workers := flag.Int("workers", 1, "connections that insert")
	flag.Parse()
	client, err := mongo.Connect(options.Client().ApplyURI(*uri))
	check(err)
	target := client.Database("test").Collection(*collection)
	check(target.Drop(context.Background()))
	lines, documents := make(chan [][]byte, waitingBatches), make(chan []any, waitingBatches)
	var decoders, inserters sync.WaitGroup
	for range runtime.NumCPU() {
		decoders.Go(func() {
			for batch := range lines {
				decoded := make([]any, len(batch))
				for i, line := range batch {
					var document bson.D
					check(bson.UnmarshalExtJSON(line, false, &document))
					decoded[i] = document
				}
				documents <- decoded
			}
		})
	}
	for range *workers {
		inserters.Go(func() {
			for batch := range documents {
				_, err := target.InsertMany(context.Background(), batch, options.InsertMany().SetOrdered(false))
				check(err)
			}
		})
	}
	read(*file, lines)
	decoders.Wait()
	close(documents)
	inserters.Wait()
}

func read(name string, lines chan<- [][]byte) {
	file, err := os.Open(name)
	check(err)
	scanner := bufio.NewScanner(file)
	scanner.Buffer(make([]byte, 1<<20), recordBytesMax)
	var batch [][]byte
	for scanner.Scan() {
		batch = append(batch, append([]byte(nil), scanner.Bytes()...))
		if len(batch) == batchDocuments {
			lines <- batch
			batch = nil
		}
	}
	check(scanner.Err())
	lines <- batch
	close(lines)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
