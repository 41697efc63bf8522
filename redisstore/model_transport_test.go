// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/redisstore"
)

// newModelClient returns a client with a limiter and a connection of its own, as of another process.
func newModelClient(t *testing.T, url string, maxWait time.Duration) *http.Client {
	t.Helper()
	m, err := policy.Load([]byte(`{"name": "chat", "limit_keys": [], "deadline": "10s", "algorithm": "token_bucket_llm", "tokens_per_minute": 1000000}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := redisstore.NewLimiter(t.Context(), url, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	transport, err := httplimit.NewModelTransport(l, httplimit.ModelTransportConfig{MaxWait: maxWait})
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: transport}
}

func askModel(c *http.Client, url, model string) (status int, err error) {
	res, err := c.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(fmt.Sprintf(`{"model": %q, "max_tokens": 5, "messages": []}`, model)))
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// Processes that share Redis obey the longest pause that a provider has announced to one of them.
func TestModelTransport_PausesAllProcesses(t *testing.T) {
	const clients = 8
	var arrived sync.WaitGroup
	arrived.Add(clients)
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := calls.Add(1)
		if n > clients {
			return
		}
		arrived.Done()
		arrived.Wait()
		w.Header().Set("Retry-After", fmt.Sprint(400*n))
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	url := "redis://" + proctest.StartRedis(t).Addr
	var group sync.WaitGroup
	for range clients {
		c := newModelClient(t, url, -1)
		group.Go(func() {
			if status, err := askModel(c, server.URL, "m"); err != nil || status != http.StatusTooManyRequests {
				t.Errorf("status %d (%v)", status, err)
			}
		})
	}
	group.Wait()
	c := newModelClient(t, url, -1)
	_, err := askModel(c, server.URL, "m")
	denied, ok := errors.AsType[*httplimit.DeniedError](err)
	if !ok || !denied.Provider || denied.RetryAfter <= 400*(clients-1)*time.Second || denied.RetryAfter > 400*clients*time.Second {
		t.Errorf("got %v, want a pause of about %d s", err, 400*clients)
	}
	if status, err := askModel(c, server.URL, "other"); err != nil || status != http.StatusOK {
		t.Errorf("another model: status %d (%v)", status, err)
	}
}

// A request of another process waits for the end of the pause.
func TestModelTransport_WaitsForAllProcesses(t *testing.T) {
	const pause = 200 * time.Millisecond
	var calls atomic.Int32
	var first, second time.Time
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) > 1 {
			second = time.Now()
			return
		}
		first = time.Now()
		w.Header().Set("Retry-After-Ms", fmt.Sprint(pause.Milliseconds()))
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	url := "redis://" + proctest.StartRedis(t).Addr
	for _, want := range []int{http.StatusTooManyRequests, http.StatusOK} {
		if status, err := askModel(newModelClient(t, url, 0), server.URL, "m"); err != nil || status != want {
			t.Fatalf("status %d (%v), want %d", status, err, want)
		}
	}
	// The clocks of Redis and of this process are read a little apart.
	if took := second.Sub(first); took < pause-time.Millisecond {
		t.Errorf("the second request came %v after the first", took)
	}
}
