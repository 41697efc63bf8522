// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/proxy"
)

// Requests and responses are the same as with the standard library's proxy, except for our own fields.
func TestLikeReverseProxy(t *testing.T) {
	const seed = 20261121
	random := rand.New(testseed.PCG(seed, 1))
	seen := make(chan string, 1)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if len(body) == 0 { // the standard library sends no chunks if it reads the end of the body within 200 ms
			r.TransferEncoding, r.ContentLength = nil, 0
		}
		seen <- fmt.Sprintf("%s %s %s %v %v %d %x %v", r.Method, r.RequestURI, r.Host, r.Header, r.TransferEncoding, r.ContentLength, sha256.Sum256(body), err)
		play(w, r.Header.Get("X-Play"))
	})
	target, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	ours := serveProxy(t, upstream, middleware(t, 1_000_000, httplimit.Config{}), proxy.Config{})
	plain := &http.Transport{DisableCompression: true}
	defer plain.CloseIdleConnections()
	theirs := httptest.NewServer(&httputil.ReverseProxy{Transport: plain, Rewrite: func(pr *httputil.ProxyRequest) {
		pr.SetURL(target)
		pr.Out.Host = pr.In.Host
		pr.SetXForwarded()
	}, ErrorLog: quiet()})
	defer theirs.Close()
	client := &http.Transport{DisableCompression: true}
	defer client.CloseIdleConnections()
	for i := range 300 {
		script := random.Uint64()
		var answers, arrived [2]string
		fronts := []string{theirs.URL, ours}
		for side, broken := 0, 0; side < len(fronts); side++ {
			front := fronts[side]
			r := randomRequest(t, rand.New(testseed.PCG(script, 2)), front)
			resp, err := client.RoundTrip(r)
			if err != nil {
				t.Fatalf("seed %d, request %d: %v", seed, i, err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil && side == 0 && broken < 20 { // theirs may close a request's body while its transport reads it
				broken++
				receive(t, seen, "request")
				side--
				continue
			}
			maps.DeleteFunc(resp.Header, func(name string, _ []string) bool {
				return strings.HasPrefix(name, "Ratelimit") || name == "Date" || name == "Content-Type" // which theirs guesses
			})
			if len(body) == 0 && resp.ContentLength <= 0 { // the standard library sets it only if a goroutine runs early
				resp.ContentLength = 0
				resp.Header.Del("Content-Length")
			}
			answers[side] = fmt.Sprintf("%d %v %d %x %v %v", resp.StatusCode, resp.Header, resp.ContentLength, sha256.Sum256(body), resp.Trailer, err)
			arrived[side] = receive(t, seen, "request")
		}
		if arrived[0] != arrived[1] {
			t.Fatalf("seed %d, request %d: the upstream was sent\n%s\nwant\n%s", seed, i, arrived[1], arrived[0])
		}
		if answers[0] != answers[1] {
			t.Fatalf("seed %d, request %d: the client was sent\n%s\nwant\n%s", seed, i, answers[1], answers[0])
		}
	}
}

// randomRequest returns a request with a script for the response. Its host is the same for every front.
func randomRequest(t *testing.T, random *rand.Rand, front string) *http.Request {
	t.Helper()
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	var body io.Reader
	method := pick("GET", "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND")
	if method != "GET" && method != "HEAD" {
		text := strings.Repeat("b", random.IntN(3)*random.IntN(60000))
		switch random.IntN(3) {
		case 0:
			body = strings.NewReader(text) // of known length
		case 1:
			body = io.MultiReader(strings.NewReader(text))
		}
	}
	path := pick("/", "/a/b", "/a%2Fb", "/a%20b/", "/%C3%A9", "/a;p=1/b") + pick("", "?", "?x=1&y=%20", "?a;b&c=1", "?x=%zz&y=1")
	r, err := http.NewRequest(method, front+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = pick("a.test", "B.test:81")
	for range random.IntN(8) {
		r.Header.Add(pick("X-A", "X-B", "Cookie", "Te", "Accept", "Keep-Alive", "Proxy-Connection", "X-Forwarded-For", "Forwarded", "Authorization", "Range"),
			pick("", "1", "trailers", "a, b", "close", "bytes=1-", strings.Repeat("v", 500)))
	}
	if random.IntN(2) == 0 {
		r.Header["User-Agent"] = nil // which is none
	}
	if random.IntN(4) == 0 {
		r.Header.Set("Connection", pick("X-A", "x-b, keep-alive", "te"))
	}
	r.Header.Set("X-Play", fmt.Sprintf("%s %d %d %d", pick("200", "200", "201", "204", "301", "304", "404", "500", "503"), random.IntN(4), random.IntN(4)*random.IntN(50000), random.IntN(8)))
	return r
}

// play responds as the script of a request specifies: status, form and value of the length, and other properties.
func play(w http.ResponseWriter, script string) {
	var status, how, length, flags int
	fmt.Sscan(script, &status, &how, &length, &flags)
	h := w.Header()
	h["Set-Cookie"] = []string{"a=1", "b=2"}
	if flags&1 != 0 {
		h.Set("Connection", "X-Hop")
		h.Set("X-Hop", "1")
		h.Set("Keep-Alive", "timeout=1")
	}
	bodyless := status == 204 || status == 304
	if flags&4 != 0 && !bodyless {
		h.Set("Trailer", "X-Sum")
		defer h.Set("X-Sum", "42")
	} else if how == 0 && !bodyless {
		h.Set("Content-Length", strconv.Itoa(length))
	}
	w.WriteHeader(status)
	if how == 1 {
		w.(http.Flusher).Flush()
	}
	if !bodyless {
		io.WriteString(w, strings.Repeat("a", length))
	}
}
