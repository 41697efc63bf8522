// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/proxy"
	"github.com/metehq/mete/storetest"
)

// Rules for a path or host cannot be bypassed with a target that net/http does not parse but would forward.
func TestTargetsWithoutAPathDoNotGoAroundRules(t *testing.T) {
	for name, text := range map[string]string{
		"path": `{"rules": [{"name": "r", "limit_keys": [], "match": {"path": "/*"}, "algorithm": "token_bucket", "algorithm_config": {"tokens_per_second": 1, "burst": 1}}]}`,
		"host": `{"rules": [{"name": "r", "limit_keys": [], "match": {"host": "api.example"}, "algorithm": "token_bucket", "algorithm_config": {"tokens_per_second": 1, "burst": 1}}]}`,
	} {
		m, err := policy.Load([]byte(text), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		lim, err := mete.New(storetest.NewModel(func() bucket.Instant { return 1 }), m, mete.Config{})
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
			for range 3 { // only one of them is allowed
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

// A "#" ends a query for some servers, and a space, which HTTP/2 can send, ends the
// target in a request line of HTTP/1. Rules do not end it there.
func TestQueries_EndLikeInRules(t *testing.T) {
	upstream, sent := recorder(t)
	front := httptest.NewUnstartedServer(newProxy(t, upstream, middleware(t, 100, httplimit.Config{}), proxy.Config{}))
	front.Config.Protocols = protocols(true)
	front.Start()
	defer front.Close()
	client := &http.Transport{Protocols: protocols(true)}
	defer client.CloseIdleConnections()
	for query, want := range map[string]string{"key=a#b": "key=a%23b", "key=a HTTP/1.0": "key=a+HTTP%2F1.0", "key=%C3%A9\u00e9": "key=%C3%A9\u00e9"} {
		r, err := http.NewRequest(http.MethodGet, front.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.RawQuery = query
		resp, err := client.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if line, _, _ := strings.Cut(sent(), "\r\n"); resp.StatusCode != 200 || line != "GET /?"+want+" HTTP/1.1" {
			t.Errorf("%q: got %d, and the upstream was sent %q", query, resp.StatusCode, line)
		}
	}
}

// HTTP/2 lets methods and hosts pass that net/http does not send on as they are. They
// are refused, and no failure of the upstream.
func TestMethodsAndHosts_Refused(t *testing.T) {
	var reached []string
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) { reached = append(reached, r.Method+" "+r.Host) })
	observed := 0
	p := newProxy(t, upstream, middleware(t, 100, httplimit.Config{}), proxy.Config{Observe: func(time.Duration, error) { observed++ }})
	for _, host := range []string{"", "api.example/x", "b\u00fccher.example", "xn--b\u00fccher.example", "a b", "u@a", `a\b`, "a?b", "a#b", "a\x00", "a\x7f"} {
		r := getRequest()
		r.Host = host
		if w := ask(p, r); w.Code != 400 {
			t.Errorf("host %q: got %d, want 400", host, w.Code)
		}
	}
	for _, method := range []string{"GET /admin", "G\u00c9T", "GET:", "GET\t", "G/T", "(GET)"} {
		r := getRequest()
		r.Method = method
		if w := ask(p, r); w.Code != 400 {
			t.Errorf("method %q: got %d, want 400", method, w.Code)
		}
	}
	if len(reached) > 0 || observed > 0 {
		t.Errorf("the upstream got %q, and %d requests were observed; want none", reached, observed)
	}
	for _, host := range []string{"a", "A.example.:80", "[::1]:80", "a_b~c%41", "xn--bcher-kva.example"} {
		r := getRequest()
		r.Host, r.Method = host, "M-SEARCH"
		if w := ask(p, r); w.Code != 200 {
			t.Errorf("host %q: got %d, want 200", host, w.Code)
		}
	}
}
