// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pricedPolicy copies the example of a policy with a file of prices, and returns the paths of both.
func pricedPolicy(t *testing.T) (policy, prices string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"policy.yaml", "prices.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../../examples/modelprices", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "prices.yaml")
}

func TestPrices_Commands(t *testing.T) {
	policy, prices := pricedPolicy(t)
	other, _ := pricedPolicy(t)
	text, err := os.ReadFile(prices)
	if err != nil {
		t.Fatal(err)
	}
	set := func(from, to string) {
		t.Helper()
		if err := os.WriteFile(prices, []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(code int, want string, args ...string) {
		t.Helper()
		out, errs, got := run(t, args...)
		if got != code || !strings.Contains(out+errs, want) {
			t.Errorf("%q: exit code %d, %s%s, want %d and %q", args, got, out, errs, code, want)
		}
	}
	expect(0, "ok, 1 rule, prices 2026-11 of 2026-11-01", "check", filepath.Dir(policy)) // without the prices as a policy
	expect(0, `"price_version":"2026-11","price_date":"2026-11-01"`, "check", "--format", "json", policy)
	expect(1, "this file has prices, and no rules; check the policy that names it", "check", prices)
	expect(0, ", prices 2026-11 of 2026-11-01, in policy order", "explain", "--policy", policy, "header:x-org=acme", "ai:model=gpt-4o", "ai:prompt_tokens=5")
	expect(0, "no difference in decisions", "diff", other, policy)
	set("250", "260")
	expect(1, "prices: 2026-11 of 2026-11-01, hash ", "diff", other, policy)
	expect(1, "1 test failed", "check", policy)
	set("250", "-1")
	expect(1, "prices.yaml:6:20: /models/gpt-4o/input: input must not be below 0 (got -1)", "check", policy)
	expect(1, `"line":2,"column":17,"path":"/prices/file"`, "check", "--format", "json", policy)
	set("2026-11-01", "soon")
	expect(2, "/date: date must be the day", "diff", other, policy)
	if err := os.Remove(prices); err != nil {
		t.Fatal(err)
	}
	expect(1, "policy.yaml:2:17: /prices/file: the prices cannot be used: open ", "check", policy)
}

// A signed policy is valid only with signed prices.
func TestPrices_SignedCheck(t *testing.T) {
	policy, prices := pricedPolicy(t)
	key := filepath.Join(t.TempDir(), "key")
	for _, args := range [][]string{{"sign", "--new-key", key}, {"sign", "--private-key", key + ".pem", policy}} {
		if _, errs, code := run(t, args...); code != 0 {
			t.Fatal(errs)
		}
	}
	if out, _, code := run(t, "check", "--policy-key", key+".pub.pem", policy); code != 1 || !strings.Contains(out, "prices.yaml: no valid signature") {
		t.Errorf("unsigned prices: exit code %d, %s", code, out)
	}
	if _, errs, code := run(t, "sign", "--private-key", key+".pem", prices); code != 0 {
		t.Fatal(errs)
	}
	if out, _, code := run(t, "check", "--policy-key", key+".pub.pem", policy); code != 0 {
		t.Errorf("signed prices: exit code %d, %s", code, out)
	}
}
