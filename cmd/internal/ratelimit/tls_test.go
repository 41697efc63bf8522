// SPDX-License-Identifier: Apache-2.0

package ratelimit_test

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete/internal/proctest"
)

// TestServer_ClientCertificates verifies clients by their CA and their DNS name, and reloads the certificate.
func TestServer_ClientCertificates(t *testing.T) {
	t.Parallel()
	root, _ := directory(t, basic)
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	authority := filepath.Join(dir, "clients.crt")
	trusted := proctest.Certify(t, cert, key)
	foreign := proctest.Certify(t, filepath.Join(dir, "foreign.crt"), filepath.Join(dir, "foreign.key"))
	copyFile(t, authority, cert)
	secured := []string{
		"RUNTIME_ROOT=" + root, "GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=" + cert, "GRPC_SERVER_TLS_KEY=" + key,
		"GRPC_CLIENT_TLS_CACERT=" + authority,
	}
	r := start(t, append(secured, "GRPC_CLIENT_TLS_SAN=localhost")...)
	other := start(t, append(secured, "GRPC_CLIENT_TLS_SAN=envoy.example.com")...)
	if got := call(t, dial(t, r.GRPC.String(), credentials.NewTLS(trusted)), "/a"); got != ok {
		t.Errorf("with a certificate of the CA and the name: %v", got)
	}
	for _, c := range []struct {
		name   string
		server *running
		client *tls.Config
	}{
		{"no certificate", r, &tls.Config{RootCAs: trusted.RootCAs, ServerName: "localhost"}},
		{"a certificate of another CA", r, &tls.Config{RootCAs: trusted.RootCAs, ServerName: "localhost", Certificates: foreign.Certificates}},
		{"a certificate with another name", other, trusted},
	} {
		_, err := dial(t, c.server.GRPC.String(), credentials.NewTLS(c.client)).ShouldRateLimit(t.Context(), requestFor("/a"))
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v, want UNAVAILABLE", c.name, err)
		}
	}

	write(t, key, "no key")
	r.log.wait(t, "certificate not replaced, old certificate stays active", 1)
	if got := call(t, dial(t, r.GRPC.String(), credentials.NewTLS(trusted)), "/a"); got != ok {
		t.Errorf("with an invalid file of the key: %v", got)
	}
	copyFile(t, cert, filepath.Join(dir, "foreign.crt"))
	copyFile(t, key, filepath.Join(dir, "foreign.key"))
	r.log.wait(t, "certificate reloaded", 1)
	reloaded := &tls.Config{RootCAs: foreign.RootCAs, ServerName: "localhost", Certificates: trusted.Certificates}
	if got := call(t, dial(t, r.GRPC.String(), credentials.NewTLS(reloaded)), "/b"); got != ok {
		t.Errorf("after the reload: %v", got)
	}
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, string(text))
}

// TestServer_UnixSocket serves gRPC on a path, also if an ended process has left its socket there.
func TestServer_UnixSocket(t *testing.T) {
	root, _ := directory(t, basic)
	path := filepath.Join(t.TempDir(), "s")
	for range 2 {
		r := start(t, "RUNTIME_ROOT="+root, "GRPC_UDS="+path)
		if got := call(t, dial(t, "unix:"+path, nil), "/a"); got != ok {
			t.Errorf("over the socket: %v", got)
		}
		if _, _, err := open(t, "RUNTIME_ROOT="+root, "GRPC_UDS="+path); err == nil {
			t.Error("two services have the same socket")
		}
		r.end(t)
		leaveSocket(t, path)
	}
}

// leaveSocket makes the socket of a process that has ended without removing it.
func leaveSocket(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}
