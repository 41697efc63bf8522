// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// names returns the names of the mutants of a file.
func names(t *testing.T, dir, file string) []string {
	t.Helper()
	found, err := findMutants(dir, file)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for i := range found {
		all = append(all, found[i].name())
	}
	return all
}

func TestFindMutants(t *testing.T) {
	const dir = "testdata/names"
	for _, file := range []string{"limit.go", "limit.lua", "limit.sql"} {
		t.Run(file, func(t *testing.T) {
			got := strings.Join(names(t, dir, file), "\n") + "\n"
			golden := filepath.Join(dir, file+".names")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got the mutants\n%swant\n%swrite them again with: go test ./tools/mutate -update", got, want)
			}
		})
	}
}

// TestFindMutants_StableNames moves all lines, and adds a function.
func TestFindMutants_StableNames(t *testing.T) {
	for file, added := range map[string]string{
		"limit.go":  "package limit\n\nfunc first(a, b int) bool { return a < b }\n",
		"limit.lua": "local function first(a, b)\n\treturn a < b\nend\n",
		"limit.sql": "CREATE FUNCTION {schema}.first(a int, b int) RETURNS boolean\nRETURN a < b;\n",
	} {
		source, err := os.ReadFile(filepath.Join("testdata/names", file))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		text := added + strings.Replace(string(source), "package limit\n", "", 1)
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got := names(t, dir, file)
		if i := slices.IndexFunc(got, func(name string) bool { return strings.Contains(name, "first: ") }); i < 0 {
			t.Errorf("%s: the added function has no mutant", file)
		} else {
			got = slices.Delete(got, i, i+1)
		}
		if want := names(t, "testdata/names", file); !slices.Equal(got, want) {
			t.Errorf("%s: got the names\n%s\nwant\n%s", file, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestFindJobs_UniqueNames(t *testing.T) {
	jobs, err := findJobs("../..", targets)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, j := range jobs {
		if name := j.name(); seen[name] {
			t.Errorf("two mutants have the name %q", name)
		} else {
			seen[name] = true
		}
	}
}
