// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadSurvivors(t *testing.T) {
	if _, err := readSurvivors("survivors.tsv"); err != nil {
		t.Error(err)
	}
	const row = "bucket/take.go\tTake\ta [< -> <=] b\t1\t"
	for text, want := range map[string]string{
		"# a comment\n\n" + row + "equivalent: a is never b\n": "",
		row + "not tested: it needs a full disk\n":             "",
		row + "hard\n":         "1: the reason must start",
		row + "equivalent: \n": "1: the reason must start",
		row + "not tested: a\n" + row + "not tested: b\n": "2: bucket/take.go Take: a [< -> <=] b is listed twice",
		"bucket/take.go\tTake\ta\t0\tnot tested: a\n":     `1: number "0"`,
		"bucket/take.go\tTake\n":                          "1: want file, function",
	} {
		path := filepath.Join(t.TempDir(), "survivors.tsv")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		known, err := readSurvivors(path)
		if want == "" {
			if err != nil || len(known) != 1 {
				t.Errorf("%q: got %v, %v, want one survivor", text, known, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), path+":"+want) {
			t.Errorf("%q: got the error %v, want %s", text, err, want)
		}
	}
}

func TestReport_Summarize(t *testing.T) {
	tested := &targets[0]
	listed := &mutant{file: "a.go", function: "F", change: "[1 -> 2]", nth: 1}
	other := &mutant{file: "a.go", function: "F", change: "[1 -> 2]", nth: 2}
	reason := survivor{"a.go", "F", "[1 -> 2]", 1, "equivalent: both are odd"}
	for _, tt := range []struct {
		name    string
		known   survivors
		mutant  *mutant
		outcome outcome
		failed  bool
		want    string
	}{
		{"killed", nil, other, killed, false, ""},
		{"survived without a reason", nil, other, survived, true, "  a.go\tF\t[1 -> 2]\t2\n"},
		{"survived with a reason", survivors{listed.name(): reason}, listed, survived, false, "  a.go F: [1 -> 2]: equivalent: both are odd\n"},
		{"listed and killed", survivors{listed.name(): reason}, listed, killed, false, "  a.go F: [1 -> 2]: killed\n"},
		{"listed and gone", survivors{listed.name(): reason}, other, killed, true, "no such mutant exists\n  a.go F: [1 -> 2]\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var output strings.Builder
			r, err := newReport(&output, "", 1, 1)
			if err != nil {
				t.Fatal(err)
			}
			j := job{tt.mutant, tested, 1}
			r.add(j, result{outcome: tt.outcome})
			failed := r.summarize(tt.known, tt.known.findStale([]job{j}))
			if failed != tt.failed || !strings.Contains(output.String(), tt.want) {
				t.Errorf("got %v and\n%swant %v and\n%s", failed, &output, tt.failed, tt.want)
			}
		})
	}
}

func TestSample(t *testing.T) {
	var jobs []job
	for i := range 50 {
		jobs = append(jobs, job{id: i, mutant: &mutant{file: "a.go", function: "F", change: fmt.Sprintf("[%d -> 0]", i), nth: 1}})
	}
	ids := func(jobs []job) (ids []int) {
		for _, j := range jobs {
			ids = append(ids, j.id)
		}
		return ids
	}
	got := ids(sample(jobs, 10, 1))
	if again := ids(sample(jobs, 10, 1)); len(got) != 10 || !slices.IsSorted(got) || !slices.Equal(got, again) {
		t.Errorf("got %v and then %v, want 10 jobs in their order", got, again)
	}
	if other := ids(sample(jobs, 10, 2)); slices.Equal(got, other) {
		t.Errorf("two seeds draw %v", got)
	}
	without := ids(sample(slices.DeleteFunc(slices.Clone(jobs), func(j job) bool { return j.id == got[3] }), 10, 1))
	if kept := slices.DeleteFunc(slices.Clone(without), func(id int) bool { return !slices.Contains(got, id) }); len(kept) != 9 {
		t.Errorf("without job %d, the sample %v becomes %v", got[3], got, without)
	}
	if n := len(sample(jobs, 90, 1)); n != 50 {
		t.Errorf("a sample of 90 has %d of 50 jobs", n)
	}
}

// TestSurvivors_Exist checks that each listed survivor is still a mutant of the code.
func TestSurvivors_Exist(t *testing.T) {
	known, err := readSurvivors("survivors.tsv")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := findJobs(filepath.Join("..", ".."), targets)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range known.findStale(jobs) {
		t.Errorf("survivors.tsv lists a mutant that does not exist: %s", name)
	}
}
