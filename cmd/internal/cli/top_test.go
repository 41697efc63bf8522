// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/topkeys"
)

// topServer has counted keys of two rules. The caller has the role operate.
func topServer(t *testing.T, role httpapi.Role) string {
	t.Helper()
	_, url := serveTop(t, role, `{"rules": [
		{"name": "free", "limit_keys": ["ip:address", "path"], "algorithm_config": {"rps": 10, "burst": 2}},
		{"name": "all", "limit_keys": [], "algorithm_config": {"rps": 10, "burst": 2}}]}`, func(tr *topkeys.Tracker, now bucket.Instant) {
		for i := range 40 {
			tr.Record(now.Add(-time.Minute), topkeys.KindDenied, "free", "free:ip=192.0.2.1|path=/a%20b", 90*time.Second)
			if i%2 == 0 {
				tr.Record(now.Add(-3*time.Second), topkeys.KindDenied, "free", fmt.Sprintf("free:ip=192.0.2.%d|path=/", 10+i), bucket.Never)
			}
		}
		tr.Record(now, topkeys.KindDenied, "all", "all:", 10*time.Millisecond)
		tr.Record(now, topkeys.KindNear, "free", "free:ip=2001:db8::/64|path=/", 0)
	})
	return url
}

// serveTop serves the keys that record records.
func serveTop(t *testing.T, role httpapi.Role, rules string, record func(tr *topkeys.Tracker, now bucket.Instant)) (lim *mete.Limiter, url string) {
	t.Helper()
	m, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if lim, err = mete.New(store, m, mete.Config{}); err != nil {
		t.Fatal(err)
	}
	now := bucket.Instant(1_790_000_060_000_000)
	tr, err := topkeys.New(topkeys.Config{Counters: 5}, now.Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	record(tr, now)
	api, err := httpapi.New(lim, httpapi.Config{
		Admin: true, Role: func(*http.Request) httpapi.Role { return role },
		Top: httpapi.Top{Tracker: tr, Now: func() bucket.Instant { return now }, MaskKey: []byte("k")},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(api)
	t.Cleanup(s.Close)
	return lim, s.URL
}

func TestTop_ShowsOneList(t *testing.T) {
	url := topServer(t, httpapi.RoleOperate)
	for _, tt := range []struct{ args, want string }{
		{"--count 3", `
denied 61 times in the last 1m (1.02/s), by 2 rules

DENIED    /S  SHARE  FIRST  LAST  RETRY  RULE  KEY
    40  0.67    67%     1m    1m    30s  free  ip:address=192.0.2.1 path="/a b"
   1-5  0.08     8%     3s    3s  never  free  ip:address=192.0.2.42 path=/
   1-5  0.08     8%     3s    3s  never  free  ip:address=192.0.2.44 path=/

no other key has more than 5
`},
		{"--rule all --once", `
denied 1 time in the last 1m (0.02/s), by 1 rule

DENIED    /S  SHARE  FIRST  LAST  RETRY  RULE  KEY
     1  0.02   100%    now   now   10ms  all   (everyone)

no other keys
`},
		{"--kind near", `
admitted near a limit 1 time in the last 1m (0.02/s), by 1 rule

NEAR    /S  SHARE  FIRST  LAST  RULE  KEY
   1  0.02   100%    now   now  free  ip:address=2001:db8::/64 path=/

no other keys
`},
		{"--kind shadow", `
would be denied by a rule in shadow mode 0 times in the last 1m

no keys
`},
	} {
		stdout, stderr, code := run(t, append([]string{"top", "--server", url}, strings.Fields(tt.args)...)...)
		if code != 0 || stderr != "" || stdout != tt.want[1:] {
			t.Errorf("mete top %s: code %d, %s%s\nwant%s", tt.args, code, stderr, stdout, tt.want)
		}
	}
	stdout, _, code := run(t, "top", "--server", url, "--format", "json")
	var top api.Top
	if err := json.Unmarshal([]byte(stdout), &top); err != nil || code != 0 || strings.Count(stdout, "\n") != 1 || top.Total != 61 || len(top.Keys) != 6 {
		t.Errorf("mete top --format json: code %d, %v: %s", code, err, stdout)
	}
	masked := topServer(t, httpapi.RoleRead)
	stdout, _, _ = run(t, "top", "--server", masked, "--count", "1")
	if !strings.Contains(stdout, "keys are masked") || strings.Contains(stdout, "192.0.2.1 ") || !strings.Contains(stdout, " ip:address=192.0.2.0/24 path=…") {
		t.Errorf("masked keys: %s", stdout)
	}
}

func TestTop_Refuses(t *testing.T) {
	url := topServer(t, httpapi.RoleNone)
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"free", 2, "use --rule free"},
		{"--kind all", 2, `invalid value "all" for --kind: must be denied, shadow or near`},
		{"--count 0", 2, "--count must be between 1 and 1000"},
		{"--interval 1ms", 2, "--interval must be at least 100ms"},
		{"--format xml", 2, `invalid value "xml" for --format: must be text or json`},
		{"--window x", 2, "--window"},
		{"--server ftp://x", 2, "--server: "},
		{"--server http://127.0.0.1:1", 3, "http://127.0.0.1:1 does not answer"},
		{"--server " + url, 4, "a token with the role read"},
		{"--server " + topServer(t, httpapi.RoleRead) + " --rule fre", 4, `no rule is named "fre"; did you mean "free"?`},
		{"--server " + topServer(t, httpapi.RoleRead) + " --window 2m", 4, "window is the time range"},
		{"--server " + adminServer(t), 4, "top keys are shown only at the admin address"},
	} {
		_, stderr, code := run(t, append([]string{"top"}, strings.Fields(tt.args)...)...)
		if code != tt.code || !strings.Contains(stderr, tt.want) {
			t.Errorf("mete top %s: code %d, %q; want %d and %q", tt.args, code, stderr, tt.code, tt.want)
		}
	}
}

// Keys cannot control the terminal, and neither can servers.
func TestTop_IsInert(t *testing.T) {
	const hostile = "\x1b[2J\u202eevil\u05d0\r\n\x00"
	text, err := json.Marshal(api.Top{
		Kind: "denied", At: time.Unix(1_790_000_000, 0), Since: time.Unix(1_789_999_990, 0), Total: 1, RuleCount: 1,
		Rules: []api.TopRule{{Rule: hostile, Total: 1}},
		Keys:  []api.TopKey{{Rule: hostile, Limit: hostile, Key: hostile, Parts: []api.KeyPart{{Name: hostile, Value: hostile + strings.Repeat("x", 500)}}, Count: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(text)
	}))
	t.Cleanup(s.Close)
	stdout, _, code := run(t, "top", "--server", s.URL)
	if code != 0 || strings.ContainsAny(stdout, "\x1b\u202e\u05d0\r\x00") || strings.Count(stdout, "\n") != 6 || !strings.Contains(stdout, `\u001b[2J\u202eevil\u05d0`) {
		t.Errorf("mete top: code %d, %q", code, stdout)
	}
}
