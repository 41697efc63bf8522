// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/browser"
	"github.com/metehq/mete/proof/meted"
)

// hostileKeys maps the visible part of hostile keys to the keys.
var hostileKeys = map[string]string{
	`</script><script>alert(1)</script>`: `header:x=</script><script>alert(1)</script>`,
	`<!--<script>`:                       `header:x=<!--<script>`,
	`<img src=x onerror=alert(2)>`:       `header:x="<img src=x onerror=alert(2)>"`,
	"\u202egnp.exe":                      `header:x="\u202egnp.exe"`,
	"line\u2028separator":                `header:x="line\u2028separator"`,
	"\x1b[31mred\x00":                    `header:x="\x1b[31mred\x00"`,
	"שלום":                               `header:x=\u05e9\u05dc\u05d5\u05dd`,
	strings.Repeat("long", 2500):         `header:x=` + strings.Repeat("long", 12) + `…`,
	`{{template "x"}}`:                   `header:x="{{template \"x\"}}"`,
}

const hostilePolicy = `{"rules": [{"name": "client", "limit_keys": ["header:x"], "description": "<b>Bold</b> & </script>", "match": {"query:q": {"not": "</script>*"}},
	"algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 1}}]}`

// writeReport runs mete replay and returns the URL of the page that it writes.
func writeReport(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(meted.Program(t), append([]string{"replay", "--format", "html", "--show-keys"}, args...)...)
	page, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v", cmd.Args, err)
	}
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + file
}

// writeHostile writes a policy, and a trace by clients who mean ill.
func writeHostile(t *testing.T) (policy, trace string) {
	t.Helper()
	var lines strings.Builder
	i := 0
	for key := range hostileKeys {
		for range 3 {
			line, err := json.Marshal(map[string]any{"at": 1_795_165_210 + i*20, "path": "/</script><script>alert(3)</script>", "headers": map[string]string{"x": key}})
			if err != nil {
				t.Fatal(err)
			}
			lines.Write(append(line, '\n'))
		}
		i++
	}
	dir := t.TempDir()
	policy, trace = filepath.Join(dir, "policy.json"), filepath.Join(dir, "<script>alert(4)</script>.jsonl")
	trace = strings.ReplaceAll(trace, "</script>", "")
	for file, text := range map[string]string{policy: hostilePolicy, trace: lines.String()} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return policy, trace
}

// drawn is true when every chart that stood still is drawn on a canvas, and has
// something on it.
const drawn = `(() => {
	const figures = [...document.querySelectorAll('.figure')];
	return figures.length > 0 && figures.every(f => f.classList.contains('live') && [...f.querySelectorAll('canvas')].some(c =>
		c.width > 0 && c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v !== 0)));
})()`

// wide is by how many pixels a page is wider than its window.
const wide = `document.documentElement.scrollWidth - document.documentElement.clientWidth`

func TestReport(t *testing.T) {
	t.Parallel()
	t.Run("looks", reportLooks)
	t.Run("chart", reportChart)
	t.Run("hostile", reportHostile)
	t.Run("without script", reportWithoutScript)
}

// A report opens from a file, looks well everywhere, and asks for nothing.
func reportLooks(t *testing.T) {
	t.Parallel()
	examples := filepath.Join(meted.Root(t), "examples", "replay") + "/"
	one := writeReport(t, "--policy", examples+"new.yaml", examples+"access.log")
	two := writeReport(t, "--old", examples+"old.yaml", "--new", examples+"new.yaml", examples+"access.log")
	browser.Each(t, func(t *testing.T, size browser.Size, theme browser.Theme) {
		for _, report := range []struct{ name, url, heading string }{
			{"report", one, "10 of 63 requests would be denied"},
			{"report-compare", two, "10 requests newly limited, 2 newly admitted"},
		} {
			page := browser.Open(t, size, theme)
			page.Goto(report.url)
			page.Wait("heading", report.heading)
			page.Poll("the charts are drawn", drawn)
			page.Axe()
			if over := browser.Eval[int](page, wide); over > 0 {
				t.Errorf("%s: the page is %d pixels wider than its window", report.name, over)
			}
			page.ScreenshotAll(report.name)
		}
	})
}

// The charts answer to the keyboard, and can be had as tables.
func reportChart(t *testing.T) {
	t.Parallel()
	examples := filepath.Join(meted.Root(t), "examples", "replay") + "/"
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Goto(writeReport(t, "--policy", examples+"new.yaml", examples+"access.log"))
	page.Poll("the charts are drawn", drawn)
	browser.Eval[bool](page, `document.querySelector('.chart-plot').focus() ?? true`)
	page.Press("End")
	page.WaitText(".figure [aria-live]", "2026-11-20 09:00:55Z: allowed 14")
	page.Click("button", "Show as table")
	page.WaitVisible(".chart-data table")
	page.Axe()
}

// Text from clients, files and policies appears as plain text.
func reportHostile(t *testing.T) {
	t.Parallel()
	policy, trace := writeHostile(t)
	for name, url := range map[string]string{
		"one": writeReport(t, "--policy", policy, trace),
		"two": writeReport(t, "--old", policy, "--new", filepath.Join(meted.Root(t), "examples", "replay", "new.yaml"), trace),
	} {
		page := browser.Open(t, browser.Desktop, browser.Light)
		page.Goto(url)
		page.Poll("the charts are drawn", drawn)
		text := browser.Eval[string](page, "document.querySelector('main').textContent")
		for _, want := range hostileKeys {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the page does not show %s", name, want)
			}
		}
		for what, n := range map[string]int{
			`document.querySelectorAll('script').length`:                                                              2,
			`document.querySelectorAll('img, iframe, object, embed, form, [style*=url], [onerror], [onload]').length`: 0,
			`document.querySelectorAll('b').length`:                                                                   0,
		} {
			if got := browser.Eval[int](page, what); got != n {
				t.Errorf("%s: %s is %d, want %d", name, what, got, n)
			}
		}
		page.Axe()
		page.ScreenshotAll("report-hostile-" + name)
	}
}

// Without scripts the report shows the same data. Scripts only add a second view.
func reportWithoutScript(t *testing.T) {
	t.Parallel()
	examples := filepath.Join(meted.Root(t), "examples", "replay") + "/"
	url := writeReport(t, "--policy", examples+"new.yaml", examples+"access.log")
	text, err := os.ReadFile(strings.TrimPrefix(url, "file://"))
	if err != nil {
		t.Fatal(err)
	}
	// Its policy refuses a script that is another.
	broken := strings.Replace(string(text), "'use strict';", "'use strict'; ", 1)
	if broken == string(text) {
		t.Fatal("the page has no script")
	}
	if err := os.WriteFile(strings.TrimPrefix(url, "file://"), []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Tolerate("Content Security Policy")
	page.Goto(url)
	page.Wait("heading", "10 of 63 requests would be denied")
	page.WaitVisible(".still svg")
	if n := browser.Eval[int](page, `document.querySelectorAll('canvas').length`); n != 0 {
		t.Errorf("there are %d canvases", n)
	}
	if refused := fmt.Sprint(browser.Eval[int](page, `[...document.querySelectorAll('.still path')].filter(p => p.getBoundingClientRect().height > 0).length`)); refused == "0" {
		t.Error("nothing is drawn")
	}
	page.Axe()
	page.ScreenshotAll("report-still")
}
