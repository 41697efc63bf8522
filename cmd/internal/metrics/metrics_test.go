// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A counted limiter is one whose decisions a registry counts.
type counted struct {
	t        testing.TB
	lim      *mete.Limiter
	registry *metrics.Registry
}

func count(t testing.TB, text string) *counted {
	t.Helper()
	c := &counted{t: t}
	c.registry = metrics.New()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m := c.load(text)
	c.lim, err = mete.New(store, m, mete.Config{OnDecision: func(_ context.Context, d *mete.Decision) { c.registry.Count(d) }})
	if err != nil {
		t.Fatal(err)
	}
	c.registry.SetPolicy(m)
	c.registry.Add(metrics.Limiter(c.lim.Stats))
	return c
}

func (c *counted) load(text string) *policy.Matcher {
	c.t.Helper()
	m, err := policy.Load([]byte(text), policy.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// replace activates another policy.
func (c *counted) replace(text string) {
	c.t.Helper()
	m := c.load(text)
	c.registry.SetPolicy(m)
	if err := c.lim.SetPolicy(m); err != nil {
		c.t.Fatal(err)
	}
}

func (c *counted) take(n int, attrs mete.Attrs) {
	c.t.Helper()
	for range n {
		if _, err := c.lim.Take(c.t.Context(), mete.Request{Attributes: attrs}); err != nil {
			c.t.Fatal(err)
		}
	}
}

// scrape returns the metrics in the text format.
func scrape(t testing.TB, r *metrics.Registry, accept string) string {
	t.Helper()
	w := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	r.ServeHTTP(w, req)
	if w.Code != http.StatusOK {
		t.Fatalf("got status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// has is that the metrics have these lines.
func (c *counted) has(lines ...string) {
	c.t.Helper()
	text := scrape(c.t, c.registry, "")
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			c.t.Errorf("the metrics lack %s:\n%s", line, only(text, "mete_rule"))
		}
	}
}

func only(text, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			b.WriteString(line)
		}
	}
	return b.String()
}

const tenAndTrial = `{"rules": [
	{"name": "ten", "limit_keys": ["ip:address"], "match": {"path": "/*"}, "algorithm_config": {"rate": "1/1d", "burst": 10}},
	{"name": "trial", "mode": "shadow", "limit_keys": ["header:x"], "algorithm_config": {"rate": "1/1d", "burst": 1}},
	{"name": "part", "mode": "1%", "limit_keys": ["header:y"], "algorithm_config": {"rate": "1/1d", "burst": 1}}]}`

func TestRules_AreCountedByOutcome(t *testing.T) {
	c := count(t, tenAndTrial)
	c.has(`mete_rule_decisions_total{outcome="allowed",rule="ten"} 0`, `mete_rule_near_limit_total{rule="ten"} 0`,
		`mete_rule_shadow_denials_total{mode="shadow",rule="trial"} 0`) // before anything has happened
	c.take(13, mete.Attrs{"ip:address": "192.0.2.1", "path": "/a"})
	c.take(4, mete.Attrs{"header:x": "secret"})
	c.take(2, mete.Attrs{"header:y": "spared"})
	c.take(1, nil)
	c.has(
		`mete_rule_decisions_total{outcome="allowed",rule="ten"} 10`,
		`mete_rule_decisions_total{outcome="denied",rule="ten"} 3`,
		`mete_rule_near_limit_total{rule="ten"} 3`, // with 2, 1 and 0 left
		`mete_rule_shadow_denials_total{mode="shadow",rule="trial"} 3`,
		`mete_rule_shadow_denials_total{mode="percentage",rule="part"} 1`,
		`mete_rule_decisions_total{outcome="allowed",rule="(none)"} 7`,
		`mete_decisions_total{by="store",outcome="allowed"} 17`,
		`mete_decisions_total{by="store",outcome="denied"} 3`,
	)
	if text := scrape(t, c.registry, ""); strings.Contains(text, "secret") || strings.Contains(text, "192.0.2") {
		t.Errorf("the metrics have a key")
	}
}

func TestRules_DegradedByReason(t *testing.T) {
	c := count(t, tenAndTrial)
	for _, f := range []store.Failure{store.FailureTimeout, store.FailureTimeout, store.FailureError, "of tomorrow"} {
		c.registry.Count(&mete.Decision{Allowed: true, Rule: "ten", Degraded: true, Failure: f})
	}
	c.has(`mete_rule_degraded_total{reason="timeout",rule="ten"} 2`, `mete_rule_degraded_total{reason="error",rule="ten"} 2`)
}

// Requests without the key of a rule are counted by the rule, and by nothing of the request.
func TestRules_CountRequestsWithoutTheirKey(t *testing.T) {
	c := count(t, tenAndTrial)
	c.has(`mete_rule_skipped_total{rule="trial"} 0`)
	c.take(3, mete.Attrs{"ip:address": "192.0.2.1", "path": "/a", "header:y": "k"})
	c.take(2, mete.Attrs{"header:x": "k"})
	c.has(`mete_rule_skipped_total{rule="ten"} 0`, `mete_rule_skipped_total{rule="trial"} 3`, `mete_rule_skipped_total{rule="part"} 2`)
}

// However often a policy is replaced, and whatever its rules are called, there are
// only so many series.
func TestRules_CardinalityIsBounded(t *testing.T) {
	c := count(t, tenAndTrial)
	most := 0
	for reload := range 1000 {
		var rules strings.Builder
		const n = 3
		for i := range n {
			fmt.Fprintf(&rules, `{"name": "rule-%d-%d", "limit_keys": ["ip:address", "header:h%d"], "on_missing": "empty", "algorithm_config": {"rate": "1/1d", "burst": 1}},`, reload, i, i)
		}
		c.replace(`{"rules": [` + strings.TrimSuffix(rules.String(), ",") + `]}`)
		c.take(2, mete.Attrs{"ip:address": "192.0.2.1"})
		if reload%100 == 99 {
			most = max(most, strings.Count(scrape(t, c.registry, ""), `rule="`))
		}
	}
	if most == 0 || most > 50 {
		t.Errorf("after 1000 reloads there are %d series of rules, want those of 3 rules", most)
	}
	names := scrape(t, c.registry, "")
	if strings.Contains(names, "rule-998-") || !strings.Contains(names, "rule-999-0") {
		t.Errorf("want the rules of the policy in force, and no others:\n%s", only(names, "mete_rule"))
	}
}

func TestRules_BeyondTheBoundShareSeries(t *testing.T) {
	var rules strings.Builder
	const n = metrics.MaxRules + 50
	for i := range n {
		fmt.Fprintf(&rules, `{"name": "r%d", "limit_keys": ["ip:address"], "match": {"header:n": "%d"}, "algorithm_config": {"rate": "1/1d", "burst": 5}},`, i, i)
	}
	c := count(t, `{"rules": [`+strings.TrimSuffix(rules.String(), ",")+`]}`)
	for i := range n {
		c.take(1, mete.Attrs{"ip:address": "192.0.2.1", "header:n": fmt.Sprint(i)})
	}
	c.has(`mete_rule_decisions_total{outcome="allowed",rule="(other)"} 50`, `mete_rule_decisions_total{outcome="allowed",rule="r199"} 1`)
	if got := strings.Count(scrape(t, c.registry, ""), `mete_rule_decisions_total{outcome="allowed"`); got != metrics.MaxRules+1 {
		t.Errorf("got %d series, want %d and those of the others", got, metrics.MaxRules)
	}
}

// A rule in both policies keeps its counts. A rule that returns starts at 0.
func TestRules_GoOnCountingOverReloads(t *testing.T) {
	const other = `{"rules": [{"name": "ten", "limit_keys": ["ip:address"], "algorithm_config": {"rate": "1/1d", "burst": 10}}]}`
	c := count(t, tenAndTrial)
	c.take(2, mete.Attrs{"ip:address": "192.0.2.1", "path": "/"})
	c.take(3, mete.Attrs{"header:x": "k"})
	c.replace(other)
	c.take(1, mete.Attrs{"ip:address": "192.0.2.1"})
	c.has(`mete_rule_decisions_total{outcome="allowed",rule="ten"} 3`)
	if text := scrape(t, c.registry, ""); strings.Contains(text, `rule="trial"`) {
		t.Error("a rule that is gone has series still")
	}
	c.replace(tenAndTrial)
	c.has(`mete_rule_shadow_denials_total{mode="shadow",rule="trial"} 0`)
}

// A rule can be called what stands for no rule; the metrics stay readable.
func TestRules_CalledLikeALabel(t *testing.T) {
	c := count(t, `{"rules": [{"name": "(none)", "limit_keys": [], "algorithm_config": {"rate": "1/1d", "burst": 5}},
		{"name": "a\"b\\c", "limit_keys": ["ip:address"], "algorithm_config": {"rate": "1/1d", "burst": 2}}]}`)
	c.take(2, mete.Attrs{"ip:address": "192.0.2.1"})
	c.take(1, nil)
	c.has(`mete_rule_decisions_total{outcome="allowed",rule="(other)"} 1`, `mete_rule_decisions_total{outcome="allowed",rule="a\"b\\c"} 2`)
}

func TestDecided_HasAnExemplarWhereItIsTraced(t *testing.T) {
	c := count(t, tenAndTrial)
	c.registry.ObserveDecision(metrics.Take, 30*time.Microsecond, "4bf92f3577b34da6a3ce929d0e0e4736")
	c.registry.ObserveDecision(metrics.Take, 300*time.Microsecond, "")
	c.has(`mete_decision_seconds_count{door="take"} 2`, `mete_decision_seconds_bucket{door="take",le="5e-05"} 1`)
	open := scrape(t, c.registry, "application/openmetrics-text;version=1.0.0")
	if want := `mete_decision_seconds_bucket{door="take",le="5e-05"} 1 # {trace_id="4bf92f3577b34da6a3ce929d0e0e4736"} 3e-05`; !strings.Contains(open, want) {
		t.Errorf("the metrics lack %s:\n%s", want, only(open, "mete_decision_seconds"))
	}
}

func TestAsked_CountsErrors(t *testing.T) {
	c := count(t, tenAndTrial)
	c.registry.ObserveStoreCall(metrics.StoreTake, time.Millisecond, nil)
	c.registry.ObserveStoreCall(metrics.StoreTake, time.Second, context.DeadlineExceeded)
	c.has(`mete_store_operation_seconds_count{operation="take"} 2`, `mete_store_operations_failed_total{operation="take"} 1`)
}

// Counting, replacing the policy and reading may happen at once.
func TestRegistry_ConcurrentUse(t *testing.T) {
	c := count(t, tenAndTrial)
	var using sync.WaitGroup
	for i := range 3 {
		using.Go(func() { c.take(200, mete.Attrs{"ip:address": fmt.Sprintf("192.0.2.%d", i), "path": "/"}) })
	}
	using.Go(func() {
		for range 20 {
			c.replace(tenAndTrial)
		}
	})
	for range 5 {
		scrape(t, c.registry, "")
	}
	using.Wait()
	c.has(`mete_decisions_total{by="store",outcome="denied"} 570`)
}

// Responses that settle charges count by rule and result, from 0 for a rule with charge_on.
func TestSettlements(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [
		{"name": "guesses", "limit_keys": [], "charge_on": {"status": [401]}, "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "all", "limit_keys": [], "group": "all", "algorithm_config": {"rps": 1, "burst": 1}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := metrics.New()
	r.SetPolicy(m)
	for _, s := range []policy.Settlement{{Reserved: 1000}, {Reserved: 1000, Charged: 1000}, {Reserved: 1000}, {Reserved: 1000, Charged: 1000, Err: store.ErrUnavailable}} {
		s.Rule = m.Rules()[0]
		r.CountSettlement(&s)
	}
	text := scrape(t, r, "")
	for result, n := range map[string]int{"refunded": 2, "kept": 1, "changed": 0, "failed": 1} {
		if want := fmt.Sprintf(`mete_rule_settlements_total{result=%q,rule="guesses"} %d`, result, n); !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, `mete_rule_settlements_total{result="refunded",rule="all"}`) {
		t.Error("a rule without charge_on has a counter")
	}
}

func BenchmarkCount(b *testing.B) {
	c := count(b, tenAndTrial)
	var d mete.Decision
	lim := c.lim
	d, err := lim.Take(b.Context(), mete.Request{Attributes: mete.Attrs{"ip:address": "192.0.2.1", "path": "/"}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.registry.Count(&d)
	}
}

func BenchmarkDecided(b *testing.B) {
	c := count(b, tenAndTrial)
	b.ReportAllocs()
	for b.Loop() {
		c.registry.ObserveDecision(metrics.Take, 30*time.Microsecond, "")
	}
}
