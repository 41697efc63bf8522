// SPDX-License-Identifier: Apache-2.0

package playground_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/playground"
)

const (
	goodLane    = `{"algorithm": "token_bucket", "tokens": 10, "per": "1s", "capacity": 20}`
	goodTraffic = `{"phases": [{"shape": "steady", "rate": 5, "seconds": 2}]}`
)

func withLane(lane string) string { return `{"lanes": [` + lane + `], "traffic": ` + goodTraffic + `}` }

func withPhase(phase string) string {
	return `{"lanes": [` + goodLane + `], "traffic": {"phases": [` + phase + `]}}`
}

func withTrace(trace string) string {
	text, _ := json.Marshal(trace) // a string can always be encoded
	return withPhase(`{"shape": "trace", "trace": ` + string(text) + `}`)
}

// Every error names its field, and most have a hint.
func TestPlay_Mistakes(t *testing.T) {
	seven := strings.TrimSuffix(strings.Repeat(`{"shape": "pause", "seconds": 1},`, 7), ",")
	for name, tt := range map[string]struct{ input, field, reason string }{
		"no lanes":                   {`{"traffic": ` + goodTraffic + `}`, "/lanes", "no limit"},
		"too many lanes":             {withLane(strings.Repeat(goodLane+",", 4) + goodLane), "/lanes", "5 limits are more than 4"},
		"no algorithm":               {withLane(`{"tokens": 1, "per": "1s"}`), "/lanes/0/algorithm", "missing"},
		"unknown algorithm":          {withLane(`{"algorithm": "magic", "tokens": 1, "per": "1s"}`), "/lanes/0/algorithm", `unknown algorithm "magic"`},
		"no tokens":                  {withLane(`{"algorithm": "fixed_window", "per": "1s"}`), "/lanes/0/tokens", "above 0"},
		"no rate":                    {withLane(`{"algorithm": "fixed_window", "tokens": 0, "per": "1s"}`), "/lanes/0/tokens", "above 0"},
		"no duration":                {withLane(`{"algorithm": "fixed_window", "tokens": 1, "per": "10"}`), "/lanes/0/per", "with a unit"},
		"no capacity":                {withLane(`{"algorithm": "token_bucket", "tokens": 1, "per": "1s"}`), "/lanes/0/capacity", "missing"},
		"no queue":                   {withLane(`{"algorithm": "leaky_bucket", "tokens": 1, "per": "1s"}`), "/lanes/0/queue", "missing"},
		"capacity 0":                 {withLane(`{"algorithm": "token_bucket", "tokens": 1, "per": "1s", "capacity": -1}`), "/lanes/0/capacity", "got -1"},
		"field of another algorithm": {withLane(`{"algorithm": "sliding_log", "tokens": 1, "per": "1s", "queue": 3}`), "/lanes/0/queue", "leaky_bucket"},
		"capacity below the window":  {withLane(`{"algorithm": "fixed_window", "tokens": 5, "per": "1s", "capacity": 3}`), "/lanes/0/capacity", "capacity is below"},
		"a cost too precise":         {withLane(`{"algorithm": "token_bucket", "tokens": 1, "per": "1s", "capacity": 5, "cost": 0.0001}`), "/lanes/0/cost", "thousandth"},
		"a log too long":             {withLane(`{"algorithm": "sliding_log", "tokens": 10001, "per": "1s"}`), "/lanes/0/tokens", "10000"},
		"bad refill":                 {withLane(`{"algorithm": "token_bucket", "tokens": 1, "per": "1s", "capacity": 5, "refill": "magic"}`), "/lanes/0/refill", "magic"},
		"bad jitter":                 {withLane(`{"algorithm": "fixed_window", "tokens": 1, "per": "1s", "jitter": "x"}`), "/lanes/0/jitter", "jitter"},
		"a long name":                {withLane(`{"name": "` + strings.Repeat("n", 41) + `", "algorithm": "fixed_window", "tokens": 1, "per": "1s"}`), "/lanes/0/name", "40 bytes"},
		"the second lane":            {withLane(goodLane + `, {"algorithm": "fixed_window", "tokens": 1, "per": "x"}`), "/lanes/1/per", "duration"},
		"no traffic":                 {`{"lanes": [` + goodLane + `]}`, "/traffic/phases", "no phases"},
		"too many phases":            {withPhase(seven), "/traffic/phases", "7 phases are more than 6"},
		"unknown shape":              {withPhase(`{"shape": "wave", "seconds": 1}`), "/traffic/phases/0/shape", `unknown shape "wave"`},
		"no seconds":                 {withPhase(`{"shape": "steady", "rate": 1}`), "/traffic/phases/0/seconds", "missing"},
		"no time":                    {withPhase(`{"shape": "steady", "rate": 1, "seconds": 0}`), "/traffic/phases/0/seconds", "above 0"},
		"too long":                   {withPhase(`{"shape": "pause", "seconds": 86401}`), "/traffic/phases/0/seconds", "a day"},
		"too long together":          {withPhase(`{"shape": "pause", "seconds": 86400}, {"shape": "pause", "seconds": 1}`), "/traffic/phases/1", "a day"},
		"no steady rate":             {withPhase(`{"shape": "steady", "seconds": 1}`), "/traffic/phases/0/rate", "missing"},
		"too many requests":          {withPhase(`{"shape": "steady", "rate": 20001, "seconds": 1}`), "/traffic/phases/0/rate", "more than 20000"},
		"an absurd rate":             {withPhase(`{"shape": "steady", "rate": 1000001, "seconds": 1}`), "/traffic/phases/0/rate", "one per microsecond"},
		"too much chance":            {withPhase(`{"shape": "poisson", "rate": 900000, "seconds": 1}`), "/traffic/phases/0/rate", "more than 20000"},
		"a negative seed":            {withPhase(`{"shape": "poisson", "rate": 1, "seconds": 1, "seed": -1}`), "/traffic/phases/0/seed", "2^53"},
		"an unused seed":             {withPhase(`{"shape": "steady", "rate": 1, "seconds": 1, "seed": 1}`), "/traffic/phases/0/seed", "shape steady"},
		"an empty burst":             {withPhase(`{"shape": "burst", "seconds": 1}`), "/traffic/phases/0/count", "1 to 20000"},
		"a burst too often":          {withPhase(`{"shape": "burst", "count": 1, "every": "1us", "seconds": 1}`), "/traffic/phases/0/every", "1ms"},
		"bursts too large":           {withPhase(`{"shape": "burst", "count": 15000, "every": "1s", "seconds": 2}`), "/traffic/phases/0/count", "more than 20000"},
		"by hand too late":           {`{"lanes": [` + goodLane + `], "traffic": {"phases": [{"shape": "pause", "seconds": 1}], "hand": [1]}}`, "/traffic/hand/0", "not before the end"},
		"an empty trace":             {withTrace(" \n"), "/traffic/phases/0/trace", "no requests"},
		"not a trace":                {withTrace("hello\n"), "/traffic/phases/0/trace", "line 1: not an access log line"},
		"a trace without at":         {withTrace("{\"at\":1}\n{\"cost\":1}"), "/traffic/phases/0/trace", "line 2: the field at is missing"},
		"a negative time":            {withTrace(`{"at":-1}`), "/traffic/phases/0/trace", "line 1: -1 is not"},
		"a time too late":            {withTrace(`{"at":9007199254.740992}`), "/traffic/phases/0/trace", "2255"},
		"a cost of nothing":          {withTrace(`{"at":1,"cost":0}`), "/traffic/phases/0/trace", "the cost 0"},
		"a trace of days":            {withTrace("{\"at\":1}\n{\"at\":100000}"), "/traffic/phases/0/trace", "a day"},
		"a herd": {`{"lanes": [{"algorithm": "token_bucket", "tokens": 0.001, "per": "1s", "capacity": 1, "jitter": "0", "cost": 1},
			{"algorithm": "token_bucket", "tokens": 1, "per": "1s", "capacity": 1, "jitter": "0"}],
			"traffic": {"retry": true, "phases": [{"shape": "burst", "count": 19000, "seconds": 60}]}}`, "/lanes/1", "retries included"},
	} {
		var in api.Play
		if err := json.Unmarshal([]byte(tt.input), &in); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, err := playground.Play(t.Context(), in)
		found, ok := errors.AsType[playground.InputErrors](err)
		if !ok || found[0].Pointer != tt.field || !strings.Contains(found[0].Detail, tt.reason) {
			t.Errorf("%s: got %v, want %s: %s", name, err, tt.field, tt.reason)
		}
	}
}

// All errors are reported at once.
func TestPlay_AllMistakes(t *testing.T) {
	var in api.Play
	input := `{"lanes": [{"algorithm": "token_bucket"}, {"algorithm": "x"}], "traffic": {"phases": [{"shape": "burst"}]}}`
	if err := json.Unmarshal([]byte(input), &in); err != nil {
		t.Fatal(err)
	}
	_, err := playground.Play(t.Context(), in)
	found, _ := errors.AsType[playground.InputErrors](err)
	var fields []string
	for _, m := range found {
		fields = append(fields, m.Pointer)
	}
	want := "/lanes/0/tokens /lanes/0/per /lanes/0/capacity /lanes/1/algorithm /lanes/1/tokens /lanes/1/per /traffic/phases/0/seconds"
	if got := strings.Join(fields, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !strings.Contains(err.Error(), "/lanes/0/capacity: capacity is missing; set it to the number of tokens that the bucket holds") {
		t.Errorf("the error is %q", err)
	}
}

// Only the times and costs of a trace count, in every format of lines.
func TestPlay_Traces(t *testing.T) {
	const logged = `198.51.100.7 - [x [21/Nov/2026:12:00:02 +0100] "GET /<script> HTTP/1.1" 200 1
2001:db8::1 - - [21/Nov/2026:11:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "[agent]"

198.51.100.7 - - [21/Nov/2026:12:00:02 +0100] "GET / HTTP/1.1" 429 1`
	for name, tt := range map[string]struct{ trace, want string }{
		"an access log": {logged, "[0,2,2] until 3"},
		"JSON lines":    {"{\"at\":1795262400.5,\"path\":\"/\"}\r\n{\"at\":1795262400.7500019,\"ip\":\"x\"}\n", "[0,0.250001] until 1"},
		"both":          {"{\"at\":1795258800}\n" + logged, "[0,0,2,2] until 3"},
		"one":           {`{"at":1e3}`, "[0] until 1"},
	} {
		var in api.Play
		if err := json.Unmarshal([]byte(withTrace(tt.trace)), &in); err != nil {
			t.Fatal(err)
		}
		r, err := playground.Play(t.Context(), in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		at := []float64{}
		for _, d := range r.Lanes[0].Decisions {
			at = append(at, float64(d.At)/1e6)
		}
		if got := show(t, at) + " until " + show(t, r.Seconds); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}

// FuzzTrace checks that any text is played or rejected, and that an exported trace plays the same again.
func FuzzTrace(f *testing.F) {
	f.Add(`{"at":0.5}`)
	f.Add(`1 - - [21/Nov/2026:12:00:02 +0100] "GET / HTTP/1.1" 200 1`)
	f.Add("{\"at\":1e-9,\"cost\":1.5}\n[[]{")
	f.Fuzz(func(t *testing.T, trace string) {
		in := api.Play{Export: true, Lanes: []api.PlayLane{{Algorithm: "token_bucket", Tokens: "1", Per: "1s", Capacity: "2"}}}
		in.Traffic.Phases = []api.PlayPhase{{Shape: "trace", Trace: trace}}
		r, err := playground.Play(t.Context(), in)
		if err != nil {
			if _, ok := errors.AsType[playground.InputErrors](err); !ok {
				t.Fatalf("%q: %v", trace, err)
			}
			return
		}
		in.Traffic.Phases[0].Trace = r.Lanes[0].Trace
		again, err := playground.Play(t.Context(), in)
		if err != nil || show(t, again) != show(t, r) {
			t.Errorf("%q: what was exported, %q, plays differently: %v", trace, r.Lanes[0].Trace, err)
		}
	})
}
