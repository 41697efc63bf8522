// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

const playInput = `{"lanes": [{"algorithm": "token_bucket", "tokens": 1, "per": "1s", "capacity": 2}],
	"traffic": {"phases": [{"shape": "burst", "count": 3, "seconds": 5}]}`

func TestPlay(t *testing.T) {
	w := askAs(newLive(t, liveConfig{}), "r", "POST", "/v1/play", playInput+`, "export": true}`)
	var got struct {
		Seconds float64
		Lanes   []struct {
			Policy, Trace string
			Decisions     [][]json.Number
			Levels        [][2]float64
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %v: %s", w.Code, err, w.Body)
	}
	lane := got.Lanes[0]
	if got.Seconds != 5 || len(lane.Decisions) != 3 || lane.Decisions[2][1] != "0" || lane.Decisions[2][2] != "1" {
		t.Errorf("%v s, decisions %v", got.Seconds, lane.Decisions)
	}
	if !strings.Contains(lane.Policy, `"rate": "1/1s"`) || strings.Count(lane.Trace, "\n") != 3 || len(lane.Levels) != 600 {
		t.Errorf("policy %s\ntrace %s\n%d levels", lane.Policy, lane.Trace, len(lane.Levels))
	}
	if w := askAs(newLive(t, liveConfig{}), "r", "POST", "/v1/play", playInput+`}`); strings.Contains(w.Body.String(), `"trace"`) {
		t.Error("there is a trace that nobody has asked for")
	}
}

func TestPlay_Refuses(t *testing.T) {
	h := newLive(t, liveConfig{})
	for name, tt := range map[string]struct {
		token, method, body string
		status              int
		want                string
	}{
		"nobody":        {"", "POST", playInput + "}", 401, "role read"},
		"GET":           {"r", "GET", "", 405, "POST"},
		"no JSON":       {"r", "POST", "{", 400, "cannot be parsed"},
		"unknown field": {"r", "POST", `{"lane": []}`, 400, "lane"},
		"two objects":   {"r", "POST", playInput + "} {}", 400, "unexpected text after"},
		"too much":      {"r", "POST", `{"x": "` + strings.Repeat("x", 1<<20) + `"}`, 413, "1048576"},
		"a mistake":     {"r", "POST", strings.Replace(playInput, `"1s"`, `"1"`, 1) + "}", 422, `"mistakes":[{"pointer":"/lanes/0/per","detail":"per must be a duration`},
	} {
		w := askAs(h, tt.token, tt.method, "/v1/play", tt.body)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s, want %d and %q", name, w.Code, w.Body, tt.status, tt.want)
		}
	}
}

// Every preset is an input that can be sent as it is. (In virtual time a busy machine
// does not run out of it.)
func TestPresets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newLive(t, liveConfig{})
		if w := askAs(h, "", "GET", "/v1/play/presets", ""); w.Code != http.StatusUnauthorized {
			t.Errorf("without a token: %d", w.Code)
		}
		var got struct {
			Presets []struct {
				ID    string
				Input json.RawMessage
			}
			Bounds map[string]int
		}
		w := askAs(h, "r", "GET", "/v1/play/presets", "")
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Presets) == 0 || got.Bounds["lanes"] != 4 {
			t.Fatalf("%v: %s", err, w.Body)
		}
		for _, p := range got.Presets {
			if w := askAs(h, "r", "POST", "/v1/play", string(p.Input)); w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", p.ID, w.Code, w.Body)
			}
		}
	})
}

// A client that reads slowly does not hold its slot.
func TestPlay_SlowReaders(t *testing.T) {
	h := newLive(t, liveConfig{})
	var slow sync.WaitGroup
	defer slow.Wait()
	for range 2 {
		in, out := io.Pipe()
		slow.Go(func() {
			r := httptest.NewRequest("POST", "/v1/play", strings.NewReader(playInput+"}"))
			r.Header.Set("Authorization", "Bearer r")
			h.ServeHTTP(&tap{header: http.Header{}, out: out}, r)
		})
		if _, err := in.Read(make([]byte, 1)); err != nil { // it has begun, and waits for the rest to be read
			t.Fatal(err)
		}
		defer in.Close()
	}
	if w := askAs(h, "r", "POST", "/v1/play", playInput+"}"); w.Code != http.StatusOK {
		t.Errorf("beside slow readers: %d %s", w.Code, w.Body)
	}
}
