// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Code hosts need a version, rules for the results, a message, and a place in a file below the repository root.
func TestCheck_SARIF(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("policies", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"bad one.yaml": "name: r\nlimit_keys: []\nalgorithm_config: { rps: -1, burst: 1 }\n",
		"warned.yaml":  "name: r\nlimit_keys: [\"header:x-real-ip\"]\non_missing: deny\nalgorithm_config: { rps: 1, burst: 1 }\n",
		"tested.yaml": "rules:\n  - name: r\n    limit_keys: []\n    algorithm_config: { rps: 1, burst: 1 }\n" +
			"tests:\n  - name: two at once\n    times: 2\n    expect: allowed\n",
	} {
		if err := os.WriteFile(filepath.Join("policies", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stdout, _, code := run(t, "check", "--format", "sarif", "policies", "absent.yaml")
	if code != 2 {
		t.Errorf("code %d, want 2: one file is absent", code)
	}
	var log struct {
		Schema, Version string
		Runs            []struct {
			Tool struct {
				Driver struct {
					Name  string
					Rules []struct{ ID string }
				}
			}
			Invocations []struct {
				ExecutionSuccessful        bool
				ToolExecutionNotifications []struct{ Message struct{ Text string } }
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Level     string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine, StartColumn int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &log); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	if log.Version != "2.1.0" || len(log.Runs) != 1 {
		t.Fatalf("version %q, %d runs, want 2.1.0 and one", log.Version, len(log.Runs))
	}
	r := log.Runs[0]
	if len(r.Invocations) != 1 || r.Invocations[0].ExecutionSuccessful || len(r.Invocations[0].ToolExecutionNotifications) != 1 {
		t.Errorf("invocations %+v, want one that says that a file cannot be read", r.Invocations)
	}
	want := map[string][2]any{ // level, line by rule and file
		"invalid-policy policies/bad%20one.yaml": {"error", 3},
		"spoofable-key policies/warned.yaml":     {"warning", 2},
		"failed-test policies/tested.yaml":       {"error", 8},
	}
	for _, result := range r.Results {
		if len(result.Locations) != 1 || result.Message.Text == "" || r.Tool.Driver.Rules[result.RuleIndex].ID != result.RuleID {
			t.Errorf("result %+v: has no place, no text, or not its rule", result)
			continue
		}
		at := result.Locations[0].PhysicalLocation
		key := result.RuleID + " " + at.ArtifactLocation.URI
		if got := [2]any{result.Level, at.Region.StartLine}; want[key] != got || at.Region.StartColumn == 0 {
			t.Errorf("%s: %v column %d, want %v", key, got, at.Region.StartColumn, want[key])
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Errorf("no results %v in\n%s", want, stdout)
	}
}
