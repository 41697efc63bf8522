// SPDX-License-Identifier: Apache-2.0

package requestpath_test

import (
	"bufio"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/policy"
)

// TestServeMux compares paths with the routing of http.ServeMux: no handler is reached past its rule, unless the
// path is disputed. A redirect is another request with its own decision.
func TestServeMux(t *testing.T) {
	mux, reached := newMux()
	source, err := httpfacts.New(httpfacts.Config{})
	if err != nil {
		t.Fatal(err)
	}
	path, _ := policy.ParseAttribute("path")
	rng := rand.New(testseed.PCG(1, 3))
	counts := map[string]int{}
	for i := range len(nasty) + 15_000 {
		target := randomTarget(rng)
		if i < len(nasty) {
			target = nasty[i]
		}
		for _, method := range []string{"GET", "CONNECT"} {
			r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + target + " HTTP/1.1\r\nHost: a\r\n\r\n")))
			if err != nil {
				counts["no request"]++ // to the server neither
				continue
			}
			*reached = ""
			mux.ServeHTTP(httptest.NewRecorder(), r)
			facts := source.Facts(r)
			asked, _ := facts.Lookup(path)
			counts[*reached]++
			if l, ok := locations[*reached]; ok && !l.takes(asked) && facts.Ambiguity() == "" {
				t.Errorf("%s %q reaches %s, and rules are asked about %q", method, target, *reached, asked)
			}
			facts.Release()
		}
	}
	for name := range locations {
		if counts[name] == 0 {
			t.Errorf("no target reached %s", name)
		}
	}
	t.Logf("reached: %v", counts)
}

// newMux returns a router with the locations, which records the location that it selected.
func newMux() (*http.ServeMux, *string) {
	mux, reached := http.NewServeMux(), new(string)
	for pattern, name := range map[string]string{"/v1/chat": "chat", "/admin/": "admin", "/api/": "api", "/api": "api", "/": "other"} {
		mux.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) { *reached = name })
	}
	return mux, reached
}
