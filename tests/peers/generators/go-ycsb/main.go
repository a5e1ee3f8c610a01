// What go-ycsb costs as a generator: its own client, workload and MongoDB binding, loading records of about 1,000 bytes
// in a closed loop, with its CPU time per insert printed at the end. Its own main function links the drivers of nineteen
// databases, some of which need C libraries; this one links MongoDB's.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/magiconair/properties"
	_ "github.com/pingcap/go-ycsb/db/mongodb"
	"github.com/pingcap/go-ycsb/pkg/client"
	"github.com/pingcap/go-ycsb/pkg/measurement"
	"github.com/pingcap/go-ycsb/pkg/prop"
	_ "github.com/pingcap/go-ycsb/pkg/workload"
	"github.com/pingcap/go-ycsb/pkg/ycsb"
	"go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/mongo/options"
)

// The binding's own choice.
const databaseName = "ycsb"

// With the key, the field's name and BSON's frame, about 1,000 bytes.
const fieldBytes = 950

func main() {
	connections := flag.Int("connections", 100, "sockets, each with one request in flight")
	records := flag.Int("records", 100_000, "documents")
	uri := flag.String("uri", "", "server")
	flag.Parse()

	// The driver's pool holds 100 connections at most by default, and a thread has one request in flight.
	settings := properties.NewProperties()
	for name, value := range map[string]string{
		"mongodb.url":       *uri,
		prop.ThreadCount:    strconv.Itoa(*connections),
		prop.RecordCount:    strconv.Itoa(*records),
		prop.DoTransactions: "false",
		prop.Command:        "load",
		prop.FieldCount:     "1",
		prop.FieldLength:    strconv.Itoa(fieldBytes),
		prop.LogInterval:    "3600",
	} {
		settings.MustSet(name, value)
	}

	database := connect(*uri)
	fatal(database.Drop(context.Background()))
	measurement.InitMeasure(settings)
	workload, err := ycsb.GetWorkloadCreator("core").Create(settings)
	fatal(err)
	binding, err := ycsb.GetDBCreator("mongodb").Create(settings)
	fatal(err)

	cpuBefore, began := processCPU(), time.Now()
	client.NewClient(settings, workload, client.DbWrapper{DB: binding}).Run(context.Background())
	cpu, elapsed := processCPU()-cpuBefore, time.Since(began)

	found, err := database.Collection(prop.TableNameDefault).CountDocuments(context.Background(), struct{}{})
	fatal(err)
	if found != int64(*records) {
		fatal(fmt.Errorf("%d records were to be loaded, %d are there", *records, found))
	}
	fatal(database.Drop(context.Background()))
	fmt.Printf("%.0f docs/s, %.2f us of CPU per insert\n",
		float64(*records)/elapsed.Seconds(), float64(cpu.Nanoseconds())/1e3/float64(*records))
}

// connect is for what YCSB leaves to others: an empty database before, a count and no database after.
func connect(uri string) *mongo.Database {
	client, err := mongo.Connect(context.Background(), options.Client().ApplyURI(uri))
	fatal(err)
	return client.Database(databaseName)
}

// processCPU is the user and system time of this process so far.
func processCPU() time.Duration {
	var usage syscall.Rusage
	fatal(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "go-ycsb:", err)
		os.Exit(1)
	}
}
