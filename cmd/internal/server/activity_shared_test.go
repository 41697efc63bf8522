// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/internal/testkit"
)

// activity returns the server's activity list.
func (r *running) activity(token string) []api.Activity {
	r.t.Helper()
	var x api.Activities
	status, text := r.as(token, "GET", "/v1/activity", "")
	if err := json.Unmarshal([]byte(text), &x); status != http.StatusOK || err != nil {
		r.t.Fatalf("GET /v1/activity: %d %s", status, text)
	}
	return x.Activity
}

// doTo resets a bucket, or takes from it.
func (r *running) doTo(client, verb, rest string) {
	r.t.Helper()
	body := `{"key":"client:ip=` + client + `",` + rest + `}`
	if status, text := r.as(operatorToken, "POST", "/v1/bucket/"+verb, body); status != http.StatusOK {
		r.t.Errorf("%s %s: %d %s", verb, body, status, text)
	}
}

// resetBucket takes from a client's bucket, then resets it. It retries if a slow store leaves the outcome unknown.
func (r *running) resetBucket(client string) {
	for range 20 {
		r.take(client)
		var reset api.BucketReset
		status, text := r.as(operatorToken, "POST", "/v1/bucket/reset", `{"key":"client:ip=`+client+`","reason":"r"}`)
		if status != http.StatusOK && status != http.StatusServiceUnavailable {
			r.t.Errorf("reset: %d %s", status, text)
			return
		}
		if status == http.StatusOK && json.Unmarshal([]byte(text), &reset) == nil && reset.Given.String() != "0" {
			return
		}
	}
	r.t.Error("a bucket could not be reset")
}

// activityLines is a list in short.
func activityLines(list []api.Activity) (lines []string) {
	for _, a := range list {
		lines = append(lines, strings.TrimSpace(fmt.Sprint(a.What, " ", a.By, " ", a.Role, " ", a.From, " ", a.Status, " ", a.Key, " ", a.Reason)))
	}
	return lines
}

// sharing is a configuration of servers that know the same tokens, and mask alike.
func sharing(t *testing.T, e remoteStore) config.Config {
	c := e.patient(t, burst("5"))
	c.AdminTokens, c.HashKey = withTokens().AdminTokens, "the same key for both of them"
	c.Timeouts.APIRequest = time.Minute // notes have half of it
	return c
}

// All servers that share a store list a bucket action once, also after they all restart.
func TestActivity_Shared(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, e remoteStore) {
		c := sharing(t, e)
		a, b := start(t, c), start(t, c)
		a.take("192.0.2.9")
		a.doTo("192.0.2.9", "reset", `"reason":"a mistake of theirs"`)
		a.doTo("192.0.2.9", "reset", `"reason":"it is full already"`)
		b.doTo("192.0.2.9", "take", `"tokens":1,"reason":"undo"`)
		b.as(operatorToken, "POST", "/v1/reset", `{"attributes":{"ip:address":"192.0.2.9"}}`)
		const (
			key    = "client:ip=192.0.2.9"
			reset  = "bucket/reset on-call operate 127.0.0.1 200 " + key + " a mistake of theirs"
			again  = "bucket/reset on-call operate 127.0.0.1 200 " + key + " it is full already"
			undone = "bucket/take on-call operate 127.0.0.1 200 " + key + " undo"
			wide   = "reset on-call operate 127.0.0.1 200"
		)
		for _, at := range []struct {
			name string
			*running
			want []string
		}{
			{"the one", a, []string{undone, again, reset}},
			{"the other", b, []string{wide, undone, reset}},
		} {
			var got []string
			testkit.Until(t, at.name+" lists what was done at both", func() bool {
				got = activityLines(at.activity(operatorToken))
				return len(got) >= len(at.want)
			})
			if !slices.Equal(got, at.want) {
				t.Errorf("%s lists\n%s\nwant\n%s", at.name, strings.Join(got, "\n"), strings.Join(at.want, "\n"))
			}
		}
		ofBoth := a.activity(operatorToken)
		a.end()
		b.end()
		b = start(t, c)
		list := b.activity(operatorToken)
		if got := activityLines(list); !slices.Equal(got, []string{undone, reset}) {
			t.Errorf("after a restart: %q, want both", got)
		} else if !list[0].At.Equal(ofBoth[0].At) || !list[1].At.Equal(ofBoth[2].At) {
			t.Errorf("they were done at %v and %v, want %v and %v", list[0].At, list[1].At, ofBoth[0].At, ofBoth[2].At)
		}
		masked := b.activity(readerToken)
		if len(masked) != 2 || !strings.HasPrefix(masked[0].Key, "client:~") || !strings.Contains(a.log.String(), "key="+masked[0].Key+" ") {
			t.Errorf("masked: %+v; want keys as in the log", masked)
		}
		var audit api.Overrides
		if _, text := b.as(readerToken, "GET", "/v1/overrides", ""); json.Unmarshal([]byte(text), &audit) != nil || len(audit.Audit) != 2 ||
			audit.Audit[0].Key != "client:…" || audit.Audit[1].Tokens.String() != "1" || strings.Contains(text, "192.0.2.9") {
			t.Errorf("the audit, masked: %s", text)
		}
		for _, s := range []*running{a, b} {
			if log := s.log.String(); strings.Contains(log, "192.0.2.9") || strings.Contains(log, "cannot write to shared audit log") {
				t.Errorf("the log has the key, or an error:\n%s", log)
			}
		}
	})
}

// Servers that are asked at once overtake each other, and lose nothing.
func TestActivity_AtOnce(t *testing.T) {
	t.Parallel()
	const each = 8
	forEachStore(t, func(t *testing.T, e remoteStore) {
		c := sharing(t, e)
		servers := []*running{start(t, c), start(t, c)}
		var all sync.WaitGroup
		want := map[string]bool{}
		for i, s := range servers {
			for j := range each {
				client := fmt.Sprintf("192.0.%d.%d", i, j)
				want["client:ip="+client] = true
				all.Go(func() { s.resetBucket(client) })
			}
		}
		all.Wait()
		for _, s := range servers {
			testkit.Until(t, "all are listed", func() bool {
				got := map[string]bool{}
				for _, x := range s.activity(operatorToken) {
					if x.Status == http.StatusOK && want[x.Key] {
						got[x.Key] = true
					}
				}
				return len(got) == len(want)
			})
			var list api.Overrides
			_, text := s.as(operatorToken, "GET", "/v1/overrides?audit=1000", "")
			if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Audit) != len(want) {
				t.Errorf("the audit has %d entries (%v), want %d", len(list.Audit), err, len(want))
			}
		}
	})
}

// An action that cannot be recorded still happens, is logged, and is listed until the server stops. A
// store in memory keeps these records next to its overrides.
func TestActivity_NotNoted(t *testing.T) {
	t.Parallel()
	c := withTokens()
	file := filepath.Join(t.TempDir(), "buckets")
	c.Store, c.Policy = storeurl.MustParse("memory:?file="+file), policyFile(t, burst("5"))
	s := start(t, c)
	inTheWay := file + ".overrides.next"
	if err := os.Mkdir(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	s.take("192.0.2.1")
	s.doTo("192.0.2.1", "reset", `"reason":"lost"`)
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	s.take("192.0.2.2")
	s.doTo("192.0.2.2", "reset", `"reason":"kept"`)
	list := s.activity(operatorToken)
	if len(list) != 2 || list[0].Reason != "kept" || list[1].Reason != "lost" || list[1].Status != 200 || list[1].At.IsZero() {
		t.Errorf("%+v, want both once", list)
	}
	if log := s.log.String(); s.log.Count("cannot write to shared audit log") != 1 || strings.Contains(log, "192.0.2.") || !strings.Contains(log, "what=bucket/reset by=on-call key=client:~") {
		t.Errorf("the log does not say so once, or has a key:\n%s", log)
	}
	s.end()
	if list := start(t, c).activity(operatorToken); len(list) != 1 || list[0].Reason != "kept" {
		t.Errorf("after a restart: %+v, want what was noted", list)
	}
}
