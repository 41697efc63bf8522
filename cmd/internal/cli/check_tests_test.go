// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const testedPolicy = `rules:
  - name: free
    limit_keys: ["header:x-user"]
    algorithm_config: { rps: 10, burst: 20 }
  - name: tenant
    limit_keys: ["header:x-tenant"]
    algorithm_config: { rps: 10, burst: 20 }
tests:
  - name: 20 at once
    request: { header:x-user: ann }
    steps:
      - { times: 20, expect: allowed }
      - { expect: { denied: free, retry_after: 100ms } }
      - { after: 100ms, expect: allowed }
`

// policyWith writes testedPolicy and what follows it to a file.
func policyWith(t *testing.T, tests string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(name, []byte(testedPolicy+tests), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const failingTest = `  - name: too much to ask
    request: { header:x-user: ann }
    steps:
      - times: 20
      - after: 50ms
        expect: { allowed: true, remaining: 0 }
`

func TestCheck_RunsTests(t *testing.T) {
	for _, tt := range []struct {
		tests string
		args  []string
		code  int
		has   []string
		not   []string
	}{
		{"", nil, 0, []string{"tests: 1 passed\n", "1 of 2 rules applies to no request of any test: tenant"}, []string{"ok    20 at once", "failed"}},
		{"", []string{"--list-tests"}, 0, []string{"ok    20 at once (22 requests)"}, nil},
		{failingTest, nil, 1, []string{
			"tests: 1 passed, 1 failed\n",
			":20:28: failed: too much to ask: step 2, after 50ms: want allowed; got denied by free (token_bucket_exceeded), retry after 50ms\n" +
				"    the request: header:x-user=\"ann\"\n" +
				"    rule free applies: 0.5 of 20 left, cost 1, denies, retry after 50ms\n" +
				"    not applied: tenant\n",
		}, []string{"applies to no request"}},
		{failingTest, []string{"--list-tests"}, 1, []string{"FAIL  too much to ask (21 requests)"}, nil},
		{failingTest, []string{"--run", "^20"}, 0, []string{"tests: 1 passed, 1 not run\n"}, []string{"applies to no request"}},
		{failingTest, []string{"--run", "much"}, 1, []string{"tests: 1 failed, 1 not run\n"}, nil},
		{"  - name: misspelt\n    expect: { denied: fre }\n", nil, 1, []string{`:16:23: /tests/1/expect/denied: no rule is named "fre"; did you mean "free"?`}, nil},
	} {
		stdout, stderr, code := run(t, append([]string{"check", policyWith(t, tt.tests)}, tt.args...)...)
		if code != tt.code || stderr != "" {
			t.Errorf("check %v with %q: code %d, stderr %q, want code %d", tt.args, tt.tests, code, stderr, tt.code)
		}
		for _, want := range tt.has {
			if !strings.Contains(stdout, want) {
				t.Errorf("check %v with %q:\n%s\nwant %q in it", tt.args, tt.tests, stdout, want)
			}
		}
		for _, unwanted := range tt.not {
			if strings.Contains(stdout, unwanted) {
				t.Errorf("check %v with %q:\n%s\nwant no %q in it", tt.args, tt.tests, stdout, unwanted)
			}
		}
	}
}

// A misspelt name would else be a test that passes.
func TestCheck_RunsNoTest(t *testing.T) {
	for _, format := range []string{"text", "json", "sarif"} {
		stdout, stderr, code := run(t, "check", policyWith(t, failingTest), "--run", "nothing", "--format", format)
		if code != 1 || stderr != "mete check: --run: no test has a matching name\n" || stdout == "" {
			t.Errorf("format %s: code %d, stderr %q, stdout %q; want 1 and why", format, code, stderr, stdout)
		}
	}
}

// The examples pass their tests, and leave nothing out.
func TestCheck_Examples(t *testing.T) {
	files, err := filepath.Glob("../../../examples/policies/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("examples: %d files, %v", len(files), err)
	}
	stdout, stderr, code := run(t, append([]string{"check"}, files...)...)
	if got := strings.Count(stdout, "  tests: "); code != 0 || stderr != "" || got != len(files) || strings.Contains(stdout, "of any test") {
		t.Errorf("check of %d examples: code %d, %d with tests\n%s%s", len(files), code, got, stdout, stderr)
	}
}

// What doc/policy.md shows of a failing test is what check prints.
func TestCheck_FailureInTheReference(t *testing.T) {
	data, err := os.ReadFile("../../../doc/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(data), "\n## Tests\n")
	_, section, _ = strings.Cut(section, "```yaml\n")
	text, section, _ := strings.Cut(section, "```\n")
	_, section, _ = strings.Cut(section, "\npolicy.yaml:")
	shown, _, found := strings.Cut(section, "```\n")
	const right, wrong = "{ after: 100ms, expect: allowed }", "{ after: 50ms, expect: allowed }"
	if !found || !strings.Contains(text, right) {
		t.Fatal("doc/policy.md has no policy with tests, and what check says where one fails, below ## Tests")
	}
	name := filepath.Join(t.TempDir(), "policy.yaml")
	for step, want := range map[string]string{right: "  tests: 2 passed\n", wrong: name + ":" + shown} {
		if err := os.WriteFile(name, []byte(strings.Replace(text, right, step, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if stdout, stderr, _ := run(t, "check", name); !strings.Contains(stdout, want) {
			t.Errorf("%s: check printed %q, %q; doc/policy.md shows %q", step, stdout, stderr, want)
		}
	}
}
