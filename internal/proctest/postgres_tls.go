// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"path/filepath"
	"slices"
	"testing"
)

// StartPostgresTLS is [StartPostgres] for a server that also accepts TLS. It returns the file with the
// self-signed certificate for 127.0.0.1 and localhost.
func StartPostgresTLS(t testing.TB, settings ...string) (p *Postgres, certFile string) {
	t.Helper()
	home, err := postgresHome()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := makeSubdirectory(home)
	if err != nil {
		t.Fatal(err)
	}
	removeAfter(t, dir)
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	Certify(t, certFile, keyFile)
	for _, file := range []string{certFile, keyFile} {
		if err := chown(file); err != nil {
			t.Fatal(err)
		}
	}
	return StartPostgres(t, slices.Concat([]string{
		"ssl=on", "ssl_cert_file=" + certFile, "ssl_key_file=" + keyFile,
	}, settings)...), certFile
}
