// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// newRepository returns a directory with a module, which has the package small of testdata.
func newRepository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS("testdata/small")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root+"/go.mod", []byte("module example.org/small\n\ngo 1.26.0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

func small(run string) []target {
	return []target{{name: "small", files: []string{"*.go", "*.lua"}, embeds: []string{"half.go"}, dir: ".", steps: []step{{run: run}}}}
}

func TestTestAll(t *testing.T) {
	root := newRepository(t)
	jobs, err := findJobs(root, small(""))
	if err != nil {
		t.Fatal(err)
	}
	endless := func(j job) bool { return j.function == "isEven" && strings.Contains(j.change, "-=") }
	jobs = slices.DeleteFunc(jobs, endless)
	want := map[string]outcome{
		"half.go -: const divisor = [2 -> 3]":                      killed, // has its own build
		"half.go half: return n [/ -> *] divisor":                  killed,
		"half.go halfUpTo: return [min -> max](half(n), most)":     killed,
		"half.go sum: for i := [0 -> 1]; i < len(numbers); i++ {":  killed,
		"half.go sum: for i := 0; i [< -> <=] len(numbers); i++ {": killed,
		"half.go sum: for i := 0; i < len(numbers); i[++ -> --] {": killed,
		"half.go sum: total [+= -> -=] numbers[i]":                 killed,
		"half.go sum: [total += numbers[i] -> nothing]":            killed,
		"half.go join: return a [+ -> -] b":                        notCompiled,
		"half.go isEven: for n [> -> >=] 1 {":                      survived,
		"half.go isEven: for n > [1 -> 0] {":                       survived,
		"half.go isEven: return n [== -> !=] 0":                    killed,
		"half.go isEven: return n == [0 -> 1]":                     killed,
		"half.lua -: return n [/ -> *] 2":                          killed,
		"half.lua -: return n / [2 -> 3]":                          survived,
	}
	var output strings.Builder
	r, err := newReport(&output, "", len(jobs), 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := testAll(t.Context(), root, jobs, 2, r); err != nil {
		t.Fatal(err)
	}
	for _, res := range r.results {
		name := res.name()
		if outcome, ok := want[name]; !ok || outcome != res.outcome {
			t.Errorf("%s: %v by %s, want %v", name, res.outcome, res.by, outcome)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s is missing", name)
	}
}

// TestTest_Timeout tests a mutant that never ends.
func TestTest_Timeout(t *testing.T) {
	root := newRepository(t)
	jobs, err := findJobs(root, small("TestEven"))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(jobs, func(j job) bool { return j.change == "n [-= -> +=] 2" })
	if i < 0 {
		t.Fatal("no mutant adds 2")
	}
	r, err := newReport(new(strings.Builder), "", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	l, err := openLab(t.Context(), root, t.TempDir(), jobs[i:i+1], r)
	if err != nil {
		t.Fatal(err)
	}
	l.extra = 0
	for i := range l.steps {
		l.steps[i].limit = time.Millisecond // too short for the original, too
	}
	if res, err := l.test(t.Context(), jobs[i]); err != nil || res.outcome != timedOut {
		t.Errorf("got %v, %v, want %v", res.outcome, err, timedOut)
	}
}

func TestTestAll_BrokenOriginal(t *testing.T) {
	for text, want := range map[string]string{
		"func TestBroken(t *testing.T) { t.Fatal(`always`) }": "fail without a mutant",
		"func TestBroken(t *testing.T) { undefined() }":       "undefined: undefined",
	} {
		root := newRepository(t)
		if err := os.WriteFile(root+"/broken_test.go", []byte("package small\n\nimport \"testing\"\n\n"+text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		jobs, err := findJobs(root, small(""))
		if err != nil {
			t.Fatal(err)
		}
		r, err := newReport(new(strings.Builder), "", 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := testAll(t.Context(), root, jobs[1:2], 1, r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got the error %v, want %s", text, err, want)
		}
	}
}

func TestFailedTest(t *testing.T) {
	for output, want := range map[string]string{
		"--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n        --- FAIL: TestA/b/c (0.00s)\n--- FAIL: TestD (0.00s)\n": "TestA/b/c",
		"panic: no test\n": "a crash",
	} {
		if got := failedTest(output); got != want {
			t.Errorf("%q: got %s, want %s", output, got, want)
		}
	}
}
