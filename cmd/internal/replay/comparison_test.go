// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/replay"
	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/internal/testseed"
)

const oldPolicy = `{"rules": [
	{"name": "client", "limit_keys": ["header:x"], "algorithm": "token_bucket", "algorithm_config": {"rps": 2, "burst": 5}},
	{"name": "login", "group": "login", "limit_keys": ["header:x"], "match": {"path": "/login"}, "algorithm": "fixed_window",
	 "algorithm_config": {"tokens": 3, "window": "10s"}},
	{"name": "all", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rps": 30, "burst": 30}}]}`

const newPolicy = `{"rules": [
	{"name": "client", "limit_keys": ["header:x"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 9}},
	{"name": "pages", "limit_keys": ["header:x", "path"], "mode": "shadow", "algorithm": "token_bucket", "algorithm_config": {"rps": 0.5, "burst": 2}},
	{"name": "strict", "group": "strict", "limit_keys": ["header:y"], "match": {"path": "/a"}, "on_missing": "deny",
	 "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 100}},
	{"name": "all", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rps": 30, "burst": 30}}]}`

// randomTrace returns n requests of a few clients, times running backwards now and
// then.
func randomTrace(n int, seed uint64) string {
	random := rand.New(testseed.PCG(seed, 7))
	var text strings.Builder
	at := int64(5_000_000)
	for range n {
		at += random.Int64N(60_000) - 5_000
		y := ""
		if random.IntN(10) > 0 {
			y = `,"y":"1"`
		}
		fmt.Fprintf(&text, `{"at":%s,"method":"GET","path":"/%s","headers":{"x":"k%d"%s}}`+"\n", seconds(at),
			[...]string{"", "login", "a", "b"}[random.IntN(4)], random.IntN(20), y)
	}
	return text.String()
}

// A comparing is the result of a comparison.
type comparing struct {
	lines   []map[string]any // one for each request that the policies disagree about
	summary map[string]any
	report  string
}

// compare compares two policies on a trace.
func compare(t *testing.T, oldFile, newFile, text string, showKeys bool) comparing {
	t.Helper()
	old, new := load(t, oldFile), load(t, newFile)
	reader := trace.NewReader(strings.NewReader(text), trace.FormatJSONL)
	c := replay.NewComparison(old, new)
	var out strings.Builder
	lines := replay.NewLines(&out)
	place := func() string { return fmt.Sprintf("t:%d", reader.Line()) }
	err := replay.Compare(context.Background(), replay.CompareConfig{Old: old, New: new, Trace: reader, Store: memory,
		Each: func(req *trace.Request, was, is *mete.Decision) error {
			c.Add(req, was, is, place)
			return lines.WriteChange(req, was, is, place)
		}})
	if err != nil {
		t.Fatal(err)
	}
	if err := lines.WriteSummary(c, showKeys); err != nil {
		t.Fatal(err)
	}
	if err := lines.Flush(); err != nil {
		t.Fatal(err)
	}
	var got comparing
	for line := range strings.Lines(out.String()) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if v["summary"] == nil {
			got.lines = append(got.lines, v)
		} else {
			got.summary = v["summary"].(map[string]any)
		}
	}
	var report strings.Builder
	if _, err := (replay.Report{Old: "old.json", Policy: "new.json", Trace: "t", Format: "jsonl", Counts: c, ShowKeys: showKeys}).WriteTo(&report); err != nil {
		t.Fatal(err)
	}
	got.report = report.String()
	return got
}

// decisions returns the lines that a replay of the trace prints, decoded.
func decisions(t *testing.T, file, text string) (all []map[string]any) {
	t.Helper()
	for _, line := range replayJSON(t, load(t, file), text, memory) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// TestCompare_IsTwoReplays: a comparison has the same results as two replays.
func TestCompare_IsTwoReplays(t *testing.T) {
	for seed := range uint64(4) {
		text := randomTrace(3000, seed)
		was, is := decisions(t, oldPolicy, text), decisions(t, newPolicy, text)
		got := compare(t, oldPolicy, newPolicy, text, true)
		want := map[string]float64{"requests": float64(len(was))}
		byRule := map[string]float64{} // "newly_limited client"
		differing := 0
		for i := range was {
			change := "allowed_by_both"
			switch {
			case was[i]["allowed"] == true && is[i]["allowed"] == false:
				change = "newly_limited"
				byRule[fmt.Sprint(change, " ", is[i]["rule"])]++
			case was[i]["allowed"] == false && is[i]["allowed"] == true:
				change = "newly_admitted"
				byRule[fmt.Sprint(change, " ", was[i]["rule"])]++
			case was[i]["allowed"] == false:
				change = "denied_by_both"
			}
			want[change]++
			if was[i]["allowed"] == is[i]["allowed"] {
				continue
			}
			line := got.lines[min(differing, len(got.lines)-1)]
			differing++
			if line["change"] != change || line["at"] != was[i]["at"] || line["place"] != fmt.Sprintf("t:%d", i+1) {
				t.Fatalf("seed %d: request %d: got %v, want %s at %v", seed, i+1, line, change, was[i]["at"])
			}
			for name, d := range map[string]map[string]any{"old": was[i], "new": is[i]} {
				said := line[name].(map[string]any)
				for _, field := range []string{"allowed", "rule", "reason", "retry_after"} {
					if said[field] != d[field] {
						t.Errorf("seed %d: request %d: %s of %s: got %v, want %v", seed, i+1, field, name, said[field], d[field])
					}
				}
			}
		}
		for field, n := range want {
			if got.summary[field] != n {
				t.Errorf("seed %d: %s: got %v, want %v", seed, field, got.summary[field], n)
			}
		}
		for _, r := range got.summary["rules"].([]any) {
			rule := r.(map[string]any)
			for _, change := range []string{"newly_limited", "newly_admitted"} {
				if n := byRule[fmt.Sprint(change, " ", rule["rule"])]; rule[change] != n {
					t.Errorf("seed %d: rule %v: %s: got %v, want %v", seed, rule["rule"], change, rule[change], n)
				}
			}
		}
		if differing != len(got.lines) || want["newly_limited"] < 50 || want["newly_admitted"] < 50 {
			t.Errorf("seed %d: got %d lines, want %d; counts are %v", seed, len(got.lines), differing, want)
		}
	}
}

// A policy does what it does.
func TestCompare_WithItself(t *testing.T) {
	for _, file := range []string{oldPolicy, newPolicy} {
		got := compare(t, file, file, randomTrace(2000, 1), false)
		if len(got.lines) > 0 || got.summary["newly_limited"] != 0.0 || got.summary["newly_admitted"] != 0.0 ||
			!strings.Contains(got.report, "the two policies make the same decisions") || strings.Contains(got.report, "EDIT") {
			t.Errorf("got %v, %v\n%s", got.lines, got.summary, got.report)
		}
	}
}

const comparedTrace = `{"at":0,"method":"GET","path":"/a","headers":{"x":"1"}}
	{"at":0,"method":"POST","path":"/login","headers":{"x":"2"}}
	{"at":0,"method":"POST","path":"/login","headers":{"x":"2"}}
	{"at":0,"method":"POST","path":"/login","headers":{"x":"2"}}
	{"at":0.5,"method":"POST","path":"/login","headers":{"x":"2"}}
`

func TestComparisonReport(t *testing.T) {
	const want = `old       old.json, 3 rules
new       new.json, 4 rules
trace     t, jsonl, 5 requests in 500ms
from      0 s
to        0.5 s

allowed by both  3  60.00%
denied by both   0   0.00%
newly limited    1  20.00%  first 0 s, last 0 s
newly admitted   1  20.00%  first 0.5 s, last 0.5 s

OVER TIME, in steps of 10ms
requests       4 ┤█
                 │█                                                 ▄
newly limited  1 ┤█
                 │█
                 │█
newly admitted 1 ┤                                                  █
                 │                                                  █
                 │                                                  █
                 └┬─────────┬─────────┬─────────┬─────────┬─────────┬
                  0 s       0.1 s     0.2 s     0.3 s     0.4 s     0.5 s

        DENIED BY         NEWLY            IN SHADOW BY
RULE          OLD  NEW  LIMITED  ADMITTED           OLD  NEW  EDIT
client          0    0        0         0             0    0  changed
pages           0    0        0         0             0    2  added
strict          0    1        1         0             0    0  added
all             0    0        0         0             0    0
login           1    0        0         1             0    0  removed

NEWLY LIMITED       RULE    REQUESTS              FIRST  LAST  FOR EXAMPLE
header:y=(missing)  strict         1  ██████████  0 s    0 s   t:1 GET /a

NEWLY ADMITTED  RULE   REQUESTS              FIRST  LAST   FOR EXAMPLE
header:x=2      login         1  ██████████  0.5 s  0.5 s  t:5 POST /login

rules in shadow would limit 2 requests that the new policy allows (0 under the old)
`
	got := compare(t, oldPolicy, newPolicy, comparedTrace, true)
	if got.report != want {
		t.Errorf("got:\n%s\nwant:\n%s", got.report, want)
	}
	hidden := compare(t, oldPolicy, newPolicy, comparedTrace, false)
	for _, secret := range []string{"header:x", "POST", "GET"} {
		if strings.Contains(hidden.report+fmt.Sprint(hidden.lines, hidden.summary), secret) {
			t.Errorf("the comparison shows %q:\n%s\n%v", secret, hidden.report, hidden.summary)
		}
	}
	if !strings.Contains(hidden.report, "--show-keys") {
		t.Errorf("the report does not say how to see the keys:\n%s", hidden.report)
	}
}

func TestComparisonReport_NothingToReport(t *testing.T) {
	got := compare(t, oldPolicy, newPolicy, "\n", false)
	if want := "old       old.json, 3 rules\nnew       new.json, 4 rules\ntrace     t, jsonl, 0 requests\n"; got.report != want || len(got.lines) > 0 {
		t.Errorf("got:\n%s\nwant:\n%s", got.report, want)
	}
}

// A denial by an override counts for the override.
func TestCompare_Override(t *testing.T) {
	const block = `, "overrides": [{"id": "stop", "action": "block", "match": {"header:x": "2"}, "reason": "r", "author": "a",
		"expires_at": "2100-01-01T00:00:00Z"}]}`
	got := compare(t, oldPolicy, strings.TrimSuffix(oldPolicy, "}")+block, comparedTrace, true)
	if got.summary["newly_limited"] != 3.0 || got.summary["denied_by_both"] != 1.0 {
		t.Errorf("got %v, want 3 newly limited, 1 denied by both", got.summary)
	}
	for _, want := range []string{"override stop 0 4 3 0", "(everyone) override stop 3 ██████████ 0 s 0 s t:2 POST /login"} {
		if !strings.Contains(squeeze(got.report), want) {
			t.Errorf("the report has no %q:\n%s", want, got.report)
		}
	}
	report := reportOn(t, strings.TrimSuffix(oldPolicy, "}")+block, comparedTrace, func(*replay.Report) {})
	if want := "blocked 4 80.00% of the denied, by an override"; !strings.Contains(squeeze(report), want) {
		t.Errorf("the report has no %q:\n%s", want, report)
	}
}

// An override expires in the time of the trace.
func TestRun_OverrideExpires(t *testing.T) {
	const file = `{"rules": [{"name": "r", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 9}}],
		"overrides": [{"id": "stop", "action": "block", "match": {"path": "/"}, "reason": "r", "author": "a", "expires_at": "2100-01-01T00:00:00Z"}]}`
	got := replayJSON(t, load(t, file), `{"at":4102444799,"path":"/"}
		{"at":4102444800,"path":"/"}`, memory)
	for i, want := range []string{`"allowed":false`, `"allowed":true`} {
		if !strings.Contains(got[i], want) {
			t.Errorf("request %d: got %s, want %s", i+1, got[i], want)
		}
	}
}

// A hidden key has one number in the whole report, also if both lists contain it.
func TestCompare_NumbersKeys(t *testing.T) {
	const was = `{"rules": [{"name": "client", "limit_keys": ["header:x"], "algorithm": "token_bucket", "algorithm_config": {"rps": 2, "burst": 5}}]}`
	is := strings.Replace(was, `"rps": 2, "burst": 5`, `"rps": 1, "burst": 9`, 1)
	var lines strings.Builder
	for client, does := range []string{"burst", "burst steady", "steady", "burst steady", "burst", "steady"} {
		for i := range 12 * strings.Count(does, "burst") { // 4 of them are newly admitted
			fmt.Fprintf(&lines, `{"at":%d.%02d,"headers":{"x":"k%d"}}`+"\n", 100*client, i, client)
		}
		for i := range 40 * strings.Count(does, "steady") { // after a while half of them are newly limited
			fmt.Fprintf(&lines, `{"at":%d.%d,"headers":{"x":"k%d"}}`+"\n", 100*client+30+i/2, i%2*5, client)
		}
	}
	text := lines.String()
	shown, masked := compare(t, was, is, text, true), compare(t, was, is, text, false)
	named := func(c comparing) (keys [][2]string) {
		for _, list := range []string{"newly_limited_keys", "newly_admitted_keys"} {
			for _, k := range c.summary[list].([]any) {
				key := k.(map[string]any)
				keys = append(keys, [2]string{key["rule"].(string), key["key"].(string)})
			}
		}
		return keys
	}
	inReport := regexp.MustCompile(`(?m)^(.+?) {2,}(client)  `)
	inPage := regexp.MustCompile(`<th scope="row"><bdi class="key" dir="ltr">(.*?)</bdi></th><td><span class="mono">(.*?)</span></td>`)
	found := func(pattern *regexp.Regexp, text string, key, rule int) (keys [][2]string) {
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			keys = append(keys, [2]string{m[rule], m[key]})
		}
		return keys
	}
	for _, tt := range []struct {
		name   string
		shown  [][2]string
		masked [][2]string
	}{
		{"in JSON", named(shown), named(masked)},
		{"in text", found(inReport, shown.report, 1, 2), found(inReport, masked.report, 1, 2)},
		{"in a page", found(inPage, htmlComparison(t, was, is, text, true), 1, 2), found(inPage, htmlComparison(t, was, is, text, false), 1, 2)},
	} {
		numbers, keys := map[[2]string]string{}, map[string][2]string{}
		for i, key := range tt.shown[:min(len(tt.shown), len(tt.masked))] {
			number := tt.masked[i][1]
			if was, ok := numbers[key]; ok && was != number {
				t.Errorf("%s: %v is %s, and before %s", tt.name, key, number, was)
			}
			if was, ok := keys[number]; ok && was != key {
				t.Errorf("%s: %s is %v, and before %v", tt.name, number, key, was)
			}
			numbers[key], keys[number] = number, key
		}
		if len(tt.shown) != 8 || len(tt.masked) != 8 || len(numbers) != 6 || keys["key 1"] == [2]string{} {
			t.Errorf("%s: %d keys are shown and %d masked, %d different ones; want 8, of which two are in both lists", tt.name, len(tt.shown), len(tt.masked), len(numbers))
		}
	}
}
