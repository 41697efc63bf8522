// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/meted"
)

func TestPromtool(t *testing.T) {
	promtool(t, "", "check", "config", "prometheus.yml")
	promtool(t, "", "check", "rules", "alerts.yaml")
	promtool(t, "", "test", "rules", "alerts_test.yaml")
}

// An expression is one of the dashboard.
type expression struct{ panel, text string }

// dashboard returns the expressions of the example, with everything chosen that can
// be chosen.
func dashboard(t *testing.T) (all []expression) {
	t.Helper()
	var file struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
		Annotations struct{ List []struct{ Name, Expr string } }
		Templating  struct {
			List []struct {
				Name  string
				Query any
			}
		}
	}
	if err := json.Unmarshal([]byte(read(t, example(t, "grafana-dashboard.json"))), &file); err != nil {
		t.Fatal(err)
	}
	everything := strings.NewReplacer("$job", ".*", "$instance", ".*", "$rule", ".*", "$__rate_interval", "1m")
	for _, p := range file.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			all = append(all, expression{p.Title, everything.Replace(target.Expr)})
		}
	}
	for _, a := range file.Annotations.List {
		all = append(all, expression{"annotation " + a.Name, everything.Replace(a.Expr)})
	}
	if len(file.Templating.List) != 4 || len(all) < 30 {
		t.Errorf("the dashboard has %d variables and %d expressions", len(file.Templating.List), len(all))
	}
	for _, e := range all {
		if strings.Contains(e.text, "$") {
			t.Errorf("%s: a variable is left in %s", e.panel, e.text)
		}
	}
	return all
}

// A real Prometheus scrapes real servers with the example's configuration. Every expression of the rules
// and the dashboard is valid and has data, and every metric in it exists.
func TestRealScrape(t *testing.T) {
	redis := proctest.StartRedis(t)
	gateway, api := startGateway(t, ""), startAPI(t, redis)
	traffic(t, gateway, api)
	p := startPrometheus(t, gateway, api)
	p.has("both are scraped", `count(up{job="mete"} == 1) == 2`)
	for _, s := range []*meted.Server{gateway, api} {
		promtool(t, metrics(t, s), "check", "metrics")
	}
	p.has("both have decided", `count(rate(mete_decisions_total{outcome="denied",by="store"}[1m]) > 0) == 2`)
	p.fires("MeteCertificateExpiring") // tomorrow

	redis.Kill()
	p.fires("MeteDegraded")
	p.fires("MeteBreakerOpen")
	for _, e := range dashboard(t) {
		if strings.HasPrefix(e.panel, "annotation") { // without events, an annotation has no data
			if _, err := p.query(e.text); err != nil {
				t.Errorf("%s: %v", e.panel, err)
			}
			continue
		}
		p.has(e.panel, e.text)
	}
	checkRules(t, p)
	checkNames(t, p)
}

// metrics returns the text of the server's /metrics.
func metrics(t *testing.T, s *meted.Server) string {
	t.Helper()
	resp, err := http.Get(s.AdminURL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %v", resp.Status, err)
	}
	return string(text)
}

// checkRules checks that every rule evaluates, every alert has an explanation and a test, and every
// recorded series has data.
func checkRules(t *testing.T, p *prometheus) {
	tests, runbooks := read(t, example(t, "alerts_test.yaml")), anchors(read(t, filepath.Join(meted.Root(t), "doc", "operations.md")))
	alerts := 0
	for _, r := range p.rules() {
		if r.Health != "ok" {
			t.Errorf("%s: %s %s: %s", r.Name, r.Health, r.LastError, r.Query)
		}
		if r.Type == "recording" {
			p.has("recorded", r.Name)
			continue
		}
		alerts++
		file, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "#")
		if r.Annotations["summary"] == "" || !strings.HasSuffix(file, "/doc/operations.md") || !runbooks[anchor] {
			t.Errorf("%s has annotations %v, want a summary and where its runbook is", r.Name, r.Annotations)
		}
		if n := strings.Count(tests, "alertname: "+r.Name+"\n"); n != 1 {
			t.Errorf("%s has %d tests in which it fires, want 1", r.Name, n)
		}
	}
	if alerts < 20 {
		t.Errorf("got %d alerts, want those of the example", alerts)
	}
}

// anchors returns the anchors that GitHub gives to the headings of a document.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for line := range strings.Lines(text) {
		if heading, ok := strings.CutPrefix(line, "#"); ok {
			heading = strings.ToLower(strings.TrimSpace(strings.TrimLeft(heading, "#")))
			found[punctuation.ReplaceAllString(strings.ReplaceAll(heading, " ", "-"), "")] = true
		}
	}
	return found
}

var punctuation = regexp.MustCompile(`[^\pL\pN_-]`)

var name = regexp.MustCompile(`\bmete_[a-z0-9_]+\b`)

// checkNames is that everything the files name has been scraped.
func checkNames(t *testing.T, p *prometheus) {
	var scraped []string
	if err := p.ask("/api/v1/label/__name__/values", &scraped); err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, file := range []string{"grafana-dashboard.json", "alerts.yaml"} {
		for _, n := range name.FindAllString(read(t, example(t, file)), -1) {
			named[n] = true
		}
	}
	for _, n := range slices.Sorted(maps.Keys(named)) {
		if !slices.Contains(scraped, n) {
			t.Errorf("no server has the metric %s", n)
		}
	}
}
