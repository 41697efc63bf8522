// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/proof/meted"
)

// connections are those of all clients. A quiet moment closes them.
var connections = &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second}

// asker is for requests that are answered soon.
var asker = &http.Client{Transport: connections, Timeout: meted.Patience}

// An answer is a server's response with its times.
type answer struct {
	span   // from asking to having read it all
	status int
	header http.Header
	body   []byte
	err    error
}

// ask sends a request, unless the moment is quiet.
func (w *world) ask(method, url string, header map[string]string, body []byte) answer {
	return w.askWithin(context.Background(), method, url, header, body)
}

func (w *world) askWithin(ctx context.Context, method, url string, header map[string]string, body []byte) (a answer) {
	w.gate.RLock()
	defer w.gate.RUnlock()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	a.begin = now()
	defer func() { a.end = now() }()
	resp, err := asker.Do(req)
	if err != nil {
		a.err = err
		return a
	}
	defer resp.Body.Close()
	a.status, a.header = resp.StatusCode, resp.Header
	a.body, a.err = io.ReadAll(resp.Body)
	return a
}

// take requests a token from a server's API. The gateway serves that API at its admin address.
func (w *world) take(s *server, attributes map[string]string) (answer, api.Decision) {
	body, err := json.Marshal(map[string]any{"attributes": attributes})
	if err != nil {
		return answer{err: err}, api.Decision{}
	}
	to, header := s.URL, map[string]string{"Content-Type": "application/json"}
	if s == w.gateway {
		to, header["Authorization"] = s.AdminURL, "Bearer "+s.token
	}
	a := w.ask(http.MethodPost, to+"/v1/take?status=429", header, body)
	var d api.Decision
	if a.err == nil {
		a.err = json.Unmarshal(a.body, &d)
	}
	return a, d
}

// pass sends a request through the gateway.
func (w *world) pass(header, value string) answer {
	n := strconv.FormatInt(now(), 36)
	a := w.ask(http.MethodGet, w.gateway.URL+"/hello?n="+n, map[string]string{header: value}, nil)
	if a.err == nil && a.status == http.StatusOK {
		w.tally.passed.Add(1)
		if got, want := string(a.body), "hello "+n; got != want {
			w.wrongs.add("through the gateway: got %q, want %q", got, want)
		}
	}
	return a
}

// A verdict classifies an answer.
type verdict int

const (
	useless  verdict = iota // no information: the store is down or the server is stopping
	admitted                // 200
	denied                  // 429
)

// closed judges an answer under a closed rule.
func (w *world) closed(who string, a answer) verdict {
	v := w.open(who, a, http.StatusServiceUnavailable)
	if v == useless && a.err == nil && a.status == http.StatusServiceUnavailable && !w.outages.during(a.span) {
		w.wrongs.add("%s: 503 while the store was there, after %d µs: %.300s", who, a.end-a.begin, a.body)
	}
	return v
}

// open judges an answer under a rule that is not closed, and may otherwise have the
// statuses of tolerated.
func (w *world) open(who string, a answer, tolerated ...int) verdict {
	switch {
	case a.err != nil:
		if !w.leaving.Load() {
			w.wrongs.add("%s: %v", who, a.err)
		}
		return useless
	case a.status == http.StatusOK:
		w.tally.admitted.Add(1)
		return admitted
	case a.status == http.StatusTooManyRequests:
		w.tally.denied.Add(1)
		if _, ok := retryAfter(a); !ok {
			w.wrongs.add("%s: 429 with Retry-After %q", who, a.header.Get("Retry-After"))
		}
		return denied
	}
	for _, status := range tolerated {
		if a.status == status {
			w.tally.unavailable.Add(1)
			return useless
		}
	}
	w.wrongs.add("%s: status %d: %.300s", who, a.status, a.body)
	return useless
}

// retryAfter is when a denied client may come back.
func retryAfter(a answer) (at int64, ok bool) {
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	return a.end + int64(seconds)*1e6, err == nil && seconds >= 1
}
