// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/metehq/mete/cmd/internal/admintoken"
)

// TestMain has servers leave their tokens in a directory of these tests, and the
// default client send them.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "mete-server-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv("XDG_RUNTIME_DIR", dir)
	http.DefaultTransport = &operator{http.DefaultTransport}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// An operator sends the token of the server that it asks, if it has left one.
type operator struct{ next http.RoundTripper }

func (o *operator) RoundTrip(r *http.Request) (*http.Response, error) {
	if token, _, ok := admintoken.Find(r.URL.Host); ok && r.Header["Authorization"] == nil {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return o.next.RoundTrip(r)
}
