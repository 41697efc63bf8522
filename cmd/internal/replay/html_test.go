// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/replay"
	"github.com/metehq/mete/cmd/internal/trace"
)

var update = flag.Bool("update", false, "write testdata")

// htmlReport replays a trace and returns its page.
func htmlReport(t *testing.T, policyFile, text string, edit func(*replay.Report)) string {
	t.Helper()
	m := load(t, policyFile)
	reader, stats := trace.NewReader(strings.NewReader(text), trace.FormatAuto), replay.NewStats(m)
	if err := replay.Run(context.Background(), replay.Config{Policy: m, Trace: reader, Store: memory, Each: stats.Add, Invalid: stats.Invalid}); err != nil {
		t.Fatal(err)
	}
	r := replay.Report{Policy: "p.json", Trace: "t", Format: reader.Format().String(), Counts: stats, Elapsed: 1}
	if edit != nil {
		edit(&r)
	}
	var out strings.Builder
	if err := r.WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// htmlComparison compares two policies, and returns the page.
func htmlComparison(t *testing.T, oldFile, newFile, text string, showKeys bool) string {
	t.Helper()
	old, new := load(t, oldFile), load(t, newFile)
	c := replay.NewComparison(old, new)
	reader := trace.NewReader(strings.NewReader(text), trace.FormatJSONL)
	err := replay.Compare(context.Background(), replay.CompareConfig{Old: old, New: new, Trace: reader, Store: memory,
		Each: func(req *trace.Request, was, is *mete.Decision) error {
			c.Add(req, was, is, func() string { return fmt.Sprintf("t:%d", reader.Line()) })
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := (replay.Report{Old: "old.json", Policy: "new.json", Trace: "t", Format: "jsonl", Counts: c, ShowKeys: showKeys}).WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// blocks are the parts of a page that are not made for it.
var blocks = regexp.MustCompile(`(?s)<style>.*?</style>|<script>.*?</script>|sha256-[A-Za-z0-9+/&#;]*=`)

// The pages equal testdata, except for their common parts.
func TestHTML(t *testing.T) {
	for name, got := range map[string]string{
		"report.html":     htmlReport(t, reportPolicy, reportTrace, func(r *replay.Report) { r.ShowKeys = true }),
		"comparison.html": htmlComparison(t, oldPolicy, newPolicy, comparedTrace, true),
	} {
		got = blocks.ReplaceAllString(got, "…")
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is another page; if it is right: go test . -run TestHTML -update\n%s", file, got)
		}
	}
}

// A page asks for nothing, and its policy lets nothing run but what it came with.
func TestHTML_StandsAlone(t *testing.T) {
	for name, page := range map[string]string{
		"report":     htmlReport(t, reportPolicy, reportTrace, nil),
		"comparison": htmlComparison(t, oldPolicy, newPolicy, comparedTrace, false),
		"nothing":    htmlReport(t, reportPolicy, "\n", nil),
	} {
		csp := find(t, page, `<meta http-equiv="Content-Security-Policy" content="([^"]*)">`)
		csp = strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(csp)
		sum := func(block string) string {
			h := sha256.Sum256([]byte(block))
			return "'sha256-" + base64.StdEncoding.EncodeToString(h[:]) + "'"
		}
		style, script := find(t, page, `(?s)<style>(.*)</style>`), find(t, page, `(?s)<script>(.*)</script>`)
		want := "default-src 'none'; script-src " + sum(script) + "; style-src " + sum(style) + "; img-src data:; base-uri 'none'; form-action 'none'"
		if csp != want {
			t.Errorf("%s: the policy is\n%s, want\n%s", name, csp, want)
		}
		body := blocks.ReplaceAllString(page, "…")
		for _, never := range []string{" style=", " on[a-z]+=", " src=", "https?://", "<link", "<img", "<iframe"} {
			if m := regexp.MustCompile(never).FindString(body); m != "" {
				t.Errorf("%s: the page has %q in it", name, m)
			}
		}
		var data struct{ Figures []struct{ X []float64 } }
		if err := json.Unmarshal([]byte(find(t, page, `(?s)<script type="application/json" id="data">(.*?)</script>`)), &data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, secret := range []string{"192.0.2.1", "2001:db8", "header:x=", "POST /login"} {
			if strings.Contains(body, secret) {
				t.Errorf("%s: the page shows %q", name, secret)
			}
		}
	}
}

func find(t *testing.T, page, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page has no %s", pattern)
	}
	return m[1]
}

// The same report is the same page, however long it took.
func TestHTML_IsTheSame(t *testing.T) {
	text := randomTrace(2000, 3)
	first := htmlReport(t, newPolicy, text, nil)
	if again := htmlReport(t, newPolicy, text, func(r *replay.Report) { r.Elapsed = 7777 }); again != first {
		t.Error("a report on the same is another page")
	}
	first = htmlComparison(t, oldPolicy, newPolicy, text, true)
	if again := htmlComparison(t, oldPolicy, newPolicy, text, true); again != first {
		t.Error("a comparison of the same is another page")
	}
}

// Text from clients and file names is escaped.
func TestHTML_Hostile(t *testing.T) {
	const hostile = "</script><script>alert(1)</script><!--\u202e\u2028\u05d0\x1b[31m"
	line, err := json.Marshal(map[string]any{"at": 1, "path": hostile, "headers": map[string]string{"x": hostile}, "cost": 1000})
	if err != nil {
		t.Fatal(err)
	}
	page := htmlReport(t, oldPolicy, string(line)+"\n", func(r *replay.Report) { r.ShowKeys, r.Policy, r.Trace = true, hostile, hostile }) +
		htmlComparison(t, oldPolicy, strings.ReplaceAll(oldPolicy, `"burst": 5`, `"burst": 2000`), string(line)+"\n", true)
	if n := strings.Count(strings.ToLower(page), "<script"); n != 4 { // a block of data and one that runs, twice
		t.Errorf("there are %d scripts", n)
	}
	for _, r := range "\u202e\u2028\u05d0\x1b" {
		if body := blocks.ReplaceAllString(page, ""); strings.ContainsRune(body, r) {
			t.Errorf("the page has %U in it", r)
		}
	}
	if n := strings.Count(page, "&lt;/script&gt;&lt;script&gt;alert(1)"); n < 4 {
		t.Errorf("the page shows it %d times only", n)
	}
}

// A page stays small, however many rules and keys there are.
func TestHTML_Bounded(t *testing.T) {
	const most, rules, requests = 400 << 10, 300, 20_000
	var file, text strings.Builder
	for i := range rules {
		fmt.Fprintf(&file, `,{"name": "rule-%d", "group": "g%d", "match": {"path": "/%d"}, "limit_keys": ["header:x", "path"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 1}}`, i, i/10, i)
	}
	for i := range requests {
		fmt.Fprintf(&text, `{"at":%d,"path":"/%d","headers":{"x":"%s%d"},"cost":%d}`+"\n", i*37%90_000, i%rules, strings.Repeat("long", 30), i/2, 1+i%2)
	}
	policyFile := `{"rules": [` + file.String()[1:] + `]}`
	for name, page := range map[string]string{
		"report":     htmlReport(t, policyFile, text.String(), func(r *replay.Report) { r.ShowKeys = true }),
		"comparison": htmlComparison(t, policyFile, strings.ReplaceAll(policyFile, `"burst": 1`, `"burst": 2`), text.String(), true),
	} {
		if len(page) > most {
			t.Errorf("the %s has %d bytes, want at most %d", name, len(page), most)
		}
		if !strings.Contains(page, "of 300 rules") {
			t.Errorf("the %s does not say that there are more rules", name)
		}
	}
}
