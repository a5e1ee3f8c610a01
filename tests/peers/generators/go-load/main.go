// What a driver program costs as a generator: inserts documents of 1,000 bytes, one at a time, acknowledged, over a
// number of connections in a closed loop, and prints its own CPU time per insert. It is what people write to measure a
// server, and what `bunko bench insert-matrix` is held against.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const databaseName = "peers_go_load"

// Length of the document, of _id: ObjectId (4 bytes of length, 1 of end, 17), and of the string's frame (type, name,
// length, terminator).
const documentBytes = 1000
const payloadBytes = documentBytes - 22 - 8

type document struct {
	ID bson.ObjectID `bson:"_id"`
	D  string        `bson:"d"`
}

func main() {
	connections := flag.Int("connections", 100, "sockets, each with one request in flight")
	warmUp := flag.Duration("warm-up", time.Second, "inserts that are not counted")
	duration := flag.Duration("duration", 6*time.Second, "inserts that are")
	uri := flag.String("uri", "", "server")
	flag.Parse()

	pool := uint64(*connections)
	client, err := mongo.Connect(options.Client().ApplyURI(*uri).SetMinPoolSize(pool).SetMaxPoolSize(pool))
	fatal(err)
	database := client.Database(databaseName)
	fatal(database.Drop(context.Background()))

	var inserted atomic.Int64
	over, stop := context.WithCancel(context.Background())
	writers := start(over, database.Collection("documents"), *connections, &inserted)

	time.Sleep(*warmUp)
	before, cpuBefore, began := inserted.Load(), processCPU(), time.Now()
	time.Sleep(*duration)
	requests, cpu, elapsed := inserted.Load()-before, processCPU()-cpuBefore, time.Since(began)

	stop()
	fatal(writers())
	found, err := database.Collection("documents").CountDocuments(context.Background(), bson.D{})
	fatal(err)
	if found != inserted.Load() {
		fatal(fmt.Errorf("%d documents were acknowledged, %d are there", inserted.Load(), found))
	}
	fatal(database.Drop(context.Background()))
	fatal(client.Disconnect(context.Background()))
	fmt.Printf("%.0f docs/s, %.2f us of CPU per insert\n",
		float64(requests)/elapsed.Seconds(), float64(cpu.Nanoseconds())/1e3/float64(requests))
}

// start lets each connection insert until over; the function it returns waits for all, and gives the first error.
func start(over context.Context, collection *mongo.Collection, connections int, inserted *atomic.Int64) func() error {
	var writers sync.WaitGroup
	failures := make(chan error, connections)
	for index := range connections {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(index)))
			for over.Err() == nil {
				// An insert that has begun is waited for: only so the count can be verified.
				if _, err := collection.InsertOne(context.Background(), document{bson.NewObjectID(), payload(random)}); err != nil {
					failures <- err
					return
				}
				inserted.Add(1)
			}
		})
	}
	return func() error {
		writers.Wait()
		close(failures)
		var all []error
		for err := range failures {
			all = append(all, err)
		}
		return errors.Join(all...)
	}
}

// payload does not compress: six random bits a character, ten characters a draw.
func payload(random *rand.Rand) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	text := make([]byte, payloadBytes)
	for place := 0; place < payloadBytes; {
		for bits, left := random.Uint64(), 10; left > 0 && place < payloadBytes; left-- {
			text[place] = alphabet[bits&63]
			bits >>= 6
			place++
		}
	}
	return string(text)
}

// processCPU is the user and system time of this process so far.
func processCPU() time.Duration {
	var usage syscall.Rusage
	fatal(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "go-load:", err)
		os.Exit(1)
	}
}
