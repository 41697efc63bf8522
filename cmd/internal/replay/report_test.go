// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/replay"
	"github.com/metehq/mete/cmd/internal/trace"
)

// reportOn replays a trace and returns its report.
func reportOn(t *testing.T, policyFile, text string, edit func(*replay.Report)) string {
	t.Helper()
	m := load(t, policyFile)
	reader, stats := trace.NewReader(strings.NewReader(text), trace.FormatAuto), replay.NewStats(m)
	err := replay.Run(context.Background(), replay.Config{Policy: m, Trace: reader, Store: memory, Each: stats.Add, Invalid: stats.Invalid})
	if err != nil {
		t.Fatal(err)
	}
	r := replay.Report{Policy: "p.json", Trace: "t", Format: reader.Format().String(), Counts: stats}
	edit(&r)
	var out strings.Builder
	if _, err := r.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

const reportPolicy = `{"rules": [
	{"name": "per-client", "limit_keys": ["ip:address"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 2}},
	{"name": "everyone", "limit_keys": [], "match": {"path": "/x*"}, "mode": "shadow", "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 1}},
	{"name": "login", "limit_keys": ["header:x", "path"], "match": {"path": "/login"}, "on_missing": "deny",
	 "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 1}}]}`

const reportTrace = `{"at":0,"ip":"192.0.2.1","path":"/x"}
	{"at":0,"ip":"192.0.2.1","path":"/x"}
	{"at":0.5,"ip":"192.0.2.1","path":"/x"}
	not a request
	{"at":0.25,"ip":"192.0.2.1","path":"/"}
	{"at":3661,"ip":"2001:db8::1","cost":2}
	{"at":3661,"ip":"2001:db8::2"}
	{"at":3662,"path":"/"}
	{"at":3662,"path":"/login"}
	{"at":3662,"path":"/login","headers":{"X":"a b\u001b[31m"}}
	{"at":3662,"path":"/login","headers":{"X":"a b\u001b[31m"}}
`

func TestReport(t *testing.T) {
	const want = `policy    p.json, 3 rules
trace     t, jsonl, 10 requests in 1h1m2s
from      0 s
to        3662 s
warning: 1 request is older than the previous one (10.00%), by up to 250ms; the time of a bucket does not go back; --sort replays in order of time

allowed  5  50.00%
denied   5  50.00%  first 0.25 s, last 3662 s
no rule  1  10.00%  allowed, because no rule applied

OVER TIME, in steps of 1m
allowed   3 ┤                                                             █
            │▅                                                            █
            │█                                                            █
            │█                                                            █
in shadow 1 ┤█
            │█
denied    3 ┤                                                             █
            │▅                                                            █
            │█                                                            █
            │█                                                            █
            └┬─────────┬─────────┬─────────┬─────────┬─────────┬─────────┬─
             0 s       600 s     1200 s    1800 s    2400 s    3000 s    3600 s

RULE        MODE     REQUESTS  DENIED                   FIRST DENIED  LAST DENIED
per-client  enforce         6       3  50.00%  █████    0.25 s        3661 s
everyone    shadow          2       1  50.00%  █████    0 s           0 s
login       enforce         3       2  66.67%  ██████▋  3662 s        3662 s

MOST DENIED                         RULE        DENIED        FIRST DENIED  LAST DENIED
ip:address=192.0.2.1                per-client       2  ███▎  0.25 s        0.5 s
(everyone)                          everyone         1  █▋    0 s           0 s
ip:address=2001:db8::/64            per-client       1  █▋    3661 s        3661 s
header:x=(missing) path=/login      login            1  █▋    3662 s        3662 s
header:x="a b\x1b[31m" path=/login  login            1  █▋    3662 s        3662 s

rules in shadow mode deny nothing; the report shows what they would deny
1 request was denied because the trace lacks an attribute of limit_keys (on_missing: deny); an access log has only two headers and no claims
1 invalid line was skipped
`
	got := reportOn(t, reportPolicy, reportTrace, func(r *replay.Report) { r.ShowKeys = true })
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// squeeze makes one space of many: widths are the table's business.
func squeeze(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}

func TestReport_KeysAreHiddenUnlessAsked(t *testing.T) {
	got := reportOn(t, reportPolicy, reportTrace, func(*replay.Report) {})
	for _, secret := range []string{"192.0.2.1", "2001:db8", "header:x"} {
		if strings.Contains(got, secret) {
			t.Errorf("the report shows %q:\n%s", secret, got)
		}
	}
	if !strings.Contains(got, "--show-keys") {
		t.Errorf("the report does not say how to see the keys:\n%s", got)
	}
}

// A key is named as the policy file names it.
func TestReport_Prefix(t *testing.T) {
	const policyFile = `{"name": "site", "limit_keys": ["ip:address/56"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 1}}`
	got := reportOn(t, policyFile, `{"at":0,"ip":"2001:db8::1","cost":2}`, func(r *replay.Report) { r.ShowKeys = true })
	if want := "ip:address/56=2001:db8::/56"; !strings.Contains(got, want) {
		t.Errorf("the report has no %q:\n%s", want, got)
	}
}

func TestReport_NothingToReport(t *testing.T) {
	got := reportOn(t, reportPolicy, "\n", func(r *replay.Report) { r.Elapsed = 1 })
	if want := "policy    p.json, 3 rules\ntrace     t, auto, 0 requests\n"; got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestReport_ManyKeys denies more keys than the report can count, and one key most often. The report
// contains that key and states the loss.
func TestReport_ManyKeys(t *testing.T) {
	const keys = 100_000
	var text strings.Builder
	for i := range keys {
		fmt.Fprintf(&text, `{"at":0,"headers":{"x":"k%d"},"cost":2}`+"\n", i)
		if i%100 == 0 {
			text.WriteString(`{"at":0,"headers":{"x":"hot"},"cost":2}` + "\n")
		}
	}
	const policyFile = `{"rules": [{"name": "r", "limit_keys": ["header:x"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 1}}]}`
	got := squeeze(reportOn(t, policyFile, text.String(), func(r *replay.Report) { r.ShowKeys = true }))
	for _, want := range []string{"header:x=hot r 1000 ▏ ", "a list has more than 65536 keys", "up to 2 too low"} {
		if !strings.Contains(got, want) {
			t.Errorf("the report has no %q:\n%s", want, got)
		}
	}
}
