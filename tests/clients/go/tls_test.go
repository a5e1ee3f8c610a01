package clients

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// As RFC 2253 writes it.
const ann = `CN=ann,OU=clients\, tests,O=Bunko`

// secure makes a client that trusts an authority and may show a certificate of BUNKO_TLS_CERTIFICATES.
func secure(t *testing.T, authority, certificate string, credential options.Credential) *mongo.Client {
	t.Helper()
	uri := os.Getenv("BUNKO_TLS_URI")
	if uri == "" {
		t.Skip("BUNKO_TLS_URI names no server")
	}
	file := func(name string) string { return filepath.Join(os.Getenv("BUNKO_TLS_CERTIFICATES"), name+".pem") }
	pem, err := os.ReadFile(file(authority))
	must(t, err)
	settings := &tls.Config{RootCAs: x509.NewCertPool()}
	equal(t, settings.RootCAs.AppendCertsFromPEM(pem), true)
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(file(certificate), file(certificate))
		must(t, err)
		// Shown also where the server says that it trusts other authorities: Go leaves it out otherwise.
		settings.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetTLSConfig(settings).SetAuth(credential).
		SetServerSelectionTimeout(3 * time.Second))
	must(t, err)
	t.Cleanup(func() { must(t, client.Disconnect(context.Background())) })
	return client
}

func scram(mechanism, password string) options.Credential {
	return options.Credential{
		AuthMechanism: mechanism, AuthSource: "admin", Username: "root", Password: password, PasswordSet: true,
	}
}

var byCertificate = options.Credential{AuthMechanism: "MONGODB-X509", AuthSource: "$external"}

func ping(t *testing.T, client *mongo.Client) error {
	t.Helper()
	return client.Database("clients_go_tls").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}}).Err()
}

func refusedWith(t *testing.T, code int, err error) {
	t.Helper()
	var command mongo.CommandError
	if !errors.As(err, &command) || int(command.Code) != code {
		t.Fatalf("found %v, expected code %d", err, code)
	}
}

func TestPasswordsOverTLS(t *testing.T) {
	for _, mechanism := range []string{"SCRAM-SHA-1", "SCRAM-SHA-256"} {
		must(t, ping(t, secure(t, "ca", "", scram(mechanism, "secret"))))
		refusedWith(t, 18, ping(t, secure(t, "ca", "", scram(mechanism, "wrong"))))
	}
}

func TestWhoIsNotTrustedIsNotSpokenWith(t *testing.T) {
	for _, client := range []*mongo.Client{
		secure(t, "other-ca", "", scram("SCRAM-SHA-256", "secret")),
		secure(t, "ca", "stranger", scram("SCRAM-SHA-256", "secret")),
	} {
		err := ping(t, client)
		var command mongo.CommandError
		if err == nil || errors.As(err, &command) {
			t.Fatalf("found %v, expected no connection", err)
		}
	}
}

func TestLoginsByCertificate(t *testing.T) {
	root := secure(t, "ca", "", scram("SCRAM-SHA-256", "secret"))
	external := root.Database("$external")
	must(t, external.RunCommand(t.Context(), bson.D{
		{Key: "createUser", Value: ann},
		{Key: "roles", Value: bson.A{bson.D{{Key: "role", Value: "read"}, {Key: "db", Value: "clients_go_tls"}}}},
	}).Err())
	defer func() {
		must(t, external.RunCommand(context.Background(), bson.D{{Key: "dropUser", Value: ann}}).Err())
	}()
	client := secure(t, "ca", "ann", byCertificate)
	err := client.Database("clients_go_tls").Collection("c").FindOne(t.Context(), bson.D{}).Err()
	equal(t, errors.Is(err, mongo.ErrNoDocuments), true)
	_, err = client.Database("clients_go_tls").Collection("c").InsertOne(t.Context(), bson.D{})
	refusedWith(t, 13, err)
	refusedWith(t, 18, ping(t, secure(t, "ca", "nobody", byCertificate)))
}
