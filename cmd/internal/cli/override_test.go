// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/cli"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
)

// adminServer serves a policy with one rule, free, and one override of its own.
func adminServer(t *testing.T) string {
	t.Helper()
	base, err := policy.Load([]byte(`{"rules": [{"name": "free", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket",
		"algorithm_config": {"rate": "1/1d", "burst": 1}}], "overrides": [{"id": "filed", "action": "block", "match": {"path": "/old"},
		"reason": "gone", "author": "lee", "expires_at": "2099-01-01T00:00:00Z"}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := mete.New(store, base, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := overrides.New(base, overrides.Config{Documents: store, Apply: limiter.SetPolicy, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(limiter, httpapi.Config{Admin: true, Overrides: m})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(api)
	t.Cleanup(s.Close)
	return s.URL
}

// wantRun runs mete and compares, with the patterns as regular expressions.
func wantRun(t *testing.T, code int, stdout, stderr string, args ...string) {
	t.Helper()
	out, errs, got := run(t, args...)
	if got != code || !regexp.MustCompile(`(?s)^`+stdout+`$`).MatchString(out) || !regexp.MustCompile(`(?s)^`+stderr+`$`).MatchString(errs) {
		t.Errorf("mete %q: code %d, stdout %q, stderr %q\nwant %d, %s, %s", args, got, out, errs, code, stdout, stderr)
	}
}

func TestOverride(t *testing.T) {
	url := adminServer(t)
	do := func(args ...string) []string { return append([]string{"override", "--server", url}, args...) }
	wantRun(t, 0, `block-[a-z0-9]{8}: block header:x-api-key=k1, expires in 2h\n`, "",
		do("set", "--action", "block", "--match", "header:x-api-key=k1", "--reason", "scrapes", "--author", "kim", "--expires", "2h")...)
	wantRun(t, 1, `blocked by override block-[a-z0-9]{8}; try again in (2h|1h59m\d\ds)\n`, "", "take", "--server", url, "header:x-api-key=k1")
	wantRun(t, 0, `big: limit rule free, header:x-api-key=k2, burst=3 rps=0.5, expires in 3d\n`, "",
		do("set", "--id", "big", "--action", "limit", "--rule", "free", "--match", "header:x-api-key=k2", "--rps", "0.5", "--burst", "3",
			"--reason", "moves", "--author", "kim", "--expires", "3d")...)
	wantRun(t, 0, `allowed\n  free  2 left, .*`, "", "take", "--server", url, "header:x-api-key=k2")
	wantRun(t, 0, `vip: allow header:x-api-key=\["k3","k4"\], expires in \d+d.*\n`, "",
		do("set", "--id", "vip", "--action", "allow", "--match", "header:x-api-key=k3", "--match", "header:x-api-key=k4",
			"--reason", "r", "--author", "kim", "--expires", "2098-01-01T00:00:00Z")...)
	wantRun(t, 0, `allowed by override vip\n`, "", "peek", "--server", url, "header:x-api-key=k4")
	wantRun(t, 0, `id +action +applies to +expiry +author +reason +source\n`+
		`filed +block +path=/old +expires in \d+d.* +lee +gone +policy file\n`+
		`block-\w+ +block +header:x-api-key=k1 +expires in (2h|1h59m\d\ds|1h.*) +kim +scrapes +admin\n`+
		`big +limit +rule free, .* +admin\nvip .*\n\nat +what +id +author +reason\n.* made +vip +kim +r\n`, "", do("list", "--audit", "1")...)
	wantRun(t, 0, `\{"persistent":true,"overrides":\[\{"id":"filed".*\}\n`, "", do("--format", "json")...)
	wantRun(t, 0, `removed big\nremoved vip\n`, "", do("remove", "big", "vip", "--reason", "over", "--author", "kim")...)
	wantRun(t, 1, "", `mete override remove: "big": no such override; see the list\n`, do("remove", "big", "--reason", "over", "--author", "kim")...)
	wantRun(t, 1, "", `mete override remove: "filed": the override is in the policy file; remove it there\n`, do("remove", "filed", "--reason", "over", "--author", "kim")...)
	wantRun(t, 1, "", `mete override set: /rules/0: no rule has that name.*did you mean "free"\?\n`,
		do("set", "--action", "allow", "--rule", "fre", "--match", "path=/x", "--reason", "r", "--author", "a", "--expires", "1h")...)
	wantRun(t, 0, `wide: limit rule free, all requests, burst=1 rate=5/1m, expires in 1h\n`, "",
		do("set", "--id", "wide", "--action", "limit", "--rule", "free", "--all", "--rate", "5/1m", "--burst", "1", "--reason", "r", "--author", "a", "--expires", "1h")...)
	wantRun(t, 0, `break_glass-\w+: break_glass all requests, expires in (15m|14m\d\ds)\n`, "",
		do("set", "--action", "break_glass", "--reason", "fire", "--author", "kim", "--expires", "15m")...)
	wantRun(t, 0, `allowed by override break_glass-.*\n`, "", "take", "--server", url, "header:x-api-key=k1")
}

func TestOverride_File(t *testing.T) {
	url := adminServer(t)
	const one = `{ id: a, action: block, match: { "header:x-api-key": k1 }, reason: r, author: a, expires_at: 2099-01-01T00:00:00Z }`
	for name, tt := range map[string]struct {
		text           string
		code           int
		stdout, stderr string
	}{
		"one.yaml":     {one, 0, `a: block .*`, ""},
		"list.yaml":    {"- " + one + "\n- " + strings.Replace(one, "id: a", "id: b", 1), 0, `a: block .*b: block .*`, ""},
		"named.yaml":   {"overrides:\n- " + one, 0, `a: block .*`, ""},
		"one.json":     {`{"id": "c", "action": "shadow", "reason": "r", "author": "a", "expires_at": "2099-01-01T00:00:00Z"}`, 0, `c: shadow all requests.*`, ""},
		"list":         {`[{"id": "c", "action": "shadow", "reason": "r", "author": "a", "expires_at": "2099-01-01T00:00:00Z"}]`, 0, `c: shadow .*`, ""},
		"unknown.yaml": {strings.Replace(one, "reason", "raeson", 1), 1, "", `.*unknown field "raeson".*did you mean "reason".*`},
		"policy.yaml":  {"rules: []\noverrides: []", 2, "", `.*must not contain other parts.*`},
		"rules.yaml":   {"rules:\n- { name: free, limit_keys: [] }", 2, "", `.*rules.yaml: this is a policy.*`},
		"second.yaml":  {"- " + one + "\n- " + strings.Replace(one, "block", "blok", 1), 1, `a: block .*`, `.*second.yaml: override 2: /action: .*did you mean "block".*`},
		"text.yaml":    {"hello", 2, "", `.*neither an override nor a list.*`},
		"broken.yaml":  {"a: [", 2, "", `.*broken.yaml.*`},
		"broken.json":  {"{", 2, "", `.*neither an override nor a list.*`},
		"two.json":     {"{} {}", 2, "", `.*unexpected text after.*`},
		"two.yaml":     {one + "\n---\n" + one, 2, "", `.*more than one document.*`},
		"empty.yaml":   {"", 2, "", `.*empty.*`},
		"expired.yaml": {strings.Replace(one, "2099", "1999", 1), 1, "", `.*/expires_at: expires_at must be in the future.*`},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		wantRun(t, tt.code, tt.stdout, tt.stderr, "override", "set", "--server", url, "-f", path)
	}
	var out, errs strings.Builder
	if code := cli.Main(context.Background(), []string{"override", "set", "-f", "-", "--server", url}, cli.Streams{In: strings.NewReader(one), Out: &out, Err: &errs}); code != 0 {
		t.Errorf("from standard input: code %d, %q", code, errs.String())
	}
}

// Where no shell has set USER, as in a container, the account is the author.
func TestOverride_AuthorWithoutUser(t *testing.T) {
	account, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	url := adminServer(t)
	for name, want := range map[string]string{"": account.Username, "kim": "kim"} {
		t.Setenv("USER", name)
		wantRun(t, 0, `.*"author":"`+regexp.QuoteMeta(want)+`".*`, "", "override", "set", "--server", url, "--format", "json", "--id", "o",
			"--action", "block", "--match", "path=/x", "--reason", "r", "--expires", "1h")
		for i, file := range []string{
			`{"id": "o", "action": "block", "match": {"path": "/y"}, "reason": "r", "expires_at": "2099-01-01T00:00:00Z"}`,
			"- { id: o, action: block, match: { path: /y }, reason: r, expires_at: 2099-01-01T00:00:00Z }\n",
		} {
			path := filepath.Join(t.TempDir(), []string{"o.json", "o.yaml"}[i])
			if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			wantRun(t, 0, `.*"author":"`+regexp.QuoteMeta(want)+`".*`, "", "override", "set", "--server", url, "--format", "json", "-f", path)
		}
	}
}

func TestOverride_WrongUsage(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"sett", `did you mean 'mete override set'?`},
		{"frob", `it must be list, set or remove`},
		{"remove", `the ID of an override is required`},
		{"list x", `unexpected argument "x"`},
		{"list --reason r", `unknown flag --reason`},
		{"list --format xml", `must be text or json`},
		{"list --audit -1", `--audit must not`},
		{"set --action block --author a --expires 1h", `a reason is required`},
		{"set --action block --reason r --author= --expires 1h", `an author is required`},
		{"set --reason r --author a --expires 1h", `an effect is required: --action block, allow, limit, shadow or break_glass`},
		{"set --action block --reason r --author a", `an end is required: --expires 2h`},
		{"set --action limit --rule free --all --reason r --author a --expires 1h", `a limit is required: --rps NUMBER or --rate RATE`},
		{"set --action limit --rule free --all --burst 5 --reason r --author a --expires 1h", `a limit is required: --rps NUMBER or --rate RATE`},
		{"list -f x", `unknown flag -f`},
		{"set --action block --reason r --author a --expires soon", `--expires: "soon"`},
		{"set --action block --reason r --author a --expires -1h", `--expires: "-1h"`},
		{"set --action block --reason r --author a --expires 1h --match x", `is not NAME=VALUE`},
		{"set --action block --reason r --author a --expires 1h --match heder:x=1", `--match: `},
		{"set --action block --all --reason r --author a --expires 1h", `--all requires`},
		{"set -f x --reason r", `--file describes the whole override: remove --reason`},
		{"set -f none.yaml", `none.yaml`},
		{"list --server ftp://x", `--server: `},
	} {
		_, stderr, code := run(t, append([]string{"override"}, strings.Fields(tt.args)...)...)
		if code != 2 || !strings.Contains(stderr, tt.want) {
			t.Errorf("mete override %s: code %d, %q; want 2 and %q", tt.args, code, stderr, tt.want)
		}
	}
}

func TestOverride_ServerIsGone(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	wantRun(t, 3, "", `.*does not answer.*`, "override", "--server", s.URL)
	ill := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(503)
		w.Write([]byte(`{"title":"x","status":503,"detail":"the store did not answer"}`))
	}))
	t.Cleanup(ill.Close)
	wantRun(t, 3, "", `.*the store did not answer.*`, "override", "remove", "x", "--reason", "r", "--author", "a", "--server", ill.URL)
}

// What was done to buckets stands in the audit by their keys.
func TestOverride_AuditOfBuckets(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		const at = `"at":"2026-05-04T12:00:00Z","override":"","author":"kim"`
		_, _ = w.Write([]byte(`{"persistent":true,"overrides":[],"audit":[
			{"id":"a",` + at + `,"what":"reset","reason":"r","key":"free:k","tokens":1.5,"role":"operate","from":"192.0.2.1"},
			{"id":"b",` + at + `,"what":"taken","reason":"","key":"free:\u001bk","tokens":1},
			{"id":"c",` + at + `,"what":"reset","reason":"r","key":"free:old"}]}`))
	}))
	t.Cleanup(s.Close)
	wantRun(t, 0, `no overrides\n\nat +what +id +author +reason\n`+
		`2026-05-04 12:00:00 +reset +"?free:old"? +kim +r\n`+
		`2026-05-04 12:00:00 +taken +"?1 token from free:\S+k"? +kim +.*\n`+
		`2026-05-04 12:00:00 +reset +"?1.5 tokens to free:k"? +kim +r\n`, "", "override", "list", "--server", s.URL, "--audit", "9")
}
