// Experiment E1: sessions x goroutines insert documents of 1 KB, one at a time, acknowledged, through mgo.v2 (2013-2018),
// which speaks OP_QUERY. A session is one socket; goroutines that share a session pipeline their requests over it.
//
// The count is polled, as the experiment's author did, but from the moment when the last insert was acknowledged, and the
// clock stops there: the experiment's own figure included the dial and up to 10 ms of polling.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"gopkg.in/mgo.v2"
	"gopkg.in/mgo.v2/bson"
)

type document struct {
	ID bson.ObjectId `bson:"_id"`
	D  string        `bson:"d"`
}

func main() {
	sessions := flag.Int("sessions", 100, "sockets")
	goroutines := flag.Int("goroutines", 10_000, "writers, spread over the sessions")
	count := flag.Int("count", 200_000, "documents, spread over the goroutines")
	address := flag.String("uri", os.Getenv("BUNKO_URI"), "server")
	flag.Parse()
	if *sessions < 1 || *goroutines < *sessions || *count < *goroutines {
		fatal(fmt.Errorf("need 1 <= sessions <= goroutines <= count"))
	}

	root, err := mgo.DialWithTimeout(strings.TrimPrefix(*address, "mongodb://"), 10*time.Second)
	fatal(err)
	defer root.Close()
	root.SetSocketTimeout(5 * time.Minute)
	collection := root.DB("clients_mgo").C("insert_matrix")
	fatal(collection.Database.DropDatabase())

	dialled := make([]*mgo.Session, *sessions)
	for i := range dialled {
		dialled[i] = root.Copy()
		defer dialled[i].Close()
		fatal(dialled[i].Ping()) // takes the session's socket before the clock starts
	}

	started := time.Now()
	fatal(insert(dialled, *goroutines, *count))
	elapsed := time.Since(started)

	found := pollCount(collection, *count)
	fmt.Printf("%d sessions, %d goroutines: %d documents in %.2f s = %.0f docs/s\n",
		*sessions, *goroutines, found, elapsed.Seconds(), float64(*count)/elapsed.Seconds())
	if found != *count {
		fatal(fmt.Errorf("%d documents were acknowledged, %d are there", *count, found))
	}
	fatal(collection.Database.DropDatabase())
}

// insert lets each goroutine insert its share through the session of its index, and returns the first error.
func insert(sessions []*mgo.Session, goroutines, count int) error {
	payload := strings.Repeat("0", 970)
	failures := make(chan error, goroutines)
	var writers sync.WaitGroup
	for i := range goroutines {
		share := count / goroutines
		if i < count%goroutines {
			share++
		}
		collection := sessions[i%len(sessions)].DB("clients_mgo").C("insert_matrix")
		writers.Go(func() {
			for range share {
				if err := collection.Insert(document{bson.NewObjectId(), payload}); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	writers.Wait()
	close(failures)
	return <-failures
}

// pollCount asks every 10 ms until the count is right, for 10 s at most.
func pollCount(collection *mgo.Collection, expected int) int {
	found := 0
	for range 1_000 {
		var err error
		found, err = collection.Count()
		fatal(err)
		if found == expected {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return found
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "insert-matrix:", err)
		os.Exit(1)
	}
}
