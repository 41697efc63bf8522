// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// slow is a limit of five per day, so that nothing refills in a test.
const slow = `"rate": "5/1d", "burst": 5`

// observed is a middleware with a rule named guesses that has the fields, and its limiter. Fields of an algorithm come
// in config. The deadline lets a busy machine settle a request before its response ends.
func observed(t testing.TB, fields, config string, settled func(*policy.Settlement)) (*httplimit.Middleware, *mete.Limiter) {
	t.Helper()
	m, err := policy.Load(fmt.Appendf(nil, `{"rules": [{"name": "guesses", "limit_keys": [], "deadline": "10s", %s "algorithm_config": {%s}}]}`, fields, config), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	hook := func(_ context.Context, s *policy.Settlement) {
		if settled != nil {
			settled(s)
		}
	}
	limiter, err := mete.New(store, m, mete.Config{OnSettlement: hook})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := httplimit.New(limiter, httplimit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return mw, limiter
}

const failures = `"charge_on": {"status": [401, 403, "5xx"]},`

// left returns the tokens of the rule's bucket.
func left(t testing.TB, l *mete.Limiter) bucket.Tokens {
	t.Helper()
	b, err := l.Bucket(t.Context(), "guesses:")
	if err != nil {
		t.Fatal(err)
	}
	return b.Room()
}

// 64 parallel guesses against a limit of five admit five, although no outcome is known when they arrive.
func TestChargeOn_ParallelGuesses(t *testing.T) {
	mw, limiter := observed(t, failures, slow, nil)
	arrived, passed := make(chan struct{}, 64), atomic.Int64{}
	handler := mw.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		passed.Add(1)
		<-arrived
		w.WriteHeader(http.StatusUnauthorized)
	}))
	var all sync.WaitGroup
	denied := atomic.Int64{}
	for range 64 {
		all.Go(func() {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest("POST", "/login", nil))
			if w.Code == http.StatusTooManyRequests {
				if denied.Add(1) == 59 {
					close(arrived)
				}
			}
		})
	}
	all.Wait()
	if passed.Load() != 5 || denied.Load() != 59 || left(t, limiter) != 0 {
		t.Errorf("%d guesses passed, %d were denied, %v tokens are left, want 5, 59 and 0", passed.Load(), denied.Load(), left(t, limiter))
	}
}

// The outcome decides, whatever ends the request.
func TestChargeOn_Outcomes(t *testing.T) {
	write := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) }
	}
	gone, leave := context.WithCancel(context.Background())
	leave()
	grpc := func(code string, early bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/grpc+proto")
			if early {
				w.Header().Set("Grpc-Status", code)
			}
			w.WriteHeader(200)
			if !early {
				w.Header().Set(http.TrailerPrefix+"Grpc-Status", code)
			}
		}
	}
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		ctx     context.Context
		charged bool
	}{
		"listed":                       {handler: write(401), charged: true},
		"listed class":                 {handler: write(503), charged: true},
		"not listed":                   {handler: write(404)},
		"nothing sent":                 {handler: func(http.ResponseWriter, *http.Request) {}},
		"only a body":                  {handler: func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }},
		"only a flush":                 {handler: func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }},
		"informational, then listed":   {handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(401) }, charged: true},
		"informational, then another":  {handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(200) }},
		"the first status counts":      {handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); w.WriteHeader(401) }},
		"panic before the response":    {handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, charged: true},
		"panic after the response":     {handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); panic(http.ErrAbortHandler) }},
		"client gone, nothing sent":    {handler: func(http.ResponseWriter, *http.Request) {}, ctx: gone, charged: true},
		"client gone, then not listed": {handler: write(200), ctx: gone, charged: true},
		"gRPC, listed by its status":   {handler: grpc("16", false), charged: true},
		"gRPC, not listed":             {handler: grpc("5", false)},
		"gRPC, only a header":          {handler: grpc("7", true), charged: true},
		"gRPC, success":                {handler: grpc("0", false)},
		"gRPC without a code":          {handler: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/grpc") }, charged: true},
		"grpc-web counts as HTTP":      {handler: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/grpc-web") }},
	} {
		t.Run(name, func(t *testing.T) {
			told := 0
			mw, limiter := observed(t, failures, slow, func(s *policy.Settlement) {
				told++
				if charged := s.Charged == bucket.Token; s.Rule.Name != "guesses" || s.Limit.Name != "guesses" || s.Reserved != bucket.Token || charged != tt.charged || s.Err != nil {
					t.Errorf("got settlement %+v, want charged %v", s, tt.charged)
				}
			})
			r := httptest.NewRequest("POST", "/login", nil)
			if tt.ctx != nil {
				r = r.WithContext(tt.ctx)
			}
			func() {
				defer func() { _ = recover() }()
				admission, ok := mw.Admit(httptest.NewRecorder(), r.WithContext(t.Context()))
				if !ok {
					t.Fatal("the request was denied")
				}
				admission.Serve(httptest.NewRecorder(), r, tt.handler)
			}()
			want := 5 * bucket.Token
			if tt.charged {
				want -= bucket.Token
			}
			if got := left(t, limiter); got != want || told != 1 {
				t.Errorf("%v tokens are left after %d settlements, want %v", got, told, want)
			}
		})
	}
}

// The refund comes before the response begins, so a client that reads it can send the next request at once.
func TestChargeOn_RefundComesFirst(t *testing.T) {
	mw, _ := observed(t, failures, `"rate": "1/1d", "burst": 1`, nil)
	server := httptest.NewServer(mw.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "in") })))
	t.Cleanup(server.Close)
	for i := range 20 {
		resp, err := http.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("login %d: got %d, want 200: the one before was refunded", i, resp.StatusCode)
		}
	}
}

// Frameworks report their response to Run.
func TestChargeOn_Run(t *testing.T) {
	mw, limiter := observed(t, failures, slow, nil)
	r := httptest.NewRequest("POST", "/login", nil)
	run := func(handler func() httplimit.Response) {
		t.Helper()
		admission, ok := mw.Admit(httptest.NewRecorder(), r)
		if !ok {
			t.Fatal("the request was denied")
		}
		defer func() { _ = recover() }()
		admission.Run(r, handler)
	}
	run(func() httplimit.Response { return httplimit.Response{} })
	run(func() httplimit.Response { return httplimit.Response{Status: 404} })
	if got := left(t, limiter); got != 5*bucket.Token {
		t.Errorf("after successes: %v tokens, want 5", got)
	}
	run(func() httplimit.Response { return httplimit.Response{Status: 401} })
	run(func() httplimit.Response { panic("crash") })
	if got := left(t, limiter); got != 3*bucket.Token {
		t.Errorf("after two failures: %v tokens, want 3", got)
	}
	calls := 0
	(*httplimit.Admission)(nil).Run(r, func() httplimit.Response { calls++; return httplimit.Response{} })
	if calls != 1 {
		t.Errorf("a nil admission called the handler %d times", calls)
	}
}

// A request with a hijacked connection ends with the connection, after its handler has returned.
func TestChargeOn_Hijack(t *testing.T) {
	testHijack(t, func(h http.Handler) http.Handler { return h })
}

// Middleware in front may only unwrap the writer that can hijack, and hide it behind its own methods.
func TestChargeOn_HijackUnwrapped(t *testing.T) {
	testHijack(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(unwrapper{w}, r) })
	})
}

type unwrapper struct{ http.ResponseWriter }

func (w unwrapper) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func testHijack(t *testing.T, wrap func(http.Handler) http.Handler) {
	t.Helper()
	settled := make(chan policy.Settlement, 1)
	mw, limiter := observed(t, `"charge_on": {"status": [101], "response_bytes": 1000},`, slow, func(s *policy.Settlement) { settled <- *s })
	conns := make(chan net.Conn, 1)
	server := httptest.NewServer(wrap(mw.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprint(buffered, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
		buffered.Flush()
		conns <- conn
	}))))
	t.Cleanup(server.Close)
	client, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	fmt.Fprint(client, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %v (%v), want 101", resp, err)
	}
	conn := <-conns
	if got := left(t, limiter); got != 4*bucket.Token || len(settled) > 0 {
		t.Errorf("while the connection is open: %v tokens, %d settlements", got, len(settled))
	}
	fmt.Fprint(conn, strings.Repeat("x", 2000))
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Error(err)
	}
	conn.Close()
	conn.Close()
	if s := <-settled; s.Charged <= 2*bucket.Token || s.Charged > 3*bucket.Token || s.Reserved != bucket.Token {
		t.Errorf("got %+v, want a charge of 2 tokens and the response header", s)
	}
}

// A response pays for its bytes at the end. Bytes that net/http drops cost nothing.
func TestChargeOn_Bytes(t *testing.T) {
	for name, tt := range map[string]struct {
		method, config string
		handler        http.HandlerFunc
		want           bucket.Tokens // left of 100
	}{
		"a body": {handler: func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 10<<10)) }, want: 90 * bucket.Token},
		"a copied body": {handler: func(w http.ResponseWriter, _ *http.Request) {
			io.Copy(w, strings.NewReader(strings.Repeat("x", 10<<10)))
		}, want: 90 * bucket.Token},
		"a part of a token": {handler: func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x") }, want: 100*bucket.Token - 1},
		"HEAD":              {method: "HEAD", handler: func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 10<<10)) }, want: 100 * bucket.Token},
		"nothing":           {handler: func(http.ResponseWriter, *http.Request) {}, want: 100 * bucket.Token},
		"at least":          {config: `, "min_cost": 2`, handler: func(http.ResponseWriter, *http.Request) {}, want: 98 * bucket.Token},
		"at most":           {config: `, "max_cost": 2`, handler: func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 10<<10)) }, want: 98 * bucket.Token},
		"a debt":            {handler: func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 200<<10)) }, want: 0},
		"a crash in the middle": {handler: func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat("x", 10<<10))
			panic(http.ErrAbortHandler)
		}, want: 90 * bucket.Token},
	} {
		t.Run(name, func(t *testing.T) {
			mw, limiter := observed(t, `"charge_on": {"response_bytes": "1KiB"},`, `"rate": "100/1d", "burst": 100, "default_cost": 50`+tt.config, nil)
			if tt.method == "" {
				tt.method = "GET"
			}
			func() {
				defer func() { _ = recover() }()
				mw.Wrap(tt.handler).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(tt.method, "/", nil))
			}()
			if got := left(t, limiter); got < tt.want || got > tt.want+1 { // a thousandth refills within a second
				t.Errorf("%v tokens are left, want %v", got, tt.want)
			}
		})
	}
}

// The cost that a response names replaces the reserved one. A cost in the trailer counts too.
func TestChargeOn_ResponseHeader(t *testing.T) {
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		want    bucket.Tokens // left of 100
	}{
		"named":          {handler: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Cost", "25.5") }, want: 74_500},
		"free":           {handler: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Cost", "0") }, want: 100_000},
		"above max_cost": {handler: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Cost", "1000") }, want: 20_000},
		"absent":         {handler: func(http.ResponseWriter, *http.Request) {}, want: 90_000},
		"empty":          {handler: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Cost", "") }, want: 90_000},
		"a word":         {handler: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Cost", "ten") }, want: 90_000},
		"negative":       {handler: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Cost", "-5") }, want: 90_000},
		"repeated":       {handler: func(w http.ResponseWriter, _ *http.Request) { w.Header()["X-Cost"] = []string{"1", "2"} }, want: 90_000},
		"in the trailer": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200)
			w.Header().Set(http.TrailerPrefix+"X-Cost", "3")
		}, want: 97_000},
		"after the header": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Cost", "3")
			w.WriteHeader(200)
			w.Header().Set("X-Cost", "4")
		}, want: 97_000},
	} {
		t.Run(name, func(t *testing.T) {
			mw, limiter := observed(t, "", `"rate": "100/1d", "burst": 100, "cost_source": "response_header:x-cost", "default_cost": 10, "max_cost": 80`, nil)
			mw.Wrap(tt.handler).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			if got := left(t, limiter); got < tt.want || got > tt.want+1 {
				t.Errorf("%v tokens are left, want %v", got, tt.want)
			}
		})
	}
}

// A stalled store delays a response no longer than a take, and the refund follows in the background.
func TestChargeOn_StalledStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := policy.Load(fmt.Appendf(nil, `{"name": "guesses", "limit_keys": [], %s "algorithm_config": {%s}}`, failures, slow), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		inner, err := memstore.New(memstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		store := &stallingStore{Store: inner, release: make(chan struct{})}
		limiter, err := mete.New(store, m, mete.Config{})
		if err != nil {
			t.Fatal(err)
		}
		mw, err := httplimit.New(limiter, httplimit.Config{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		mw.Wrap(hello).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		if took := time.Since(began); took != policy.DefaultDeadline {
			t.Errorf("the response took %v, want %v", took, policy.DefaultDeadline)
		}
		close(store.release)
		synctest.Wait()
		if got := left(t, limiter); got != 5*bucket.Token {
			t.Errorf("%v tokens are left, want 5", got)
		}
	})
}

// A stallingStore refunds after release is closed.
type stallingStore struct {
	mete.Store
	release chan struct{}
}

func (s *stallingStore) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	select {
	case <-s.release:
		return s.Store.Refund(ctx, refunds, id)
	case <-ctx.Done():
		return errors.Join(errors.New("stalled"), ctx.Err())
	}
}
