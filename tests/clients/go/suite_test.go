// Package clients runs the Go driver (v2) against the server that BUNKO_URI names.
package clients

import (
	"context"
	"errors"
	"os"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const databaseName = "clients_go"

// database gives a test its own client and an empty database.
func database(t *testing.T, settings ...*options.ClientOptions) *mongo.Database {
	t.Helper()
	uri := os.Getenv("BUNKO_URI")
	if uri == "" {
		t.Fatal("BUNKO_URI names no server")
	}
	client, err := mongo.Connect(append([]*options.ClientOptions{options.Client().ApplyURI(uri)}, settings...)...)
	must(t, err)
	database := client.Database(databaseName)
	must(t, database.Drop(t.Context()))
	t.Cleanup(func() {
		// The test's own context is cancelled by now.
		must(t, database.Drop(context.Background()))
		must(t, client.Disconnect(context.Background()))
	})
	return database
}

func things(t *testing.T) *mongo.Collection {
	t.Helper()
	return database(t).Collection("things")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, found, expected T) {
	t.Helper()
	if found != expected {
		t.Errorf("found %v, expected %v", found, expected)
	}
}

// relaxed prints a document as Extended JSON, to be compared with a line that a person can read.
func relaxed(t *testing.T, document any) string {
	t.Helper()
	text, err := bson.MarshalExtJSON(document, false, false)
	must(t, err)
	return string(text)
}

// all reads a cursor to its end and prints each document.
func all(t *testing.T, cursor *mongo.Cursor, err error) []string {
	t.Helper()
	must(t, err)
	var documents []bson.Raw
	must(t, cursor.All(t.Context(), &documents))
	printed := make([]string, len(documents))
	for i, document := range documents {
		printed[i] = relaxed(t, document)
	}
	return printed
}

// code finds the server's error code: of the command, or of its first write error.
func code(t *testing.T, err error) int {
	t.Helper()
	var failure mongo.ServerError
	if !errors.As(err, &failure) {
		t.Fatalf("not an error of the server: %v", err)
	}
	return failure.ErrorCodes()[0]
}
