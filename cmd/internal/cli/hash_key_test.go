// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

// The rule applies to half of the keys, selected by hash.
const halfOfKeys = `{"rules": [{"name": "a", "limit_keys": ["header:x-api-key"], "mode": "50%", "on_missing": "deny", "algorithm_config": {"rps": 1, "burst": 1}}],
	"tests": [{"name": "half", "request": {"header:x-api-key": "k{n}"}, "steps": [{"times": 64}, {"times": 64, "expect": {"allowed": ALLOWED}}]}]}`

// ruleBits returns a bit for each of 64 keys hashed with hashKey: 1 if the rule applies to the key. It also returns
// the number of exempt keys.
func ruleBits(t *testing.T, hashKey string) (bits string, spared int) {
	t.Helper()
	m, err := policy.Load([]byte(strings.ReplaceAll(halfOfKeys, "ALLOWED", "0")), policy.Options{HashKey: []byte(hashKey)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 64 {
		matches, _ := m.Match(nil, policy.Map{"header:x-api-key": fmt.Sprintf("k%d", i+1)}, 0, 0)
		if matches[0].Shadow {
			bits, spared = bits+"0", spared+1
		} else {
			bits += "1"
		}
	}
	return bits, spared
}

// Shares of hashed keys are the same in check, replay and explain: by METE_HASH_KEY
// those of the servers, and without it always the same ones. They were random.
func TestHashKey_SharesAreTheSameEachTime(t *testing.T) {
	dir := t.TempDir()
	file, trace := filepath.Join(dir, "policy.json"), filepath.Join(dir, "trace.jsonl")
	var lines strings.Builder
	for range 2 {
		for i := range 64 {
			fmt.Fprintf(&lines, `{"at": 1000, "headers": {"x-api-key": "k%d"}}`+"\n", i+1)
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(trace, lines.String())
	for _, env := range []string{"", "0123456789abcdef0123456789abcdef"} {
		t.Setenv("METE_HASH_KEY", env)
		want, spared := ruleBits(t, env)
		if env == "" {
			want, spared = withoutHashKey, strings.Count(withoutHashKey, "0")
		}
		write(file, strings.ReplaceAll(halfOfKeys, "ALLOWED", fmt.Sprint(spared)))
		out, errs, code := run(t, "check", file)
		if code != 0 {
			t.Errorf("METE_HASH_KEY=%q: check ends with %d:\n%s%s", env, code, out, errs)
		}
		if noted := strings.Contains(out, `rule "a" selects 50% of its keys by a hash`); noted != (env == "") {
			t.Errorf("METE_HASH_KEY=%q: check notes that the servers differ: %t", env, noted)
		}
		out, errs, _ = run(t, "replay", "--policy", file, "--format", "json", trace)
		got := ""
		for _, line := range strings.Split(strings.TrimSpace(out), "\n")[64:] {
			got += map[bool]string{true: "0", false: "1"}[strings.Contains(line, `"allowed":true`)]
		}
		if got != want {
			t.Errorf("METE_HASH_KEY=%q: replay denies %s, want %s", env, got, want)
		}
		if noted := strings.Contains(errs, "by a hash: servers select other keys"); noted != (env == "") {
			t.Errorf("METE_HASH_KEY=%q: replay notes that the servers differ: %t (%q)", env, noted, errs)
		}
		out, _, _ = run(t, "replay", "--old", file, "--new", file, "--max-newly-limited", "0", trace)
		if !strings.Contains(strings.Join(strings.Fields(out), " "), fmt.Sprintf("denied by both %d ", 64-spared)) {
			t.Errorf("METE_HASH_KEY=%q: compare says\n%s", env, out)
		}
		shadow := strings.IndexByte(want, '0') + 1
		if out, _, _ = run(t, "explain", "--policy", file, fmt.Sprintf("header:x-api-key=k%d", shadow)); !strings.Contains(out, "~") || !strings.Contains(out, "shadow") {
			t.Errorf("METE_HASH_KEY=%q: explain of k%d says\n%s", env, shadow, out)
		}
	}
}

// withoutHashKey must stay as it is: a policy's tests depend on it.
const withoutHashKey = "0101010010011011100010001100100110111011011111110010001100110000"
