// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/metehq/mete"
	"github.com/metehq/mete/ai"
	"github.com/metehq/mete/aiusage"
	"github.com/metehq/mete/cmd/internal/buildinfo"
	"github.com/metehq/mete/cmd/internal/bundle"
	"github.com/metehq/mete/cmd/internal/denials"
	"github.com/metehq/mete/cmd/internal/logpipe"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/telemetry"
	"github.com/metehq/mete/cmd/internal/webhook"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/jwtclaims"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/pgstore/violations"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/proxy"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/topkeys"
)

var update = flag.Bool("update", false, "rewrite the table of metrics in doc/observability.md")

const doc = "../../../doc/observability.md"

// complete is a registry that shows all that there is.
func complete(t *testing.T) *metrics.Registry {
	t.Helper()
	m, err := policy.Load([]byte(`{"bundle_version": 1, "expires_at": "2096-10-02T07:06:40Z", "policies": [{"id": "p", "spec": `+tenAndTrial+`}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := metrics.New()
	r.Add(
		metrics.Limiter(func() mete.Stats { return mete.Stats{} }),
		metrics.DeniedFromMemory(func() mete.Stats { return mete.Stats{} }),
		metrics.Policy(func() *policy.Matcher { return m }),
		metrics.Overrides(func() map[policy.Action]int { return nil }),
		metrics.Memory(func() memstore.Stats { return memstore.Stats{} }),
		metrics.Redis(func() redisstore.Stats { return redisstore.Stats{} }),
		metrics.Postgres(func() pgstore.Stats { return pgstore.Stats{} }),
		metrics.Guard(func() guard.Stats { return guard.Stats{} }),
		metrics.Nodes(func() int { return 1 }),
		metrics.Bundle(func() bundle.Status { return bundle.Status{Digest: "0123456789ab"} }),
		metrics.Violations(func() violations.Stats { return violations.Stats{} }),
		metrics.Claims(func() jwtclaims.Stats {
			return jwtclaims.Stats{ReadAt: time.Now(), Rejected: map[jwtclaims.Reason]int64{"expired": 1}}
		}),
		metrics.Top(func() topkeys.Stats { return topkeys.Stats{} }),
		metrics.PolicyReloads(func() metrics.Reloads { return metrics.Reloads{} }),
		metrics.AtListener(func() metrics.Listener { return metrics.Listener{Name: "main", CertificateExpires: time.Now()} }),
		metrics.Upstreams(func() metrics.Gateway {
			return metrics.Gateway{Upstreams: []proxy.UpstreamStats{{Name: "default", Servers: []proxy.ServerStats{{Server: "http://127.0.0.1"}}}}}
		}),
		metrics.Denials(func() denials.Stats { return denials.Stats{} }),
		metrics.DenialWebhook(func() webhook.Stats { return webhook.Stats{} }),
		metrics.Telemetry(func() telemetry.Stats { return telemetry.Stats{} }),
		metrics.Log(func() logpipe.Stats { return logpipe.Stats{} }),
		metrics.AI(func() aiusage.State {
			learned := ai.Ratio{Requests: 1}
			return aiusage.State{
				Policy: aiusage.Policy{Money: true}, Models: []aiusage.Model{{Model: "m", Prompt: learned, Completion: learned}},
				Rules: []aiusage.Rule{{Rule: "ten"}},
			}
		}),
		metrics.Build(buildinfo.Read),
	)
	r.SetPolicy(m)
	r.Count(&mete.Decision{Degraded: true, Failure: store.FailureError, Rule: "ten"})
	r.CountHold("hold", "opened")
	r.CountSettlement(&policy.Settlement{Rule: m.Rules()[0]})
	r.ObserveDecision(metrics.Take, 1, "")
	r.ObserveStoreCall(metrics.StoreTake, 1, store.ErrUnavailable)
	return r
}

// table returns the table of metrics for doc/observability.md.
func table(families []*dto.MetricFamily) string {
	var b strings.Builder
	b.WriteString("| Metric | Type | Labels | Meaning |\n| --- | --- | --- | --- |\n")
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "mete_") {
			continue
		}
		labels := map[string]bool{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels["`"+l.GetName()+"`"] = true
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()),
			strings.Join(slices.Sorted(maps.Keys(labels)), ", "), f.GetHelp())
	}
	return b.String()
}

func TestDoc_ListsEveryMetric(t *testing.T) {
	families, err := complete(t).Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- metrics: written by the tests of cmd/internal/metrics with -update -->\n", "<!-- end of metrics -->\n"
	data, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("doc/observability.md has no table of metrics between %q and %q", begin, end)
	}
	want := before + begin + "\n" + table(families) + "\n" + end + after
	if *update {
		if err := os.WriteFile(doc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(data) != want {
		t.Error("doc/observability.md does not list the metrics as they are: run go test ./internal/metrics -update in cmd")
	}
}

// The Prometheus linter finds no problem, so that promtool check metrics is silent.
func TestMetrics_Lint(t *testing.T) {
	problems, err := promlint.New(strings.NewReader(scrape(t, complete(t), ""))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// metricName finds metrics in documents.
var metricName = regexp.MustCompile(`\bmete_[a-z_]*[a-z]\b`)

// Every metric that a document names is one.
func TestDocs_NameMetricsThatExist(t *testing.T) {
	families, err := complete(t).Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{
		"mete_server": true, "mete_editor": true, // users of PostgreSQL
		"mete_charge": true, // an entry of Envoy's descriptors
	}
	for _, f := range families {
		known[f.GetName()] = true
		if f.GetType() == dto.MetricType_HISTOGRAM {
			known[f.GetName()+"_bucket"], known[f.GetName()+"_sum"], known[f.GetName()+"_count"] = true, true, true
		}
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(doc), "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range metricName.FindAllString(string(text), -1) {
			if !known[name] {
				t.Errorf("%s names %s, which is no metric", filepath.Base(file), name)
			}
		}
	}
}
