// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/cmd/internal/server"
	"github.com/metehq/mete/internal/testkit"
)

const moneyPolicy = `prices: { file: prices.yaml }
rules:
  - { name: money, limit_keys: ["ip:address"], match: { "ai:model": "*" }, algorithm: cost_based, budget: 100, period: month, timezone: UTC, cost_source: "ai:money" }
`

func priceList(date, price string) string {
	return "version: v" + price + "\ndate: " + date + "\nunit: US cent\nmodels: { m: { input: " + price + ", output: " + price + " } }\n"
}

// The prices of a policy are followed like the policy itself.
func TestPrices_Follow(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Policy = policyFile(t, moneyPolicy)
	prices := filepath.Join(filepath.Dir(c.Policy), "prices.yaml")
	if s, err := server.New(t.Context(), c, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "policy.yaml:1:17: /prices/file: the prices cannot be used: stat ") {
		if s != nil {
			s.Close()
		}
		t.Fatalf("without the file: %v", err)
	}
	write(t, prices, priceList("2026-11-01", "1"))
	s := start(t, c)
	active := func() string {
		_, text := get(t, s.admin+"/v1/ai")
		return text
	}
	if text := active(); !strings.Contains(text, `"price_version":"v1","price_date":"2026-11-01"`) {
		t.Errorf("at the start: %s", text)
	}
	write(t, prices, priceList("2026-12-01", "2"))
	testkit.Until(t, "new prices are read", func() bool { return s.log.Count(`prices="v2 of 2026-12-01"`) == 1 })
	for i, broken := range []string{"", "models: {", priceList("2026-12-32", "3"), priceList("2026-12-01", "-3")} {
		write(t, prices, broken)
		testkit.Until(t, "broken prices are noticed", func() bool { return s.log.Count("policy invalid, old policy stays active") == i+1 })
		if text := active(); !strings.Contains(text, `"price_version":"v2"`) {
			t.Errorf("with broken prices %q: %s", broken, text)
		}
	}
	if err := os.Remove(prices); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "missing prices are noticed", func() bool { return s.log.Count("no such file") == 1 })
	write(t, prices, priceList("2026-12-01", "4"))
	testkit.Until(t, "the prices are back", func() bool { return s.log.Count(`prices="v4 of 2026-12-01"`) == 1 })
	write(t, c.Policy, strings.Replace(moneyPolicy, "prices.yaml", "other.yaml", 1))
	testkit.Until(t, "another file is missing", func() bool { return s.log.Count("other.yaml: no such file") == 1 })
	write(t, filepath.Join(filepath.Dir(c.Policy), "other.yaml"), priceList("2025-12-01", "5"))
	testkit.Until(t, "another file is read", func() bool { return s.log.Count(`prices="v5 of 2025-12-01"`) == 1 })
}

// Prices decide what a policy charges: a signed policy needs signed prices, and old ones do not come back.
func TestPrices_Signed(t *testing.T) {
	t.Parallel()
	operator, other := newSigner(t), newSigner(t)
	c := testConfig()
	c.Policy, c.PolicyKeys = policyFile(t, moneyPolicy), []string{operator.public}
	operator.sign(t, c.Policy, moneyPolicy)
	prices := filepath.Join(filepath.Dir(c.Policy), "prices.yaml")
	refused := func(what, want string) {
		t.Helper()
		if s, err := server.New(t.Context(), c, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			if s != nil {
				s.Close()
			}
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	first := priceList("2026-11-01", "9")
	write(t, prices, first)
	refused("unsigned prices", "prices.yaml: no valid signature")
	other.sign(t, prices, first)
	refused("by another key", "prices.yaml: no valid signature")
	undated := strings.Replace(first, "date: 2026-11-01\n", "", 1)
	write(t, prices, undated)
	operator.sign(t, prices, undated)
	refused("without a date", "signed prices need a date")
	write(t, prices, first)
	operator.sign(t, prices, first)
	s := start(t, c)

	next := priceList("2026-12-01", "8")
	write(t, prices, next)
	testkit.Until(t, "the missing signature is noticed", func() bool { return s.log.Count("no valid signature") == 1 })
	operator.sign(t, prices, next)
	testkit.Until(t, "the signature is noticed", func() bool { return s.log.Count(`prices="v8 of 2026-12-01"`) == 1 })
	if err := os.Remove(prices + policysign.Suffix); err != nil {
		t.Fatal(err)
	}
	operator.sign(t, prices, first)
	write(t, prices, first)
	testkit.Until(t, "old prices are noticed", func() bool { return s.log.Count("the date 2026-11-01 is before 2026-12-01") == 1 })
	if _, text := get(t, s.admin+"/v1/ai"); !strings.Contains(text, `"price_version":"v8"`) {
		t.Errorf("after a rollback: %s", text)
	}
}
