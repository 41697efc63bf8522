// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/internal/testkit"
)

// An endpoint answers requests without a network.
type endpoint struct {
	mu       sync.Mutex
	statuses []int // of the next answers; then 200. 0: no answer
	bodies   []string
	ids      []string
	at       []time.Time
	after    string // Retry-After
}

func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bodies, e.ids, e.at = append(e.bodies, string(body)), append(e.ids, r.Header.Get("Idempotency-Key")), append(e.at, time.Now())
	status := http.StatusOK
	if len(e.statuses) > 0 {
		status, e.statuses = e.statuses[0], e.statuses[1:]
	}
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: status, Body: http.NoBody, Header: http.Header{"Retry-After": {e.after}}}, nil
}

// run runs a sender over the endpoint in a bubble, until stop.
func run(t *testing.T, e *endpoint, c Config) (s *Sender, log *testkit.Log, stop func()) {
	t.Helper()
	log = new(testkit.Log)
	c.URL, c.Log = "https://siem.example.com/denials", log.Logger()
	if c.Drain == 0 {
		c.Drain = 10 * time.Second
	}
	s = New(c)
	s.client.Transport = e
	s.random = func() float64 { return 0.5 }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.Run(ctx)
		close(ended)
	}()
	return s, log, func() {
		cancel()
		<-ended
	}
}

func write(s *Sender, from, to int) {
	for i := from; i <= to; i++ {
		fmt.Fprintf(s, "{\"n\":%d}\n", i)
	}
}

func lines(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "{\"n\":%d}\n", i)
	}
	return b.String()
}

func wantBodies(t *testing.T, e *endpoint, want ...string) {
	t.Helper()
	if strings.Join(e.bodies, "|") != strings.Join(want, "|") {
		t.Errorf("sent %q, want %q", e.bodies, want)
	}
}

// The rest waits for the interval, also if the queue became full while another batch was sent.
func TestSender_BatchesFillDuringARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{statuses: []int{http.StatusServiceUnavailable}}
		s, _, stop := run(t, e, Config{Batch: 2, Interval: time.Hour, Queue: 100})
		write(s, 1, 2)
		synctest.Wait()
		write(s, 3, 5)
		time.Sleep(time.Minute)
		synctest.Wait()
		wantBodies(t, e, lines(1, 2), lines(1, 2), lines(3, 4))
		stop()
		wantBodies(t, e, lines(1, 2), lines(1, 2), lines(3, 4), lines(5, 5))
	})
}

// A full batch goes at once, the rest after the interval, each with a key of its own.
func TestSender_Batches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := new(endpoint)
		s, _, stop := run(t, e, Config{Batch: 3, Interval: 5 * time.Second, Queue: 100})
		begin := time.Now()
		write(s, 1, 3)
		synctest.Wait()
		wantBodies(t, e, lines(1, 3))
		write(s, 4, 5)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		wantBodies(t, e, lines(1, 3), lines(4, 5))
		if e.at[0] != begin || e.at[1].Sub(begin) != 5*time.Second || e.ids[0] == e.ids[1] || len(e.ids[0]) < 20 {
			t.Errorf("sent at %v with the keys %q", e.at, e.ids)
		}
		stop()
		if got, want := s.Stats(), (Stats{Sent: 5}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// Retries repeat the key and the lines, and wait longer each time.
func TestSender_Retries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{statuses: []int{503, 0, 429}}
		s, log, stop := run(t, e, Config{Batch: 2, Interval: time.Hour, Queue: 100})
		write(s, 1, 2)
		time.Sleep(time.Minute)
		synctest.Wait()
		wantBodies(t, e, lines(1, 2), lines(1, 2), lines(1, 2), lines(1, 2))
		for i, wait := range []time.Duration{1500, 3000, 6000} {
			if got := e.at[i+1].Sub(e.at[i]); got != wait*time.Millisecond || e.ids[i+1] != e.ids[0] {
				t.Errorf("attempt %d: after %v with the key %q, want %d ms and %q", i+2, got, e.ids[i+1], wait, e.ids[0])
			}
		}
		stop()
		if got, want := s.Stats(), (Stats{Sent: 2}); got != want || log.Count("retrying") != 1 {
			t.Errorf("%+v, want %+v; log:\n%s", got, want, log)
		}
	})
}

// A wait that the endpoint asks for is kept, up to a bound.
func TestSender_RetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for after, want := range map[string]time.Duration{"20": 20 * time.Second, "9999": mostWait, "soon": 1500 * time.Millisecond} {
			e := &endpoint{statuses: []int{503}, after: after}
			s, _, stop := run(t, e, Config{Batch: 1, Interval: time.Hour, Queue: 100})
			write(s, 1, 1)
			time.Sleep(2 * mostWait)
			stop()
			if len(e.at) != 2 || e.at[1].Sub(e.at[0]) != want {
				t.Errorf("Retry-After %s: sent at %v, want %v between them", after, e.at, want)
			}
		}
	})
}

// A batch that is refused, or fails too often, is lost, and the next one is sent.
func TestSender_Refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{statuses: []int{401, 302}}
		s, log, stop := run(t, e, Config{Batch: 1, Interval: time.Hour, Queue: 100})
		write(s, 1, 3)
		synctest.Wait()
		wantBodies(t, e, lines(1, 1), lines(2, 2), lines(3, 3))
		e.statuses = make([]int, maxAttempts)
		write(s, 4, 5)
		time.Sleep(time.Hour)
		stop()
		if got, want := s.Stats(), (Stats{Sent: 2, Failed: 3}); got != want || log.Count("lines lost") != 3 {
			t.Errorf("%+v, want %+v; log:\n%s", got, want, log)
		}
		if len(e.bodies) != 3+maxAttempts+1 {
			t.Errorf("%d requests, want %d", len(e.bodies), 3+maxAttempts+1)
		}
	})
}

// While the endpoint is down, the oldest lines are dropped and counted.
func TestSender_Bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{statuses: []int{503}}
		s, _, stop := run(t, e, Config{Batch: 2, Interval: time.Hour, Queue: 4})
		write(s, 1, 2) // on their way
		synctest.Wait()
		write(s, 3, 9)
		if got, want := s.Stats(), (Stats{Dropped: 3, Waiting: 4}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		_, _ = s.Write([]byte(strings.Repeat("x", maxLineBytes+1)))
		time.Sleep(time.Minute)
		synctest.Wait()
		wantBodies(t, e, lines(1, 2), lines(1, 2), lines(6, 7), lines(8, 9))
		stop()
		if got, want := s.Stats(), (Stats{Sent: 6, Dropped: 4}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// The lines that are left are sent when the sender stops, within the drain time.
func TestSender_Drain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := new(endpoint)
		s, _, stop := run(t, e, Config{Batch: 10, Interval: time.Hour, Queue: 100})
		write(s, 1, 4)
		stop()
		wantBodies(t, e, lines(1, 4))

		e = &endpoint{statuses: make([]int, 100)}
		s, log, stop := run(t, e, Config{Batch: 2, Interval: time.Hour, Queue: 100, Drain: 4 * time.Second})
		write(s, 1, 5)
		synctest.Wait()
		begin := time.Now()
		stop()
		if took := time.Since(begin); took != 4*time.Second {
			t.Errorf("stopped after %v, want the drain time", took)
		}
		if len(e.ids) < 3 || e.ids[1] != e.ids[0] || e.bodies[1] != e.bodies[0] {
			t.Errorf("after the stop, %q is sent with the keys %q, want the first batch again with its key", e.bodies, e.ids)
		}
		if got, want := s.Stats(), (Stats{Failed: 5}); got != want || log.Count("lines=5") != 1 {
			t.Errorf("%+v, want %+v; log:\n%s", got, want, log)
		}
	})
}

// A receiver can verify each request. Secrets and tokens are in no log.
func TestSender_Request(t *testing.T) {
	var got *http.Request
	var body []byte
	received := make(chan struct{}, 10)
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusForbidden)
		received <- struct{}{}
	}))
	defer srv.Close()
	log := new(testkit.Log)
	secret := []byte("canary secret")
	s := New(Config{
		URL: srv.URL + "/in?token=canary", Headers: map[string]string{"Authorization": "Bearer canary"}, Secret: secret,
		Batch: 1, Interval: time.Hour, Queue: 10, Drain: time.Minute, Log: log.Logger(),
	})
	s.client.Transport = srv.Client().Transport
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.Run(ctx)
		close(ended)
	}()
	write(s, 1, 1)
	<-received
	cancel()
	<-ended
	if got.URL.RawQuery != "token=canary" || got.Header.Get("Authorization") != "Bearer canary" || got.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("sent %v %v", got.URL, got.Header)
	}
	if want := Sign(secret, got.Header.Get("X-Mete-Timestamp"), body); got.Header.Get("X-Mete-Signature") != want || string(body) != lines(1, 1) {
		t.Errorf("signature %q of %q, want %q", got.Header.Get("X-Mete-Signature"), body, want)
	}
	if strings.Contains(log.String(), "canary") || log.Count("status 403") != 1 {
		t.Errorf("log:\n%s", log)
	}
}

// OpenSSL makes the same signature: printf '1700000000.{}' | openssl dgst -sha256 -hmac key
func TestSign(t *testing.T) {
	const want = "sha256=9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae"
	if got := Sign([]byte("key"), "1700000000", []byte("{}")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A batch that the endpoint refuses while the sender stops is not sent again, and counted once.
func TestSender_RefusedAtStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{statuses: []int{http.StatusBadRequest, http.StatusBadRequest}}
		ctx, cancel := context.WithCancel(t.Context())
		s := New(Config{URL: "https://siem.example.com/denials", Batch: 1, Interval: time.Second, Queue: 10, Drain: time.Second,
			Log: slog.New(slog.NewTextHandler(writerFunc(cancel), nil))})
		s.client.Transport = e
		write(s, 1, 1)
		s.Run(ctx) // the log of the refusal ends it
		if got, want := s.Stats(), (Stats{Failed: 1}); got != want || len(e.bodies) != 1 {
			t.Errorf("%+v after %d requests, want %+v after 1", got, len(e.bodies), want)
		}
	})
}

// A writerFunc is a writer that is called with each write.
type writerFunc func()

func (f writerFunc) Write(text []byte) (int, error) {
	f()
	return len(text), nil
}
