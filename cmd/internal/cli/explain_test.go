// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/storetest"
)

// situations are realistic arguments of "mete explain --policy …". A comma stands for a space within an
// argument.
var situations = []string{
	"policy.yaml GET,/v1/x ip=192.0.2.1 header:x-api-key=k1 jwt:plan=pro",
	"policy.yaml GET,/v1/x ip=192.0.2.1 header:x-api-key=k1 jwt:plan=enterprise cost=20",
	"policy.yaml GET,/v1/x header:x-api-key=k1 cost=12.5",
	"policy.yaml GET,/v1/x header:x-api-key=k1 cost=17",
	"policy.yaml GET,/v1/x ip=192.0.2.1 header:x-api-key=k1 cost=101",
	"policy.yaml POST,/ tenant=a",
	"policy.yaml POST,/ tenant=e cost=2.5",
	"policy.yaml POST,/ tenant=d cost=2.5",
	"policy.yaml post,https://user@API.example.com:443//a;x/%62?tenant=a#top ip=10.1.2.3",
	"policy.yaml GET,/ ip=198.51.100.7",
	"policy.yaml GET,/ ip=192.0.2.9 cost=200",
	"policy.yaml GET,/ ip=192.0.2.200",
	"policy.yaml GET,/slow/report ip=2001:db8::1 cost=3",
	"policy.yaml host=example.com",
	"policy.yaml",
	"insisting.yaml /",
	"insisting.yaml / --at 2026-05-04T13:00:00Z",
	"insisting.yaml / jwt:sub=u --at 2026-05-04T13:00:00Z --format json",
}

// TestExplain_Situations compares the output with testdata/explain.txt, a file for human readers.
func TestExplain_Situations(t *testing.T) {
	t.Setenv("METE_HASH_KEY", "of the servers")
	t.Chdir("testdata/explain")
	var b strings.Builder
	for _, situation := range situations {
		args := append([]string{"explain", "--policy"}, strings.Fields(situation)...)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], ",", " ")
		}
		if !strings.Contains(situation, "--at") {
			args = append(args, "--at", "2026-05-04T12:00:00Z")
		}
		stdout, stderr, code := run(t, args...)
		if stderr != "" {
			t.Errorf("mete %q: stderr %q", args, stderr)
		}
		fmt.Fprintf(&b, "$ mete")
		for _, arg := range args {
			if strings.ContainsAny(arg, " #?") {
				arg = "'" + arg + "'"
			}
			b.WriteString(" " + arg)
		}
		fmt.Fprintf(&b, "\n%s[exit code %d]\n\n", stdout, code)
		for line := range strings.Lines(stdout) {
			if n := utf8.RuneCountInString(line) - 1; n > 120 && !strings.Contains(situation, "json") {
				t.Errorf("mete %q: a line of %d letters: %s", args, n, line)
			}
		}
	}
	const golden = "situations.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("testdata/explain/%s is not what is printed: run go test ./internal/cli -run Situations -update in cmd, and read the difference.\ngot\n%s", golden, b.String())
	}
}

func TestExplain_Usage(t *testing.T) {
	const file = "testdata/explain/policy.yaml"
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"--policy " + file + " zz", 2, `"zz" is neither 'METHOD /path', a URL, nor NAME=VALUE`},
		{"--policy " + file + " /a /b", 2, "write only one request"},
		{"--policy " + file + " /a path=/b", 2, "path is given twice"},
		{"--policy " + file + " ip=1.2.3.4 ip:address=1.2.3.5", 2, "ip:address is given twice"},
		{"--policy " + file + " ip=localhost", 2, `"localhost" is not an address`},
		{"--policy " + file + " http:///x", 2, `is not a host`},
		{"--policy " + file + " /a/%2e%2e/b", 2, "servers interpret the path"},
		{"--policy " + file + " hots=a", 2, `did you mean "host"?`},
		{"--policy " + file + " cost=0", 2, "must be above 0"},
		{"--policy " + file + " cost=1 cost=2", 2, "cost is given twice"},
		{"--policy " + file + " cost=much", 2, "cost=much"},
		{"--policy " + file + " --at noon", 2, "for --at"},
		{"--policy " + file + " --store floppy:", 2, "unknown kind of store"},
		{"--policy " + file + " --format xml", 2, "must be text or json"},
		{"--policy " + file + " --server http://127.0.0.1:1", 2, "exclude each other"},
		{"--policy " + file + " --store redis://127.0.0.1:1 /", 3, "explain"},
		{"--policy " + file + " --store memory:?file=/does/not/exist /", 2, "exist"},
		{"--store memory: /", 2, "require --policy"},
		{"--policy /does/not/exist", 2, "no such file"},
		{"--policy ../config/mete.yaml", 1, "mete.yaml:"},
		{"--server http://127.0.0.1:1 /", 3, "does not answer"},
		{"--server nowhere /", 2, "--server"},
	} {
		stdout, stderr, code := run(t, append([]string{"explain"}, strings.Fields(tt.args)...)...)
		if code != tt.code || !strings.Contains(stderr, tt.want) || stdout != "" {
			t.Errorf("mete explain %s: code %d, stdout %q, stderr %q; want %d and %q", tt.args, code, stdout, stderr, tt.code, tt.want)
		}
	}
}

// A budget that comes back at midnight does so at 00:00:00, though the server asked
// its store some microseconds earlier.
func TestExplain_PassesAtMidnight(t *testing.T) {
	clock := storetest.NewClock()
	m, err := policy.Load([]byte(`{"name": "day", "limit_keys": [], "algorithm": "cost_based", "algorithm_config": {"budget": 1, "period": "1d"}}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	asked := func() bucket.Instant { return bucket.At(clock.Now().Time().Add(-14 * time.Microsecond)) }
	lim, err := mete.New(storetest.NewModel(clock.Now), m, mete.Config{Now: asked})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpapi.New(lim, httpapi.Config{Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	defer s.Close()
	if _, err := lim.Take(t.Context(), mete.Request{}); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, _ := run(t, "explain", "--server", s.URL); !strings.Contains(stdout, " 00:00:00 UTC") {
		t.Errorf("mete explain: %q, %q; want that it passes at 00:00:00", stdout, stderr)
	}
}

// A server explains by its own policy and its own buckets.
func TestExplain_Server(t *testing.T) {
	clock := storetest.NewClock()
	m, err := loadFile("testdata/explain/policy.yaml", policy.Options{HashKey: []byte("k"), Now: clock.Now().Time()})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(storetest.NewModel(clock.Now), m, mete.Config{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpapi.New(lim, httpapi.Config{Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	defer s.Close()
	if _, err := lim.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"tenant": "d", "method": "POST"}, Cost: 2}); err != nil {
		t.Fatal(err)
	}
	const want = "denied by rule tenants: 0 of 2 tokens left, and it costs 1; passes at 22:13:21 UTC (in 1s)\n"
	stdout, stderr, code := run(t, "explain", "--server", s.URL, "POST //a", "tenant=d")
	if code != 1 || !strings.HasPrefix(stdout, want) || stderr != "" || !strings.Contains(stdout, "Rules of "+s.URL+", version 7") ||
		!strings.Contains(stdout, `the path "//a" is matched as "/a"`) || strings.Contains(stdout, "shown full") {
		t.Errorf("code %d, stdout\n%s\nstderr %q; want it to begin with\n%s", code, stdout, stderr, want)
	}
	if d, err := lim.Peek(t.Context(), mete.Request{Attributes: mete.Attrs{"tenant": "d"}}); err != nil || !d.Allowed {
		t.Errorf("%+v, error %v", d, err)
	}
}

// A bucket that owes tokens is not shown as one that is merely empty.
func TestExplain_ShowsWhatIsOwed(t *testing.T) {
	clock := storetest.NewClock()
	m, err := policy.Load([]byte(`{"name": "all", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 2}}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(storetest.NewModel(clock.Now), m, mete.Config{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpapi.New(lim, httpapi.Config{Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	defer s.Close()
	if _, err := lim.Take(t.Context(), mete.Request{Cost: 4.5, MaxWait: time.Minute}); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"explain", "peek"} {
		want := map[string]string{"explain": "0, owes 2.5", "peek": "all  0 left, 2.5 owed, full again in 4.5s"}[command]
		if stdout, stderr, code := run(t, command, "--server", s.URL); code != 1 || !strings.Contains(stdout, want) {
			t.Errorf("mete %s: code %d, stdout\n%s\nstderr %q; want %s", command, code, stdout, stderr, want)
		}
	}
}

// Text from policies and servers cannot control the terminal.
func TestExplain_IsHarmless(t *testing.T) {
	const spell = "\x1b[31mowned\x1b]0;title\a"
	file := filepath.Join(t.TempDir(), "policy.yaml")
	text := `
rules:
  - { name: r, limit_keys: ["query:q"], algorithm: token_bucket, algorithm_config: { rps: 1, burst: 1 } }
overrides:
  - id: o1
    action: block
    match: { "query:q": [a, b] }
    author: "me\e[31mowned\e]0;title\a"
    reason: "why\e[31mowned\e]0;title\a"
    expires_at: 2100-01-01T00:00:00Z
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := api.Explanation{Why: spell, Rules: []api.ExplainedRule{{Name: spell, Why: spell, Limits: []api.ExplainedLimit{{
			Name: spell, Key: spell, Cost: 1000, Capacity: 1000}}}}}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(400)
		if err := json.NewEncoder(w).Encode(api.Problem{Title: spell, Status: 400, Detail: spell}); err != nil {
			t.Error(err)
		}
	}))
	defer refusing.Close()
	o := api.OverrideStatus{State: spell, Source: spell, Mistakes: []api.ErrorDetail{{Pointer: spell, Detail: spell, Hint: spell}}}
	o.ID, o.Action, o.Rules, o.Key, o.Algorithm, o.Reason, o.Author = spell, spell, []string{spell}, spell, spell, spell, spell
	o.ExpiresAt = time.Now().Add(time.Hour)
	listing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any = o
		if r.Method == http.MethodGet {
			answer = api.Overrides{Overrides: []api.OverrideStatus{o}, Audit: []api.AuditEntry{{What: spell, Override: spell, Author: spell, Reason: spell}}}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer listing.Close()
	for _, args := range [][]string{
		{"override", "list", "--audit", "5", "--server", listing.URL},
		{"override", "list", "--format", "json", "--audit", "5", "--server", listing.URL},
		{"override", "set", "--server", listing.URL, "--action", "block", "--match", "query:q=a", "--reason", "r", "--author", "a", "--expires", "1h"},
		{"override", "remove", "--server", refusing.URL, "--reason", "r", "--author", "a", spell},
		{"explain", "--policy", file, "query:q=a"},
		{"explain", "--policy", file, "query:q=" + spell},
		{"explain", "--server", server.URL, "query:q=a"},
		{"explain", "--server", refusing.URL, "query:q=a"},
		{"take", "--server", refusing.URL, "query:q=a"},
		{"override", "list", "--server", refusing.URL},
	} {
		stdout, stderr, _ := run(t, args...)
		if out := stdout + stderr; strings.ContainsAny(out, "\x1b\a") || out == "" {
			t.Errorf("mete %q: got %q", args, out)
		}
	}
}

// takeTokens takes 20 tokens of a key from a store, by the policy of the situations.
func takeTokens(t *testing.T, store mete.Store) {
	t.Helper()
	m, err := loadFile("testdata/explain/policy.yaml", policy.Options{HashKey: []byte("of the servers")})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(store, m, mete.Config{Deadline: policy.MaxDeadline})
	if err != nil {
		t.Fatal(err)
	}
	// The rules give the store 50 ms, which a busy machine may need for itself.
	once := mete.Request{Attributes: mete.Attrs{"header:x-api-key": "k1"}, Cost: 20, ID: "once"}
	d, err := lim.Take(t.Context(), once)
	for tries := 0; d.Degraded && tries < 100; tries++ {
		d, err = lim.Take(t.Context(), once)
	}
	if err != nil || d.Degraded || !d.Allowed {
		t.Fatalf("%+v, error %v", d, err)
	}
}

// explainStore explains a request with a store after spending.
func explainStore(t *testing.T, url string) {
	t.Helper()
	args := []string{"explain", "--policy", "testdata/explain/policy.yaml", "--store", url, "header:x-api-key=k1"}
	if stdout, stderr, code := run(t, args...); code != 2 || stdout != "" || !strings.Contains(stderr, "set METE_HASH_KEY to the hash_key of the servers") {
		t.Errorf("%s without the servers' hash_key: code %d, stdout %q, stderr %q", url, code, stdout, stderr)
	}
	t.Setenv("METE_HASH_KEY", "of the servers")
	defer os.Unsetenv("METE_HASH_KEY")
	stdout, stderr, code := run(t, args...)
	if !regexp.MustCompile(`free/day +1 +480 +(479|480) +500 +now`).MatchString(stdout) || code > 1 || strings.Contains(stdout, "shown full") {
		t.Errorf("%s: code %d, stdout\n%s\nstderr %q", url, code, stdout, stderr)
	}
	stdout, stderr, code = run(t, append(args, "cost=19.5", "--at", "2100-01-01T00:00:00Z")...)
	if !regexp.MustCompile(`free/day +19.5 +500 +480.5 +500 +now`).MatchString(stdout) || code != 0 {
		t.Errorf("%s in time to come: code %d, stdout\n%s\nstderr %q", url, code, stdout, stderr)
	}
}

// A file of buckets is looked at, and stays as it is.
func TestExplain_SavedBuckets(t *testing.T) {
	file := t.TempDir() + "/buckets"
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	takeTokens(t, store)
	if err := store.Save(file); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	explainStore(t, "memory:?file="+file)
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed (error %v)", err)
	}
}

// So is a store elsewhere.
func TestExplain_StoreElsewhere(t *testing.T) {
	for _, in := range places(t) {
		var node interface {
			mete.Store
			io.Closer
		}
		var err error
		if strings.HasPrefix(in.url, "redis") {
			node, err = redisstore.Open(t.Context(), in.url)
		} else {
			node, err = pgstore.Open(t.Context(), in.url)
		}
		if err != nil {
			t.Fatal(err)
		}
		takeTokens(t, node)
		if err := node.Close(); err != nil {
			t.Fatal(err)
		}
		before, err := in.buckets()
		if err != nil {
			t.Fatal(err)
		}
		explainStore(t, in.url)
		if after, err := in.buckets(); err != nil || after != before {
			t.Errorf("%s: %s buckets, and %s afterwards, error %v", in.url, before, after, err)
		}
		in.kill()
		if _, stderr, code := run(t, "explain", "--policy", "testdata/explain/policy.yaml", "--store", in.url); code != 3 {
			t.Errorf("%s, killed: code %d, stderr %q; want 3", in.url, code, stderr)
		}
	}
}

// Of many rules, the output shows only the relevant ones.
func TestExplain_ManyRules(t *testing.T) {
	file := t.TempDir() + "/policy.json"
	var rules []string
	for i := range 100 {
		rules = append(rules, fmt.Sprintf(`{"name": "r%d", "limit_keys": [], "match": {"tenant": "t%d"}, "algorithm_config": {"rps": 1, "burst": 2}}`, i, i))
	}
	if err := os.WriteFile(file, []byte(`{"rules": [`+strings.Join(rules, ",")+"]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, _, code := run(t, "explain", "--policy", file, "tenant=t77")
	if code != 0 || strings.Count(stdout, "\n") > 12 || !strings.Contains(stdout, "  ✓ r77  applies, and allows it\n  - 99 rules more") {
		t.Errorf("code %d, stdout\n%s", code, stdout)
	}
}

// loadFile is [policyyaml.LoadFile] with options.
func loadFile(path string, opts policy.Options) (*policy.Matcher, error) {
	data, err := policyyaml.Read(path)
	if err != nil {
		return nil, err
	}
	return policyyaml.Parse(path, data, opts)
}
