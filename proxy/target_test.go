// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/proxy"
	"github.com/metehq/mete/storetest"
)

// A rule about a path or a host cannot be gone around by a target whose path
// net/http does not read, and would send on as it is.
func TestTargetsWithoutAPathDoNotGoAroundRules(t *testing.T) {
	for name, text := range map[string]string{
		"path": `{"rules": [{"name": "r", "limit_keys": [], "match": {"path": "/*"}, "algorithm": "token_bucket", "algorithm_config": {"tokens_per_second": 1, "burst": 1}}]}`,
		"host": `{"rules": [{"name": "r", "limit_keys": [], "match": {"host": "api.example"}, "algorithm": "token_bucket", "algorithm_config": {"tokens_per_second": 1, "burst": 1}}]}`,
	} {
		m, err := policy.Load([]byte(text), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		lim, err := mete.New(storetest.NewNaive(func() bucket.Instant { return 1 }), m, mete.Config{})
		if err != nil {
			t.Fatal(err)
		}
		mw, err := httplimit.New(lim, httplimit.Config{})
		if err != nil {
			t.Fatal(err)
		}
		seen := make(chan string, 100)
		upstream := serve(t, func(w http.ResponseWriter, r *http.Request) { seen <- r.Host + " " + r.RequestURI })
		front := strings.TrimPrefix(serveProxy(t, upstream, mw, proxy.Config{}), "http://")
		for _, tt := range []struct{ method, target, host string }{
			{"GET", "http:http://api.example/v1/chat", "other.example"},
			{"GET", "x:http://api.example/v1/chat", "other.example"},
			{"GET", "http:v1/chat", "api.example"},
			{"GET", "x:*", "api.example"},
			{"GET", "*", "api.example"},
			{"GET", "http://api.example", "other.example"},
			{"GET", "http://api.example?x", "other.example"},
			{"GET", "http:/v1/chat", "api.example"},
		} {
			for range 3 { // one of which is admitted, in all
				raw(t, front, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", tt.method, tt.target, tt.host))
			}
		}
		close(seen)
		var all []string
		for s := range seen {
			if name == "path" || strings.Contains(s, "api.example") {
				all = append(all, s)
			}
		}
		if len(all) > 1 {
			t.Errorf("rule by %s: the upstream saw %q, and one request was to pass", name, all)
		}
	}
}

// raw sends a request as it is written and returns the status of the answer.
func raw(t *testing.T, addr, request string) int {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
