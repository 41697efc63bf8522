// SPDX-License-Identifier: Apache-2.0

package policyyaml_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/lint"
	"github.com/metehq/mete/policytest"
)

// Policies by algorithm, and by what people want of them.
const (
	policiesDir = "../examples/policies"
	cookbookDir = "../examples/cookbook"
)

// written is when the examples were: their overrides have not expired then.
var written = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

// exampleFiles are those in a directory, at least so many.
func exampleFiles(t *testing.T, dir string, least int) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < least {
		t.Fatalf("%d files in %s, %v, want at least %d", len(files), dir, err, least)
	}
	return files
}

// The tests of an example show its purpose: they pass, and each of its rules denies a request.
func TestExamples_DoWhatTheySay(t *testing.T) {
	for _, file := range append(exampleFiles(t, policiesDir, 6), exampleFiles(t, cookbookDir, 20)...) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			m := loadExample(t, file)
			report, err := policytest.Run(t.Context(), m, testsOf(t, m))
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range report.Results {
				for _, f := range r.Failures {
					t.Errorf("%s: %v\n\t%s", f.Path, f, strings.Join(f.Why, "\n\t"))
				}
			}
			if len(report.Results) == 0 {
				t.Error("there are no tests in it")
			}
			for _, gap := range report.Gaps() {
				t.Error(gap)
			}
		})
	}
}

// mete check has no warnings about the examples.
func TestExamples_WarnOfNothing(t *testing.T) {
	for _, file := range exampleFiles(t, cookbookDir, 20) {
		for _, w := range lint.Check(loadExample(t, file), time.Now()) {
			t.Errorf("%s: mete check warns: %v", file, w)
		}
	}
}

func loadExample(t *testing.T, file string) *policy.Matcher {
	t.Helper()
	m, err := loadFile(file, policy.Options{HashKey: []byte("examples"), Now: written})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Examples for forms that attackers guess at have no limit that a trailing slash evades.
func TestExamples_CoverTheSlashAtTheEnd(t *testing.T) {
	form := regexp.MustCompile(`path: "?\[?"?(/login|/signup|/password-reset)\b[^*]`)
	both := regexp.MustCompile(`path: \["?(/[a-z-]+)"?, "?(/[a-z-]+)/"?\]`)
	found := 0
	for _, pattern := range []string{"*/*.yaml", "*/*/*.yaml"} {
		files, err := filepath.Glob(filepath.Join("../examples", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range append(files, "../doc/tutorial.md") {
			if strings.Contains(filepath.ToSlash(file), "examples/migrating/gateways/") {
				continue // these decide as the gateways do, which tell the two apart
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(text), "\n") {
				if !strings.Contains(line, "match:") || !form.MatchString(line) {
					continue
				}
				found++
				if m := both.FindStringSubmatch(line); m == nil || m[1] != m[2] {
					t.Errorf("%s:%d: %s: name the path with a slash at its end, too", file, i+1, strings.TrimSpace(line))
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d such rules, want at least 10", found)
	}
}
