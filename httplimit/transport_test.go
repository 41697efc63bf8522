// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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
)

// inProcess asks a handler, some way off.
type inProcess struct {
	handler http.Handler
	oneWay  time.Duration
}

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(p.oneWay)
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	time.Sleep(p.oneWay)
	return w.Result(), nil
}

// At 120% of the limit, our client is hardly ever rejected by our server and uses nearly the whole limit, in
// every dialect.
func TestTransport_ClosedLoop(t *testing.T) {
	const long, perSecond = 3 * time.Minute, 10
	per := func(d time.Duration) bucket.Rate {
		return bucket.Rate{Tokens: bucket.Tokens(perSecond*d/time.Second) * bucket.Token, Per: d}
	}
	for name, spec := range map[string]bucket.Spec{
		"token bucket":   {Capacity: 20 * bucket.Token, Rate: per(time.Second)},
		"fixed window":   {Algorithm: bucket.AlgorithmStepped, Capacity: 200 * bucket.Token, Rate: per(20 * time.Second)},
		"sliding window": {Algorithm: bucket.AlgorithmSlidingWindow, Rate: per(30 * time.Second)},
		"sliding log":    {Algorithm: bucket.AlgorithmSlidingLog, Rate: per(30 * time.Second)},
		"leaky bucket":   {Capacity: bucket.Token, Queue: 10 * bucket.Token, Rate: per(time.Second)},
	} {
		for _, dialect := range []string{"draft-11", "legacy", "x"} {
			t.Run(name+" "+dialect, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := routeOf(t, withoutPolicy(t), httplimit.Config{Fields: []string{dialect}},
						httplimit.Limit{Name: "l", Bucket: compile(t, spec), Key: httplimit.ByAddress()})
					var admitted, refused atomic.Int64
					counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						answer := serve(server, r)
						if answer.Code == 200 {
							admitted.Add(1)
						} else {
							refused.Add(1)
						}
						for name, values := range answer.Header() {
							w.Header()[name] = values
						}
						w.WriteHeader(answer.Code)
					})
					ctx, cancel := context.WithTimeout(t.Context(), long)
					defer cancel()
					client := &http.Client{Transport: httplimit.NewTransport(httplimit.TransportConfig{Base: inProcess{counted, 20 * time.Millisecond}})}
					offer(ctx, client, perSecond*12/10)
					used := 100 * float64(admitted.Load()) / (perSecond * long.Seconds())
					share := 100 * float64(refused.Load()) / float64(refused.Load()+admitted.Load())
					t.Logf("refused %.2f %%, used %.2f %%", share, used)
					if share >= 1 || used < 98 {
						t.Errorf("refused %.2f %%, used %.2f %%, want less than 1 and at least 98", share, used)
					}
				})
			})
		}
	}
}

// offer asks so often until ctx is done.
func offer(ctx context.Context, client *http.Client, perSecond int) {
	var group sync.WaitGroup
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for ctx.Err() == nil {
		group.Go(func() {
			r := httptest.NewRequestWithContext(ctx, "GET", "http://api.test/", nil)
			r.RequestURI = ""
			if res, err := client.Do(r); err == nil {
				res.Body.Close()
			}
		})
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	group.Wait()
}

// busy refuses so many requests and then answers with what it was sent.
func busy(refusals int, status int, header ...string) (http.Handler, *atomic.Int64) {
	asked := new(atomic.Int64)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if asked.Add(1) <= int64(refusals) {
			for _, line := range header {
				name, value, _ := strings.Cut(line, ": ")
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
			return
		}
		fmt.Fprintf(w, "%s %s", r.Method, body)
	}), asked
}

func TestTransport_Retries(t *testing.T) {
	once := func(t *testing.T, method, body string, replay bool) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://api.test/", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if !replay {
			r.GetBody = nil
		}
		return r
	}
	for _, tt := range []struct {
		what, method string
		replay       bool
		refusals     int
		status       int
		header       string
		wantStatus   int
		wantAsked    int64
	}{
		{"429", "GET", true, 1, 429, "Retry-After: 5", 200, 2},
		{"429 twice", "GET", true, 2, 429, "Retry-After: 5", 200, 3},
		{"429 too often", "GET", true, 9, 429, "Retry-After: 5", 429, 3},
		{"POST: nothing was done", "POST", true, 1, 429, "Retry-After: 5", 200, 2},
		{"a body that is gone", "POST", false, 1, 429, "Retry-After: 5", 429, 1},
		{"503", "PUT", true, 1, 503, "Retry-After: 5", 200, 2},
		{"503 to a POST: it may have been done", "POST", true, 1, 503, "Retry-After: 5", 503, 1},
		{"not told when", "GET", true, 1, 429, "X-Nothing: 1", 429, 1},
		{"later than anybody waits", "GET", true, 1, 429, "Retry-After: 86400", 429, 1},
		{"nonsense", "GET", true, 1, 429, "Retry-After: NaN", 429, 1},
		{"negative", "GET", true, 1, 429, "Retry-After: -5", 429, 1},
		{"another status", "GET", true, 1, 500, "Retry-After: 5", 500, 1},
	} {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler, asked := busy(tt.refusals, tt.status, tt.header)
				client := httplimit.NewTransport(httplimit.TransportConfig{Base: inProcess{handler, time.Millisecond}})
				begin := time.Now()
				res, err := client.RoundTrip(once(t, tt.method, "hello", tt.replay))
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(res.Body)
				if res.StatusCode != tt.wantStatus || asked.Load() != tt.wantAsked {
					t.Errorf("got status %d after %d requests, want %d after %d", res.StatusCode, asked.Load(), tt.wantStatus, tt.wantAsked)
				}
				if res.StatusCode == 200 && string(body) != tt.method+" hello" {
					t.Errorf("the server got %q", body)
				}
				if least := time.Duration(tt.wantAsked-1) * 5 * time.Second; time.Since(begin) < least {
					t.Errorf("took %v, want at least %v", time.Since(begin), least)
				}
			})
		})
	}
}

// A refusal stops everything that would go to the same server, and what cannot
// wait so long is told at once.
func TestTransport_Pauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, asked := busy(1, 429, "Retry-After: 30")
		client := httplimit.NewTransport(httplimit.TransportConfig{Base: inProcess{handler, time.Millisecond}, MaxRetries: -1})
		get := func(ctx context.Context, url string) error {
			r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.RoundTrip(r)
			return err
		}
		if err := get(t.Context(), "http://api.test/"); err != nil {
			t.Fatal(err)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := get(soon, "http://api.test/other"); !errors.Is(err, mete.ErrDeadlineTooSoon) || asked.Load() != 1 {
			t.Errorf("got error %v after %d requests, want ErrDeadlineTooSoon after 1", err, asked.Load())
		}
		if err := get(soon, "http://other.test/"); err != nil {
			t.Errorf("another server: %v", err)
		}
		begin := time.Now()
		if err := get(t.Context(), "http://api.test/"); err != nil || time.Since(begin) < 29*time.Second {
			t.Errorf("got error %v after %v, want none after 30s", err, time.Since(begin))
		}
	})
}

// A server that rejects with an immediate Retry-After is not flooded.
func TestTransport_RefusedForNow(t *testing.T) {
	for _, header := range []string{"Retry-After: 0", "Retry-After: Mon, 01 Jan 1990 00:00:00 GMT"} {
		synctest.Test(t, func(t *testing.T) {
			handler, asked := busy(1000, 429, header)
			client := httplimit.NewTransport(httplimit.TransportConfig{Base: inProcess{handler, time.Millisecond}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			offer(ctx, &http.Client{Transport: client}, 10)
			if got := asked.Load(); got > 20 {
				t.Errorf("%s: asked %d times in a minute, want hardly ever", header, got)
			}
		})
	}
}

// Wrong announcements of a server do not make the client wait forever.
func TestTransport_UsedUpForLong(t *testing.T) {
	for _, header := range []string{`RateLimit: "a";r=0;t=999999999`, "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 99999999999999"} {
		synctest.Test(t, func(t *testing.T) {
			handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for _, line := range strings.Split(header, "\n") {
					name, value, _ := strings.Cut(line, ": ")
					w.Header().Set(name, value)
				}
			})
			client := &http.Client{Transport: httplimit.NewTransport(httplimit.TransportConfig{Base: inProcess{handler, time.Millisecond}})}
			begin := time.Now()
			for i := range 3 {
				res, err := client.Get("http://api.test/")
				if err == nil {
					res.Body.Close()
				}
				if i > 0 && !errors.Is(err, mete.ErrDeadlineTooSoon) {
					t.Errorf("request %d: got error %v, want ErrDeadlineTooSoon", i, err)
				}
			}
			if took := time.Since(begin); took > time.Second {
				t.Errorf("that took %v, want it at once: nothing is under way that could say otherwise", took)
			}
		})
	}
}
