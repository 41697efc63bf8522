// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/monitor"
)

// A told is an event of samples.
type told struct {
	Step    int
	Samples [][]any
	Rules   [][]any
}

func (e event) samples(t *testing.T) (s told) {
	t.Helper()
	if e.name != "samples" {
		t.Fatalf("got the event %q with %s, want samples", e.name, e.data)
	}
	if err := json.Unmarshal(e.data, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// The counts of each second are sent once, to existing and to later listeners.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := &source{state: api.ServerState{Instance: "one", Ready: true}}
		h := newLive(t, liveConfig{Source: from})
		time.Sleep(500 * time.Millisecond) // the bubble's: between two ticks
		events, leave := follow(t, h, "/v1/traffic/stream")
		if e, _ := read(t, events); e.name != "state" || !strings.Contains(string(e.data), `"instance":"one"`) {
			t.Fatalf("got %q with %s first", e.name, e.data)
		}
		if e, _ := read(t, events); len(e.samples(t).Samples) != 0 {
			t.Fatalf("got %s before the first second was over", e.data)
		}
		from.set(func(s *source) {
			s.totals.Allowed, s.totals.Denied, s.totals.Shadow, s.totals.Degraded = 7, 2, 1, 3
			s.totals.Rules = []monitor.RuleTotals{{Rule: "free", Allowed: 7, Denied: 2, Shadow: 1, Near: 4, Degraded: 3}}
			s.totals.Decisions = monitor.Histogram{Bounds: []float64{1e-3, 2e-3}, Counts: []uint64{0, 8, 0}}
		})
		e, _ := read(t, events)
		got := e.samples(t)
		at := time.Now().Unix()
		if want := fmt.Sprintf(`[[%d,7,2,1,3,0.0015,0.00195,0.00199,null,null,null]]`, at); rough(got.Samples) != want || e.id != fmt.Sprintf("one:%d", at) {
			t.Errorf("got %s with the ID %q, want %s", rough(got.Samples), e.id, want)
		}
		if text := rough(got.Rules); text != `[["free",7,2,1,4,3]]` {
			t.Errorf("got %s of rules", text)
		}
		from.set(func(s *source) { s.totals.Allowed = 8; s.state.Ending = true })
		e, _ = read(t, events)
		if got := e.samples(t); got.Samples[0][1] != 1.0 || len(got.Rules) != 0 {
			t.Errorf("got %s in the second after, want one allowed and no rule", e.data)
		}
		if e, _ := read(t, events); e.name != "state" || !strings.Contains(string(e.data), `"ending":true`) {
			t.Errorf("got %q with %s, want the changed state", e.name, e.data)
		}
		leave()

		events, leave = follow(t, h, "/v1/traffic/stream")
		read(t, events)
		e, _ = read(t, events)
		if got := e.samples(t); len(got.Samples) != 2 {
			t.Errorf("who comes later gets %s", e.data)
		}
		leave()
		for id, want := range map[string]int{fmt.Sprintf("one:%d", at): 1, fmt.Sprintf("two:%d", at): 2, "one:x": 2, "one": 2} {
			events, leave = follow(t, h, "/v1/traffic/stream", "Last-Event-Id", id)
			read(t, events)
			e, _ = read(t, events)
			if got := e.samples(t); len(got.Samples) != want {
				t.Errorf("who comes back with %q gets %s, want %d samples", id, e.data, want)
			}
			leave()
		}
	})
}

func rough(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// A page that does not read is disconnected, and does not affect others.
func TestStream_SlowViewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newLive(t, liveConfig{})
		slow, leaveSlow := follow(t, h, "/v1/traffic/stream")
		events, leave := follow(t, h, "/v1/traffic/stream")
		for range 60 {
			if e, ok := read(t, events); !ok {
				t.Fatalf("who reads was cut off after %q", e.name)
			}
		}
		n := 0
		for _, ok := read(t, slow); ok; _, ok = read(t, slow) {
			n++
		}
		if n == 0 || n > 30 {
			t.Errorf("who did not read for a minute got %d events and then the end", n)
		}
		leaveSlow()
		leave()
	})
}

// The server announces its end and closes the stream.
func TestStream_Close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newLive(t, liveConfig{})
		events, leave := follow(t, h, "/v1/traffic/stream")
		defer leave()
		read(t, events)
		read(t, events)
		go h.Close()
		if e, ok := read(t, events); !ok || e.name != "bye" {
			t.Fatalf("got %q, want bye", e.name)
		}
		if e, ok := read(t, events); ok {
			t.Errorf("got %q after bye", e.name)
		}
		if w := askAs(h, "op", "GET", "/v1/traffic/stream", ""); w.Code != 503 {
			t.Errorf("status %d of a stream after the end, want 503", w.Code)
		}
	})
}

func TestStream_Bound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newLive(t, liveConfig{})
		var leaves []func()
		for range httpapi.MaxStreams {
			_, leave := follow(t, h, "/v1/traffic/stream")
			leaves = append(leaves, leave)
		}
		synctest.Wait()
		if w := askAs(h, "op", "GET", "/v1/traffic/stream", ""); w.Code != 503 || w.Header().Get("Retry-After") == "" {
			t.Errorf("status %d of one stream too many, %s", w.Code, w.Body)
		}
		leaves[0]()
		events, leave := follow(t, h, "/v1/traffic/stream")
		if e, ok := read(t, events); !ok || e.name != "state" {
			t.Errorf("there is no room after one has left: %q", e.name)
		}
		leave()
		for _, leave := range leaves[1:] {
			leave()
		}
	})
}

// A machine that slept has the counts of the time between, and they add up.
func TestTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := &source{}
		h := newLive(t, liveConfig{Source: from})
		for i := range uint64(90) {
			from.set(func(s *source) {
				s.totals.Rules = []monitor.RuleTotals{{Rule: "free", Allowed: i + 1, Denied: 2 * (i + 1)}}
			})
			time.Sleep(time.Second) // the bubble's
			synctest.Wait()
		}
		for query, want := range map[string]string{
			"":            `{"window":60,"rules":{"free":[60,120,0,0,0]}}`,
			"?window=10s": `{"window":10,"rules":{"free":[10,20,0,0,0]}}`,
		} {
			if w := askAs(h, "r", "GET", "/v1/traffic"+query, ""); strings.TrimSpace(w.Body.String()) != want {
				t.Errorf("%q: got %s, want %s", query, w.Body, want)
			}
		}
		for _, window := range []string{"0s", "2m", "x", "-1s"} {
			if w := askAs(h, "r", "GET", "/v1/traffic?window="+window, ""); w.Code != 400 || !strings.Contains(w.Body.String(), "such as 10s") {
				t.Errorf("window %s: %d, %s", window, w.Code, w.Body)
			}
		}
	})
}
