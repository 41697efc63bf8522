// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const signedPolicy = `rules:
  - name: client
    limit_keys: ["ip:address"]
    algorithm: token_bucket
    algorithm_config: { rps: 1, burst: 5 }
`

// What sign writes, check believes, until the file changes.
func TestSign_AndCheck(t *testing.T) {
	dir := t.TempDir()
	key, policy := filepath.Join(dir, "release"), filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(signedPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := run(t, "sign", "--new-key", key)
	if code != 0 || errs != "" || !strings.Contains(out, "mete serve --policy-key "+key+".pub.pem") {
		t.Fatalf("--new-key: code %d, stdout %q, stderr %q", code, out, errs)
	}
	if _, errs, code := run(t, "sign", "--new-key", key); code != 2 || !strings.Contains(errs, "exists") {
		t.Errorf("--new-key again: code %d, stderr %q; want 2: a key must not be overwritten", code, errs)
	}
	check := func(want int, words string) {
		t.Helper()
		for _, format := range []string{"text", "json"} {
			out, errs, code := run(t, "check", "--policy-key", key+".pub.pem", "--format", format, policy)
			if code != want || !strings.Contains(out+errs, words) && (format == "text" || want != 0) {
				t.Errorf("check --format %s: code %d, stdout %q, stderr %q; want %d and %q", format, code, out, errs, want, words)
			}
		}
	}
	check(1, "no valid signature")
	if out, errs, code := run(t, "sign", "--private-key", key+".pem", policy); code != 0 || out != policy+".sig\n" || errs != "" {
		t.Errorf("sign: code %d, stdout %q, stderr %q", code, out, errs)
	}
	check(0, "ok, 1 rule")
	if err := os.WriteFile(policy, []byte(signedPolicy+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check(1, "the signature is for other contents or by another key")
	if entries, _ := os.ReadDir(dir); len(entries) != 4 {
		t.Errorf("%v: want two keys, the policy and its signature", entries)
	}
}

func TestSign_Mistakes(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "k")
	if _, errs, code := run(t, "sign", "--new-key", key); code != 0 {
		t.Fatal(errs)
	}
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"sign", 2, "no key given"},
		{"sign policy.yaml", 2, "no key given"},
		{"sign --private-key " + key + ".pem", 2, "no policy file given"},
		{"sign --private-key " + key + ".pub.pem policy.yaml", 2, "this is a public key"},
		{"sign --private-key " + key + ".pem " + dir + "/missing.yaml", 2, "missing.yaml"},
		{"sign --private-key " + key + ".pem --new-key x", 2, "signs nothing"},
		{"sign --new-key x policy.yaml", 2, "signs nothing"},
		{"sign --new-key " + dir + "/missing/x", 2, "missing/x.pem"},
		{"check --policy-key " + key + ".pem policy.yaml", 2, "this is a private key"},
		{"check --policy-key " + key + ".pub.pem -", 2, "only a file can have a signature"},
		{"check --policy-key " + key + ".pub.pem postgres://u:secret@127.0.0.1/d", 2, "only a file can have a signature"},
		{"serve --policy-key " + key + ".pub.pem", 2, "policy_keys: needs a policy file"},
		{"serve --policy-key " + key + ".pub.pem --policy postgres://u:secret@127.0.0.1/d", 2, "policy_keys: requires a policy file"},
		{"serve --policy-key " + key + ".pub.pem --policy-key missing.pem --policy ../../../examples/quickstart.yaml", 2, "policy key: open missing.pem"},
		{"serve --policy-key " + key + ".pub.pem --policy ../../../examples/quickstart.yaml", 1, "no valid signature"},
		{"serve --jwks jwks.json --trust-jwt", 2, "trust_jwt: excludes jwt.keys"},
		{"serve --jwks missing.json --upstream http://127.0.0.1:1 --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0", 2, "jwtclaims: key set missing.json: "},
	} {
		out, errs, code := run(t, strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(errs, tt.want) || strings.Contains(out+errs, "secret") {
			t.Errorf("mete %s: code %d, stdout %q, stderr %q; want %d and %q", tt.args, code, out, errs, tt.code, tt.want)
		}
	}
}
