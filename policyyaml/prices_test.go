// SPDX-License-Identifier: Apache-2.0

package policyyaml_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

const moneyRule = `prices: { file: prices.yaml }
rules:
  - { name: money, limit_keys: ["jwt:org_id"], algorithm: cost_based, budget: 100, period: month, timezone: UTC, cost_source: "ai:money" }
`

const priceList = `version: "7"
date: 2026-11-01
unit: US cent
models:
  gpt-4o: { input: 250, output: 1000 }
`

func writePolicy(t *testing.T, text, prices string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	files := map[string]string{path: text, filepath.Join(filepath.Dir(path), "prices.yaml"): prices}
	for name, text := range files {
		if text == "" {
			continue
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestLoadFile_Prices(t *testing.T) {
	m, err := policyyaml.LoadFile(writePolicy(t, moneyRule, priceList))
	if err != nil {
		t.Fatal(err)
	}
	l := &m.Rules()[0].Limits[0]
	if p := m.Prices(); p.Version() != "7" || p.Date() != "2026-11-01" || l.PriceUnit() != "US cent" {
		t.Errorf("version %q of %q in %q", p.Version(), p.Date(), l.PriceUnit())
	}
	if money, ok := l.Price("gpt-4o", &policy.TokenUsage{Input: 1_000_000}); !ok || money.String() != "250" {
		t.Errorf("a million tokens cost %v, %v", money, ok)
	}
	inline, err := policyyaml.Load([]byte(strings.Replace(moneyRule, "prices: { file: prices.yaml }", `prices: { version: "8", models: { m: { input: 1, output: 1 } } }`, 1)), policy.Options{})
	if err != nil || inline.Prices().Version() != "8" || inline.Prices().Date() != "" {
		t.Errorf("inline prices: %v", err)
	}
}

// TestLoadFile_BadPrices checks that errors name the file, the place and the remedy.
func TestLoadFile_BadPrices(t *testing.T) {
	for what, tt := range map[string]struct{ policy, prices, want string }{
		"a missing file":  {moneyRule, "", "policy.yaml:1:17: /prices/file: the prices cannot be used: open "},
		"not YAML":        {moneyRule, "models: [", "prices.yaml:1:"},
		"empty":           {moneyRule, " \n", "prices.yaml: the file is empty; write version: and models:"},
		"a bad price":     {moneyRule, strings.Replace(priceList, "250", "-1", 1), "prices.yaml:5:20: /models/gpt-4o/input: "},
		"a bad date":      {moneyRule, strings.Replace(priceList, "2026-11-01", "2026-02-30", 1), "prices.yaml:2:7: /date: date must be the day on which the prices were written (got \"2026-02-30\"); as in \"2026-11-01\""},
		"a time":          {moneyRule, strings.Replace(priceList, "2026-11-01", "2026-11-01T00:00:00Z", 1), "/date: date must be"},
		"a year":          {moneyRule, strings.Replace(priceList, "2026-11-01", "2026", 1), "/date: date must be"},
		"no version":      {moneyRule, strings.Replace(priceList, "version:", "ver:", 1), "prices.yaml:1:1: "},
		"a file again":    {moneyRule, "file: other.yaml\n" + priceList, "/file: unknown field"},
		"a policy":        {moneyRule, moneyRule, "/rules: unknown field"},
		"file and models": {strings.Replace(moneyRule, "prices.yaml }", "prices.yaml, version: x }", 1), priceList, "it belongs in the file with the prices"},
		"no name":         {strings.Replace(moneyRule, "prices.yaml }", "'' }", 1), priceList, "/prices/file: "},
		"two errors":      {strings.Replace(moneyRule, "budget: 100", "budget: -1", 1), strings.Replace(priceList, "250", "-1", 1), "policy.yaml:3:"},
	} {
		_, err := policyyaml.LoadFile(writePolicy(t, tt.policy, tt.prices))
		var errs policyyaml.Errors
		if !errors.As(err, &errs) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", what, err, tt.want)
		}
	}
}

// TestParse_PricesNotRead checks that a policy from elsewhere names no files.
func TestParse_PricesNotRead(t *testing.T) {
	path := writePolicy(t, moneyRule, priceList)
	_, err := policyyaml.Parse(path, []byte(moneyRule), policy.Options{})
	if err == nil || !strings.Contains(err.Error(), ":1:17: /prices/file: a policy from this place cannot read another file (got \"prices.yaml\"); write the prices into the policy") {
		t.Errorf("got %v", err)
	}
	opts := policy.Options{Prices: policyyaml.PricesBeside(path)}
	if _, err := policyyaml.Parse("-", []byte(moneyRule), opts); err != nil {
		t.Error(err)
	}
	absolute := strings.Replace(moneyRule, "prices.yaml", filepath.Join(filepath.Dir(path), "prices.yaml"), 1)
	if _, err := policyyaml.Load([]byte(absolute), policy.Options{Prices: policyyaml.PricesBeside("elsewhere/policy.yaml")}); err != nil {
		t.Error(err)
	}
}
