// SPDX-License-Identifier: Apache-2.0

package httpapi_test

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
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/monitor"
	"github.com/metehq/mete/policy"
)

const rules = `{"rules": [{"name": "free", "description": "free users", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rps": 10, "burst": 20}}]}`

// A source returns the values that a test sets.
type source struct {
	mu     sync.Mutex
	totals monitor.Totals
	state  api.ServerState
}

func (s *source) Totals() monitor.Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.totals
}

func (s *source) State() api.ServerState {
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

// roles are the roles of tokens.
var roles = map[string]httpapi.Role{"Bearer r": httpapi.RoleRead, "Bearer op": httpapi.RoleOperate}

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

// A liveConfig configures an API for a test.
type liveConfig struct {
	httpapi.Live
	Limiter *mete.Limiter
	Source  monitor.Source
	Top     httpapi.Top
}

// newLive returns an API with a monitor. The test's cleanup closes both.
func newLive(t *testing.T, c liveConfig) *httpapi.API {
	t.Helper()
	if c.Limiter == nil {
		c.Limiter = newLimiter(t, rules)
	}
	if c.Source == nil {
		c.Source = &source{state: api.ServerState{Instance: "one", Ready: true}}
	}
	var err error
	if c.Monitor, err = monitor.New(c.Source, c.Limiter.Policy); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Monitor.Close)
	h, err := httpapi.New(c.Limiter, httpapi.Config{
		Admin: true, Live: c.Live, Top: c.Top,
		Role: func(r *http.Request) httpapi.Role { return roles[r.Header.Get("Authorization")] },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// askAs sends a request with a token and returns the answer.
func askAs(h http.Handler, token, method, target, body string, header ...string) *httptest.ResponseRecorder {
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

// follow opens a stream. The returned function ends it like a viewer that leaves.
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
