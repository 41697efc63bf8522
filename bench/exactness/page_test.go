// SPDX-License-Identifier: Apache-2.0

//go:build linux

package exactness_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/metehq/mete/bench/exactness"
)

var update = flag.Bool("update", false, "write the page and the chart from "+resultsFile)

// TestPage fails if a contender or a condition is new since the last run, or if someone changed a figure by hand.
func TestPage(t *testing.T) {
	r, err := exactness.Read(resultsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !r.IsComplete() {
		t.Errorf("%s lacks contenders or conditions: run make compare-exactness", resultsFile)
	}
	if *update {
		writePage(t, r)
	}
	for _, file := range writtenFiles {
		text, err := os.ReadFile(file.path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := file.text(string(text), r)
		if err != nil {
			t.Fatalf("%s: %v", file.path, err)
		}
		if string(text) != want {
			t.Errorf("%s differs from %s: run go test . -run TestPage -update", file.path, resultsFile)
		}
	}
}

// TestEachContenderHasARow fails if a table lacks a contender or a condition.
func TestEachContenderHasARow(t *testing.T) {
	page, err := os.ReadFile("../../doc/comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range exactness.Contenders {
		if got := strings.Count(string(page), "\n| "+c.Title()+" |"); got != 4 {
			t.Errorf("%q has %d rows, want one in each of three tables and one with its promise", c.Title(), got)
		}
	}
	for _, condition := range exactness.Conditions {
		if got := strings.Count(string(page), "| "+condition.Name+" |"); got != 4 {
			t.Errorf("%q occurs %d times, want in three tables and in the list of conditions", condition.Name, got)
		}
	}
}

// TestLinksHaveTheVersion fails if a contender has a new version, whose documents may have other lines.
func TestLinksHaveTheVersion(t *testing.T) {
	r, err := exactness.Read(resultsFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range exactness.Contenders {
		version, _, _ := strings.Cut(r.Version(c), " in ")
		version = version[strings.LastIndex(version, "-")+1:] // the commit of a pseudo-version
		if strings.HasPrefix(c.Name, "mete") || strings.HasPrefix(c.Name, "nginx") {
			continue // documents of this commit, and documents without versions
		}
		if !strings.Contains(c.Link, version) {
			t.Errorf("%q has version %q, its link is %s", c.Title(), version, c.Link)
		}
	}
}

func TestChartIsXML(t *testing.T) {
	r := exactness.Results{Cells: map[string]map[string]exactness.Cell{}}
	decoder := xml.NewDecoder(strings.NewReader(r.Chart()))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
