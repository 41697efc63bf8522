// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/dashboard"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

const rules = `{"rules": [{"name": "free", "description": "free users", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rps": 10, "burst": 20}}]}`

// A source is what a test says.
type source struct {
	mu     sync.Mutex
	totals dashboard.Totals
	state  dashboard.State
}

func (s *source) Totals() dashboard.Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.totals
}

func (s *source) State() dashboard.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// set changes what there is.
func (s *source) set(change func(*source)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// roles are who may what, by their token; "" is who has none.
var roles = map[string]dashboard.Viewer{
	"":          {Role: "none"},
	"Bearer r":  {Name: "reader", Role: "read", Look: true},
	"Bearer op": {Name: "operator", Role: "operate", Look: true, SeeKeys: true},
}

func viewer(r *http.Request) dashboard.Viewer { return roles[r.Header.Get("Authorization")] }

func newLimiter(t *testing.T, text string) *mete.Limiter {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := policy.Load([]byte(text), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(store, m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// newBoard returns a dashboard. The test's cleanup closes it.
func newBoard(t *testing.T, c dashboard.Config) *dashboard.Handler {
	t.Helper()
	if c.Limiter == nil {
		c.Limiter = newLimiter(t, rules)
	}
	if c.Source == nil {
		c.Source = &source{state: dashboard.State{Instance: "one", Ready: true}}
	}
	if c.Viewer == nil {
		c.Viewer = viewer
	}
	h, err := dashboard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// ask sends a request with a token and returns the answer.
func ask(h http.Handler, token, method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// An event is one of a stream.
type event struct {
	name, id string
	data     json.RawMessage
}

// read returns the next event of a stream.
func read(t *testing.T, from *bufio.Reader) (e event, ok bool) {
	t.Helper()
	for {
		line, err := from.ReadString('\n')
		switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); {
		case err != nil:
			return e, false
		case line == "\n" && e.name != "":
			return e, true
		case name == "event":
			e.name = value
		case name == "id":
			e.id = value
		case name == "data":
			e.data = json.RawMessage(value)
		}
	}
}

// A tap is a stream that a handler writes in this process, without a network, so that it
// works in a bubble of virtual time.
type tap struct {
	header http.Header
	status int
	out    *io.PipeWriter
}

func (w *tap) Header() http.Header    { return w.header }
func (w *tap) WriteHeader(status int) { w.status = status }
func (w *tap) Flush()                 {}
func (w *tap) Write(b []byte) (int, error) {
	return w.out.Write(bytes.Clone(b))
}

// follow opens a stream. The returned function ends it as a viewer does who goes away.
func follow(t *testing.T, h http.Handler, path string, header ...string) (events *bufio.Reader, leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "GET", path, nil)
	r.Header.Set("Authorization", "Bearer op")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	in, out := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.ServeHTTP(&tap{header: http.Header{}, out: out}, r)
		out.Close()
	}()
	return bufio.NewReader(in), func() {
		cancel()
		in.Close()
		<-done
	}
}
