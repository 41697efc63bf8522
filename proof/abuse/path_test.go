// SPDX-License-Identifier: Apache-2.0

package abuse_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/metehq/mete/proof/meted"
)

// bypasses are targets that some server somewhere reads as /login.
var bypasses = []string{
	"/login", "//login", "/./login", "/x/../login", "/login/.", "/login/../login", "/x//../login", "/%2e/login", "/x/%2e%2e/login", "/x/%2E%2E/login",
	"/l%6fgin", "/%6c%6f%67%69%6e", "/login?x=/other", "/login?", "/login#x", "http://other.example/login", "/x/..%2flogin", "/x%2f..%2flogin",
	"/login%2f.", "/x/..;/login", "/..;/login", "/x;y/../login", "/login%2F..%2Flogin", "/.//login", "/x/%2e./login", "/x/.%2e/login",
	"/..%5clogin", "/x\\..\\login", "/x/..\\login", "/login/..%5clogin",
}

// sendTarget sends a request with an abnormal target. It returns the status and the upstream's part of the
// body.
func sendTarget(t *testing.T, addr, target string) (status int, body string) {
	t.Helper()
	conn := dial(t, addr)
	if _, err := io.WriteString(conn, "GET "+target+" HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	got := readAll(t, conn)
	return got.status, got.body
}

// Each spelling of a path that passes is charged to the limit of the path that the upstream sees.
func TestAbuse_PathBypass(t *testing.T) {
	t.Parallel()
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "saw "+r.URL.Path) })
	s := gatewayOfLogin(t, upstream)
	if status, _ := sendTarget(t, s.Addr, "/login"); status != http.StatusOK {
		t.Fatalf("the first request: status %d, want 200", status)
	}
	for _, target := range bypasses {
		switch status, body := sendTarget(t, s.Addr, target); {
		case status == http.StatusTooManyRequests, status == http.StatusBadRequest:
		case status == http.StatusOK && !readsAsLogin(body):
		default:
			t.Errorf("%s: status %d, and the upstream %s", target, status, body)
		}
	}
	for _, other := range []string{"/other", "/LOGIN", "/login/", "/login2", "/%6cogin2", "/a/login"} {
		if status, body := sendTarget(t, s.Addr, other); status != http.StatusOK {
			t.Errorf("%s, which is another path: %d %s, want 200", other, status, body)
		}
	}
}

// readsAsLogin reports whether what the upstream saw is the limited path, to a reader
// that resolves what it can.
func readsAsLogin(body string) bool {
	path := strings.TrimPrefix(body, "saw ")
	return path == "/login" || strings.Contains(path, "..") || strings.Contains(path, "//")
}

// gatewayOfLogin lets one request through to /login, and any number elsewhere.
func gatewayOfLogin(t *testing.T, upstream *httptest.Server) *meted.Server {
	return start(t, `{"rules": [{"name": "login", "limit_keys": [], "match": {"path": "/login"}, "algorithm": "token_bucket",
		"algorithm_config": {"rate": "1/10h", "burst": 1}}]}`, "upstream: "+upstream.URL+"\n")
}

// A request that two servers read as one and as two is refused, so that none is
// carried past the limit inside another.
func TestAbuse_Smuggling(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.URL.Path)
		mu.Unlock()
		io.Copy(io.Discard, r.Body)
	})
	s := gatewayOfLogin(t, upstream)
	if status, _ := sendTarget(t, s.Addr, "/login"); status != http.StatusOK {
		t.Fatalf("the first request: status %d, want 200", status)
	}
	const inner = "GET /login HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, head := range map[string]string{
		"a length and chunks":    "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
		"chunks, spaced":         "Content-Length: 38\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + inner,
		"chunks, twice":          "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + inner,
		"chunks, other letters":  "Content-Length: 38\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + inner,
		"two lengths":            "Content-Length: 0\r\nContent-Length: 37\r\n\r\n" + inner,
		"a length with a sign":   "Content-Length: +37\r\n\r\n" + inner,
		"an upgrade that is not": "Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n" + inner,
	} {
		conn := dial(t, s.Addr)
		if _, err := io.WriteString(conn, "POST /other HTTP/1.1\r\nHost: x\r\n"+head); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		conn.Close()
	}
	mustLive(t, s, "smuggling")
	upstream.CloseClientConnections()
	upstream.Close() // waits for active requests
	for _, path := range seen[1:] {
		if path == "/login" {
			t.Errorf("the upstream saw %q: /login once too often", seen)
		}
	}
}
