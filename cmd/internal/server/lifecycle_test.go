// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/server"
	"github.com/metehq/mete/internal/testkit"
)

// heldUpstream answers when it is told to.
type heldUpstream struct {
	*httptest.Server
	arrived chan struct{} // one for each request that has arrived
	release chan struct{} // closed to answer them
}

func newHeldUpstream(t *testing.T) *heldUpstream {
	u := &heldUpstream{arrived: make(chan struct{}, 100), release: make(chan struct{})}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.arrived <- struct{}{}
		select {
		case <-u.release:
		case <-r.Context().Done():
		}
		io.WriteString(w, "at last")
	}))
	t.Cleanup(u.Close)
	return u
}

type answer struct {
	status int
	body   string
	err    error
}

// ask sends a GET in the background.
func ask(url string) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		resp, err := http.Get(url)
		if err != nil {
			answers <- answer{err: err}
			return
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		answers <- answer{resp.StatusCode, string(text), err}
	}()
	return answers
}

func TestRun_AnswersRequestsInFlight(t *testing.T) {
	t.Parallel()
	u := newHeldUpstream(t)
	c := testConfig()
	c.Upstream = mustURL(u.URL)
	s := start(t, c)
	const inFlight = 10
	var answers []<-chan answer
	for range inFlight {
		answers = append(answers, ask(s.main+"/slow"))
	}
	for range inFlight {
		<-u.arrived
	}

	s.stop()
	testkit.Until(t, "/readyz turns 503 while requests are in flight", func() bool {
		status, _ := get(t, s.admin+"/readyz")
		return status == 503
	})
	if status, _ := get(t, s.admin+"/livez"); status != 200 {
		t.Errorf("/livez while ending: status %d, want 200", status)
	}
	testkit.Until(t, "no more connections are taken", func() bool {
		conn, err := net.Dial("tcp", s.server.Addr().String())
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	close(u.release)
	for i, a := range answers {
		if got := <-a; got.status != 200 || got.body != "at last" || got.err != nil {
			t.Errorf("request %d, in flight at the end: %+v, want 200", i, got)
		}
	}
	if err := s.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if s.log.Count("aborted at shutdown") != 0 {
		t.Error("the log says that requests cut off")
	}
}

func TestRun_CutsOffWhatDoesNotFinish(t *testing.T) {
	t.Parallel()
	u := newHeldUpstream(t)
	c := testConfig()
	c.Upstream = mustURL(u.URL)
	c.Timeouts.Drain = 50 * time.Millisecond
	s := start(t, c)
	slow := ask(s.main + "/slow")
	<-u.arrived
	s.stop()
	if err := s.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if got := <-slow; got.err == nil {
		t.Errorf("a request that outlives the drain: %+v, want a broken connection", got)
	}
	if s.log.Count("aborted at shutdown") != 1 {
		t.Error("the log does not say that a request was cut off")
	}
}

func TestRun_GivesNotice(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Timeouts.Notice = time.Hour
	s := start(t, c)
	s.stop()
	testkit.Until(t, "the main address says 503 before it closes", func() bool {
		resp, err := http.Get(s.main + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode == 503 && resp.Close
	})
	if got := s.take("192.0.2.1"); got != 200 {
		t.Errorf("take under notice: status %d, want 200", got)
	}
	s.server.FailMain()
	if err := s.wait(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("an address failed under notice: Run returned %v, want %v", err, net.ErrClosed)
	}
	s.err = nil // the test wanted it
}

func TestNew_PortTaken(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig())
	taken := s.server.Addr().String()
	free := testConfig()
	for _, setting := range []string{"listen", "admin-listen"} {
		c := free
		if setting == "listen" {
			c.Listen = taken
		} else {
			c.AdminListen = taken
		}
		_, err := server.New(t.Context(), c, slog.New(slog.DiscardHandler))
		if err == nil || !strings.HasPrefix(err.Error(), setting+" "+taken+": ") || !strings.Contains(err.Error(), "choose another") {
			t.Errorf("New with %s taken: %v, want an error that names it and says what to do", setting, err)
		}
	}
}

func TestClose_FreesTheAddresses(t *testing.T) {
	t.Parallel()
	c := testConfig()
	s, err := server.New(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c.Listen, c.AdminListen = s.Addr().String(), s.AdminAddr().String()
	s.Close()
	again, err := server.New(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("New after Close: %v", err)
	}
	again.Close()
}

func TestRun_FailsWhenAnAddressDoes(t *testing.T) {
	t.Parallel()
	s, err := server.New(t.Context(), testConfig(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s.Close() // what could close a listener under a running server is nothing of ours
	if err := s.Run(context.Background()); err == nil {
		t.Error("Run on closed addresses returned nil")
	}
}

func TestClaims_WarnAtStart(t *testing.T) {
	t.Parallel()
	claims := strings.ReplaceAll(burst("1"), "ip:address", "jwt:sub")
	for _, tt := range []struct {
		policy string
		trust  bool
		want   string
	}{
		{claims, true, "NOT VERIFIED"},
		{burst("1"), true, "NOT VERIFIED"},
		{claims, false, "gateway requests have none"},
		{burst("1"), false, ""},
	} {
		c := testConfig()
		c.Policy, c.TrustJWT = policyFile(t, tt.policy), tt.trust
		s := start(t, c)
		warnings := s.log.Count("level=WARN")
		if tt.want == "" && warnings != 0 || tt.want != "" && s.log.Count(tt.want) != 1 {
			t.Errorf("trust_jwt %v, policy\n%s\nlog:\n%s\nwant %q in it", tt.trust, tt.policy, s.log, tt.want)
		}
	}
}

// A server that sees no end of requests names the endpoint that releases their slots.
func TestSlots_WarnAtStart(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Policy = policyFile(t, `{"rules": [{"name": "jobs", "limit_keys": ["ip:address"], "algorithm": "concurrency", "max": 1, "lease": "30s"}]}`)
	if s := start(t, c); s.log.Count("call /v1/slots/release at the end of each request") != 1 {
		t.Errorf("log:\n%s", s.log)
	}
}

func TestExamplePolicy_IsInTheExamples(t *testing.T) {
	t.Parallel()
	built, err := os.ReadFile("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	shown, err := os.ReadFile("../../../examples/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if string(built) != string(shown) {
		t.Error("examples/quickstart.yaml is not the built-in example: copy example.yaml there")
	}
}

// TestRun_NoServerErrorsUnderLoad ends a gateway under load: whatever is
// answered is answered well.
func TestRun_NoServerErrorsUnderLoad(t *testing.T) {
	t.Parallel()
	u := newHeldUpstream(t)
	close(u.release)
	go func() {
		for range u.arrived { // drain what the upstream counts
		}
	}()
	t.Cleanup(func() { u.Close(); close(u.arrived) })
	c := testConfig()
	c.Policy = policyFile(t, burst("100000"))
	c.Upstream = mustURL(u.URL)
	s := start(t, c)
	var clients sync.WaitGroup
	var answered atomic.Int64
	for range 4 {
		clients.Go(func() {
			for {
				got := <-ask(s.main + "/")
				if got.err != nil && got.status == 0 {
					return // the address is closed
				}
				if got.status != 200 || got.body != "at last" || got.err != nil {
					t.Errorf("a request while the server ends: %+v, want 200", got)
				}
				answered.Add(1)
			}
		})
	}
	testkit.Until(t, "requests are answered", func() bool { return answered.Load() > 200 })
	s.stop()
	clients.Wait()
	if err := s.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
}
