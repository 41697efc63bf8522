// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
)

// The dashboard's files are public, and its data requires a role.
func TestBoard_Roles(t *testing.T) {
	t.Parallel()
	s := start(t, withTokens())
	for _, test := range []struct {
		method, path string
		want         [4]int // no token, read, operate, configure
	}{
		{"GET", "/dashboard/", [4]int{200, 200, 200, 200}},
		{"GET", "/dashboard/ui/base.css", [4]int{200, 200, 200, 200}},
		{"GET", "/dashboard/none.js", [4]int{404, 404, 404, 404}},
		{"GET", "/v1/me", [4]int{401, 200, 200, 200}},
		{"GET", "/v1/traffic", [4]int{401, 200, 200, 200}},
		{"HEAD", "/v1/traffic/stream", [4]int{401, 200, 200, 200}},
		{"GET", "/", [4]int{404, 404, 404, 404}}, // a program's; of browsers see below
	} {
		for i, token := range []string{"", readerToken, operatorToken, ownerToken} {
			if got, answer := s.as(token, test.method, test.path, ""); got != test.want[i] {
				t.Errorf("%s %s as %q: %d %s, want %d", test.method, test.path, token, got, answer, test.want[i])
			}
		}
	}
	var me api.Me
	_, answer := s.as(operatorToken, "GET", "/v1/me", "")
	if err := json.Unmarshal([]byte(answer), &me); err != nil || me.Name != "on-call" || me.Role != "operate" || !me.SeeKeys || !me.Features.Top {
		t.Errorf("got %s, %v", answer, err)
	}
	if _, answer = s.as(readerToken, "GET", "/v1/me", ""); !strings.Contains(answer, `"see_keys":false`) {
		t.Errorf("who may only read gets %s", answer)
	}
}

// A browser is redirected to the dashboard, even behind a proxy that removes a prefix.
func TestBoard_Redirects(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig())
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, path := range []string{"/", "/dashboard"} {
		req, err := http.NewRequest("GET", s.admin+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("Location"); resp.StatusCode != 303 || got != "dashboard/" {
			t.Errorf("%s: %d to %q, want 303 to dashboard/", path, resp.StatusCode, got)
		}
	}
}

// A stream is a server's: what it has counted, and how it is, until it ends.
func TestBoard_Stream(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Policy = policyFile(t, burst("2"))
	s := start(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), patience) // for what never comes
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", s.admin+"/v1/traffic/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("content type %q", got)
	}
	for range 5 {
		s.take("192.0.2.1")
	}
	write(t, c.Policy, "rules: [")
	var state api.ServerState
	var counts [4]float64
	bye := false
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for event := ""; lines.Scan(); {
		name, data, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name == "event":
			event = data
			bye = bye || event == "bye"
		case name == "data" && event == "state":
			state = api.ServerState{}
			if err := json.Unmarshal([]byte(data), &state); err != nil {
				t.Fatal(err)
			}
		case name == "data" && event == "samples":
			var told struct{ Samples [][]any }
			if err := json.Unmarshal([]byte(data), &told); err != nil {
				t.Fatal(err)
			}
			for _, row := range told.Samples {
				for i := range counts {
					counts[i] += row[1+i].(float64)
				}
			}
		}
		if counts == [4]float64{2, 3, 0, 0} && state.Policy.Failing {
			s.stop()
		}
	}
	if p := state.Policy; !p.Failing || len(p.Errors) == 0 || p.Refused == 0 || p.Source != c.Policy || p.Rules != 1 {
		t.Errorf("the policy is said to be %+v", p)
	}
	if st := state.Store; st.Kind != "memory" || st.State != "ok" || st.Breaker != "none" || st.Buckets == nil {
		t.Errorf("the store is said to be %+v", st)
	}
	if !bye {
		t.Error("the end was not said")
	}
	if err := s.wait(); err != nil {
		t.Error(err)
	}
}

// An unreachable store is shown as down, with an open breaker.
func TestBoard_StoreGone(t *testing.T) {
	t.Parallel()
	redis := proctest.StartRedis(t)
	c := testConfig()
	c.Policy, c.Store = policyFile(t, burst("2")), storeurl.MustParse("redis://"+redis.Addr)
	s := start(t, c)
	state := func() (st api.StoreState) {
		resp, err := http.Get(s.admin + "/v1/traffic/stream")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var s api.ServerState
				if err := json.Unmarshal([]byte(data), &s); err != nil {
					t.Fatal(err)
				}
				return s.Store
			}
		}
		t.Fatalf("the stream has no state: %v", lines.Err())
		return st
	}
	if st := state(); st.Kind != "redis" || st.State != "ok" || st.Breaker != "closed" || st.Nodes == nil || *st.Nodes != 1 {
		t.Errorf("at first the store is said to be %+v", st)
	}
	redis.Kill()
	testkit.Until(t, "the store is said to be down", func() bool {
		s.take("192.0.2.1")
		st := state()
		return st.State == "down" && st.Breaker == "open" && st.Since != nil && strings.Contains(st.Detail, "on_store_error")
	})
}

// Streams are as many as the dashboard lets be, whatever else is asked meanwhile.
func TestBoard_ManyStreams(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig())
	for i := range 100 { // more than requests may be in flight
		resp, err := http.Get(s.admin + "/v1/traffic/stream")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Fatalf("stream %d: status %d", i, resp.StatusCode)
		}
	}
	if status, _ := get(t, s.admin+"/v1/overrides"); status != 200 {
		t.Errorf("status %d beside 100 streams, want 200", status)
	}
}

// Streams go over one connection of HTTP/2, too, stay while nothing else happens, and
// end with the server, which waits for none of them.
func TestBoard_HTTP2(t *testing.T) {
	t.Parallel()
	c := withTokens()
	var known *tls.Config
	c.AdminTLS, known = certified(t, t.TempDir())
	c.Timeouts.APIRequest = 2 * time.Second // which streams outlast
	s := start(t, c)
	transport := &http.Transport{TLSClientConfig: known, ForceAttemptHTTP2: true, MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	ask := func(path string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "GET", strings.Replace(s.admin, "http:", "https:", 1)+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+readerToken)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	var streams sync.WaitGroup
	var told, ended atomic.Int64
	for i := range 100 {
		resp := ask("/v1/traffic/stream")
		if resp.StatusCode != 200 || resp.ProtoMajor != 2 {
			t.Fatalf("stream %d: status %d of %s", i, resp.StatusCode, resp.Proto)
		}
		streams.Go(func() {
			defer resp.Body.Close()
			samples, bye := 0, false
			lines := bufio.NewScanner(resp.Body)
			for lines.Buffer(nil, 1<<20); lines.Scan(); {
				bye = bye || lines.Text() == "event: bye"
				if lines.Text() == "event: samples" {
					if samples++; samples == 4 { // the first is of the past
						told.Add(1)
					}
				}
			}
			if bye && lines.Err() == nil {
				ended.Add(1)
			}
		})
	}
	resp := ask("/v1/overrides")
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("status %d beside 100 streams of one connection, want 200", resp.StatusCode)
	}
	testkit.Until(t, "all are told of three seconds", func() bool { return told.Load() == 100 })
	s.stop()
	streams.Wait()
	if err := s.wait(); err != nil || ended.Load() != 100 {
		t.Errorf("%d of 100 streams ended with a word, the server with %v", ended.Load(), err)
	}
}
