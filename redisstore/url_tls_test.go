// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/metehq/mete/internal/proctest"
)

// pemFiles are the files of a certificate and its key.
type pemFiles struct{ cert, key string }

// tlsRedis starts a server that requires its own self-signed certificate from TLS clients.
func tlsRedis(t *testing.T) (*proctest.Redis, pemFiles) {
	t.Helper()
	r, config := proctest.StartRedisTLS(t, "--tls-auth-clients", "yes")
	pair := config.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := pemFiles{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	for path, block := range map[string]*pem.Block{
		files.cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]},
		files.key:  {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r, files
}
