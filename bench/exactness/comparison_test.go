// SPDX-License-Identifier: Apache-2.0

//go:build linux

package exactness_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete/bench/exactness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	exactness.Clean()
	os.Exit(code)
}

// seedVar is the environment variable that runs the comparison, with its seed.
const seedVar = "METE_COMPARE"

const resultsFile = "results.json"

// TestComparison runs every contender under every condition and writes the results, the page and the chart. With -run, it
// runs only some of them and writes nothing: -run 'TestComparison/cells/mete,_Redis/failover'.
func TestComparison(t *testing.T) {
	text, ok := os.LookupEnv(seedVar)
	if !ok {
		return // only make compare-exactness has a seed
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q: want a seed, such as 1", seedVar, text)
	}
	results := exactness.Results{Seed: seed, Using: servers(), Cells: map[string]map[string]exactness.Cell{}}
	var mu sync.Mutex // guards results
	start := time.Now()
	t.Run("cells", func(t *testing.T) {
		for _, c := range exactness.Contenders {
			for _, condition := range exactness.Conditions {
				t.Run(strings.ReplaceAll(c.Title(), "/", "-")+"/"+condition.Name, func(t *testing.T) {
					t.Parallel()
					began := time.Now()
					cell := exactness.Run(t, c, condition, seed)
					t.Logf("%-34s %-16s above %3d  lost %3d  retry %d/%d  errors %d  %.1fs  %s", c.Title(), condition.Name,
						cell.Above, cell.Lost, cell.Failed, cell.Asked, cell.Errors, time.Since(began).Seconds(), cell.Reason)
					mu.Lock()
					defer mu.Unlock()
					results.Add(c, condition, cell)
				})
			}
		}
	})
	t.Logf("seed %d, %s", seed, time.Since(start).Round(time.Second))
	if t.Failed() || !results.IsComplete() {
		return
	}
	if err := results.Write(resultsFile, start); err != nil {
		t.Fatal(err)
	}
	writePage(t, results)
}

// servers returns the versions of the stores and of Go and Node.js.
func servers() string {
	number := regexp.MustCompile(`[0-9]+\.[0-9]+(\.[0-9]+)?`)
	versions := []string{fmt.Sprintf("%d cores", runtime.NumCPU()), "Go " + strings.TrimPrefix(runtime.Version(), "go")}
	for _, program := range []struct{ name, path string }{{"Redis", "redis-server"}, {"PostgreSQL", "psql"}, {"Node.js", "node"}} {
		if out, err := exec.Command(program.path, "--version").Output(); err == nil {
			versions = append(versions, program.name+" "+number.FindString(string(out)))
		}
	}
	return strings.Join(versions, ", ")
}

// A written file is a file with results.
type written struct {
	path string
	text func(old string, r exactness.Results) (string, error)
}

var writtenFiles = []written{
	{"../../doc/comparison.md", exactness.Insert},
	{"../../README.md", exactness.Quote},
	{"../../doc/images/exactness.svg", func(_ string, r exactness.Results) (string, error) { return r.Chart(), nil }},
}

func writePage(t *testing.T, r exactness.Results) {
	t.Helper()
	for _, file := range writtenFiles {
		old, err := os.ReadFile(file.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		text, err := file.text(string(old), r)
		if err == nil {
			err = os.WriteFile(file.path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatalf("%s: %v", file.path, err)
		}
	}
}
