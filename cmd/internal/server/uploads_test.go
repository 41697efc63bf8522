// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// TestUploads_OfOneClient checks that one client cannot fill the memory for bodies with uploads that it does not finish. Other
// clients are served, also with long bodies.
func TestUploads_OfOneClient(t *testing.T) {
	t.Parallel()
	const (
		size = 1 << 20
		most = 300 // MiB, which is more than the whole memory
	)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	t.Cleanup(model.Close)
	c := testConfig()
	c.Upstream, c.TrustedProxies = mustURL(model.URL), []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	c.Policy = policyFile(t, `rules: [{ name: chat, limit_keys: ["ip:address"], match: { "ai:model": "*" }, algorithm: token_bucket_llm, tokens_per_minute: 1000000 }]`)
	s := start(t, c)

	piece := `{"model":"m","messages":"` + strings.Repeat("x", size)
	refused := make(chan int, most)
	uploads := 0
	for ; uploads < most && len(refused) == 0; uploads++ {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.main, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: api\r\nX-Forwarded-For: 203.0.113.1\r\nContent-Length: %d\r\n\r\n%s", size, piece[:size-1])
		go func() {
			if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
				refused <- res.StatusCode
			}
		}()
	}
	if status := <-refused; status != http.StatusServiceUnavailable {
		t.Errorf("upload %d of one client: %d, want 503", uploads, status)
	}
	for i, body := range []string{`{"model":"m"}`, piece[:size-2] + `"}`, piece + strings.Repeat("x", size) + `"}`} {
		req, err := http.NewRequest(http.MethodPost, s.main+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Forwarded-For", fmt.Sprint("203.0.113.", i+2))
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if status, text := read(t, res); status != http.StatusOK {
			t.Errorf("a body of %d bytes of another client: %d %s", len(body), status, text)
		}
	}
}
