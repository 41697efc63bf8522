// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/testseed"
)

// mete replay warns of an unsorted log at the top of the report. With --sort the result equals a sorted
// log, with files in any order.
func TestReplay_Sort(t *testing.T) {
	var lines []string
	for i := range 600 {
		lines = append(lines, fmt.Sprintf(`192.0.2.%d - - [21/Nov/2026:12:%02d:%02d +0000] "GET /%d HTTP/1.1" 200 1`, i%3, i/60, i%60, i))
	}
	dir := t.TempDir()
	write := func(name string, lines []string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	policy := write("policy.yaml", []string{`rules: [{ name: r, limit_keys: ["ip:address"], algorithm_config: { rate: 10/1m, burst: 3 } }]`})
	sorted := write("sorted.log", lines)
	mixed := append([]string(nil), lines...)
	rand.New(testseed.PCG(3, 4)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	whole := write("mixed.log", mixed)
	late, early := write("late.log", mixed[:300]), write("early.log", mixed[300:])

	plain := regexp.MustCompile(`(?m)^(trace|replayed) .*\n`)
	report := func(args ...string) string {
		out, errs, code := run(t, append([]string{"replay", "--policy", policy}, args...)...)
		if code != 0 || errs != "" {
			t.Errorf("%q: code %d, %s", args, code, errs)
		}
		return plain.ReplaceAllString(out, "")
	}
	want := report(sorted)
	for _, traces := range [][]string{{whole}, {late, early}, {early, late}, {sorted}} {
		if got := report(append([]string{"--sort"}, traces...)...); got != want {
			t.Errorf("sorted, %q is\n%s\nwant\n%s", traces, got, want)
		}
	}
	unsorted := report(whole)
	at, summary := strings.Index(unsorted, "\nwarning: "), strings.Index(unsorted, "\nallowed")
	if at < 0 || at > summary || !strings.Contains(unsorted, "requests are older than the previous one (") || !strings.Contains(unsorted, "--sort") {
		t.Errorf("the report of an unsorted log has no warning at its top:\n%s", unsorted)
	}
	if strings.Contains(want, "warning") {
		t.Errorf("the report of a sorted log warns:\n%s", want)
	}
	if out, _, _ := run(t, "replay", "--old", policy, "--new", policy, whole); !strings.Contains(out, "\nwarning: ") {
		t.Errorf("a comparison by an unsorted log has no warning:\n%s", out)
	}
	if _, errs, _ := run(t, "replay", "--policy", policy, "--format", "json", whole); !strings.Contains(errs, "mete replay: warning: ") {
		t.Errorf("an unsorted log has no warning beside JSON: %s", errs)
	}
}
