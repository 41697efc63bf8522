// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/meted"
)

func TestMain(m *testing.M) { meted.Main(m) }

// example returns the path of a file in examples/monitoring.
func example(t *testing.T, name string) string {
	return filepath.Join(meted.Root(t), "examples", "monitoring", name)
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// promtool runs it, with stdin, in examples/monitoring.
func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	cmd := exec.Command(proctest.Find(t, "promtool", "prometheus"), args...)
	cmd.Dir = filepath.Dir(example(t, "alerts.yaml"))
	cmd.Stdin = strings.NewReader(stdin)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// A prometheus reads servers by the example's configuration, only more often.
type prometheus struct {
	t   *testing.T
	url string
}

func startPrometheus(t *testing.T, servers ...*meted.Server) *prometheus {
	t.Helper()
	dir := t.TempDir()
	var targets []string
	for _, s := range servers {
		targets = append(targets, fmt.Sprintf("%q", s.AdminAddr))
	}
	config := read(t, example(t, "prometheus.yml"))
	for _, change := range [][2]string{
		{`["127.0.0.1:8081"]`, "[" + strings.Join(targets, ", ") + "]"},
		{"scrape_interval: 15s", "scrape_interval: 250ms"},
		{"evaluation_interval: 15s", "evaluation_interval: 500ms"},
	} {
		if strings.Count(config, change[0]) != 1 {
			t.Fatalf("prometheus.yml has no %s", change[0])
		}
		config = strings.Replace(config, change[0], change[1], 1)
	}
	write(t, filepath.Join(dir, "prometheus.yml"), config)
	write(t, filepath.Join(dir, "alerts.yaml"), read(t, example(t, "alerts.yaml")))
	addr := proctest.FreeAddr(t)
	p := &prometheus{t, "http://" + addr}
	process := proctest.Start(t, exec.Command(proctest.Find(t, "prometheus", "prometheus"), "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--log.level=warn"))
	process.WaitReady(meted.Patience, proctest.HTTP(p.url+"/-/ready"))
	return p
}

// ask asks the HTTP API, and fills data from the answer.
func (p *prometheus) ask(path string, data any) error {
	resp, err := http.Get(p.url + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Status != "success" {
		return fmt.Errorf("%s: %v %s %s", resp.Status, err, answer.Error, text)
	}
	return json.Unmarshal(answer.Data, data)
}

// query returns how many series an expression has now.
func (p *prometheus) query(expr string) (series int, err error) {
	var data struct{ Result []json.RawMessage }
	err = p.ask("/api/v1/query?query="+url.QueryEscape(expr), &data)
	return len(data.Result), err
}

// has is that an expression has data, sooner or later. It is an error that the
// expression is none, and at once.
func (p *prometheus) has(what, expr string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), meted.Patience)
	defer cancel()
	err := proctest.Poll(ctx, func(context.Context) error {
		n, err := p.query(expr)
		if err == nil && n == 0 {
			err = fmt.Errorf("no data")
		}
		return err
	})
	if err != nil {
		p.t.Errorf("%s: %s: %v", what, expr, err)
	}
}

// A rule is one as Prometheus has evaluated it.
type rule struct {
	Name, Type, Query, Health, LastError, State string
	Annotations                                 map[string]string
}

// rules returns all rules, once each has been evaluated.
func (p *prometheus) rules() (all []rule) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), meted.Patience)
	defer cancel()
	err := proctest.Poll(ctx, func(context.Context) error {
		var data struct{ Groups []struct{ Rules []rule } }
		if err := p.ask("/api/v1/rules", &data); err != nil {
			return err
		}
		all = nil
		for _, g := range data.Groups {
			for _, r := range g.Rules {
				if r.Health == "unknown" {
					return fmt.Errorf("%s is not evaluated", r.Name)
				}
				all = append(all, r)
			}
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

// fires is that an alert is pending or firing, sooner or later.
func (p *prometheus) fires(name string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), meted.Patience)
	defer cancel()
	err := proctest.Poll(ctx, func(context.Context) error {
		for _, r := range p.rules() {
			if r.Name == name && (r.State == "pending" || r.State == "firing") {
				return nil
			}
		}
		return errors.New("neither pending nor firing")
	})
	if err != nil {
		p.t.Errorf("alert %s: %v", name, err)
	}
}
