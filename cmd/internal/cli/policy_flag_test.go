// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A policy is an argument or --policy, in every command that takes one.
func TestPolicy_ArgumentOrFlag(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("policy.yaml", "name: a\nlimit_keys: [\"ip:address\"]\nalgorithm_config: {rps: 1, burst: 2}\n")
	write("trace.jsonl", `{"at":1,"ip":"192.0.2.1"}`+"\n")
	if _, stderr, code := run(t, "sign", "--new-key", "k"); code != 0 {
		t.Fatal(stderr)
	}
	varies := regexp.MustCompile(`\d\d:\d\d:\d\d\.\d+|replayed in .*`)
	for _, tt := range []string{"check POLICY", "explain POLICY /a.json ip=192.0.2.1", "replay POLICY trace.jsonl", "sign --private-key k.pem POLICY", "serve --check POLICY"} {
		argument, errors, code := run(t, strings.Fields(strings.Replace(tt, "POLICY", "policy.yaml", 1))...)
		if code != 0 || argument == "" || errors != "" {
			t.Errorf("mete %s: code %d, %s%s", tt, code, argument, errors)
		}
		flag, errors, code := run(t, strings.Fields(strings.Replace(tt, "POLICY", "--policy policy.yaml", 1))...)
		if code != 0 || varies.ReplaceAllString(flag, "") != varies.ReplaceAllString(argument, "") {
			t.Errorf("mete %s with --policy: code %d, %s%s\nwant\n%s", tt, code, flag, errors, argument)
		}
	}
}

// A path of a request that looks like the name of a policy is one only if the file exists.
func TestExplain_PathOrPolicy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(file, []byte(`{"name":"a","limit_keys":["path"],"algorithm_config":{"rps":1,"burst":2}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, code := run(t, "explain", file, "/data/policy.json"); code != 0 || !strings.Contains(stdout, "path=/data/policy.json") {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
	if stdout, stderr, code := run(t, "explain", "absent.json", "/"); code != 2 || !strings.Contains(stderr, "absent.json: no such file") {
		t.Errorf("of an absent policy: code %d, %s%s", code, stdout, stderr)
	}
}
