// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/envoyapi/dropin"
)

// output runs a program and returns its standard output and errors.
func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	text, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, text)
	}
	return string(text)
}

// buildTool compiles grpcurl or ghz.
func buildTool(t *testing.T, name, pkg string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	runGo(t, filepath.Join("tools", name), "build", "-buildvcs=false", "-trimpath", "-o", program, pkg)
	return program
}

// TestClient runs the client of envoyproxy/ratelimit.
func TestClient(t *testing.T) {
	addr := startService(t, ourProgram(t)).addr
	client := buildOriginal(t, "github.com/envoyproxy/ratelimit/src/client_cmd")
	for i, want := range []string{"overall_code:OK", "overall_code:OK", "overall_code:OVER_LIMIT"} {
		got := output(t, client, "-dial_string", addr, "-domain", "shop", "-descriptors", "user=ann")
		if !strings.Contains(got, want) {
			t.Errorf("call %d: got %s, want %s", i+1, got, want)
		}
	}
}

// TestGrpcurl calls by reflection, so that it needs no file with messages. It asks for the health too, as probes do.
func TestGrpcurl(t *testing.T) {
	addr := startService(t, ourProgram(t)).addr
	grpcurl := buildTool(t, "grpcurl", "github.com/fullstorydev/grpcurl/cmd/grpcurl")
	const service = "envoy.service.ratelimit.v3.RateLimitService"
	if got := output(t, grpcurl, "-plaintext", addr, "list"); !strings.Contains(got, service) {
		t.Errorf("list: got %s", got)
	}
	const health = "grpc.health.v1.Health/Check"
	if got := output(t, grpcurl, "-plaintext", "-d", `{"service": "ratelimit"}`, addr, health); !strings.Contains(got, `"status": "SERVING"`) {
		t.Errorf("%s: got %s", health, got)
	}
	got := output(t, grpcurl, "-plaintext", "-d",
		`{"domain": "shop", "descriptors": [{"entries": [{"key": "user", "value": "bob"}]}], "hits_addend": 3}`, addr, service+"/ShouldRateLimit")
	var answer struct {
		OverallCode string
		Statuses    []struct{ Code string }
	}
	if err := json.Unmarshal([]byte(got), &answer); err != nil || answer.OverallCode != "OVER_LIMIT" || len(answer.Statuses) != 1 {
		t.Errorf("ShouldRateLimit: got %s, %v", got, err)
	}
}

// TestGhz sends 2,000 calls from 20 callers.
func TestGhz(t *testing.T) {
	addr := startService(t, ourProgram(t)).addr
	ghz := buildTool(t, "ghz", "github.com/bojand/ghz/cmd/ghz")
	got := output(t, ghz, "--insecure", "--format", "json", "-n", "2000", "-c", "20", "--timeout", "1m",
		"--call", "envoy.service.ratelimit.v3.RateLimitService.ShouldRateLimit",
		"-d", `{"domain": "shop", "descriptors": [{"entries": [{"key": "load", "value": "x"}]}]}`, addr)
	var report struct {
		Count                  int
		StatusCodeDistribution map[string]int
	}
	if err := json.Unmarshal([]byte(got), &report); err != nil || report.Count != 2000 || report.StatusCodeDistribution["OK"] != 2000 {
		t.Errorf("%d calls, codes %v, %v", report.Count, report.StatusCodeDistribution, err)
	}
}

// originalDir returns the directory with the source of envoyproxy/ratelimit.
func originalDir(t *testing.T) string {
	t.Helper()
	if source := os.Getenv(sourceVar); source != "" {
		return source
	}
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/envoyproxy/ratelimit")
	list.Dir = "original"
	list.Env = append(os.Environ(), "GOWORK=off")
	dir, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(dir))
}

// TestExamples_Client serves the example directory of envoyproxy/ratelimit, and calls it with the client of
// envoyproxy/ratelimit. The limits do not depend on the time within a minute.
func TestExamples_Client(t *testing.T) {
	addr := startService(t, ourProgram(t), "RUNTIME_ROOT="+filepath.Join(originalDir(t), "examples")).addr
	client := buildOriginal(t, "github.com/envoyproxy/ratelimit/src/client_cmd")
	for _, tt := range []struct{ domain, descriptors, want string }{
		{"mongo_cps", "database=users", "overall_code:OK"},
		{"rl", "source_cluster=proxy,destination_cluster=mock", "overall_code:OK"},
		{"rl", "foo=a,bar=banned", "overall_code:OVER_LIMIT"},
		{"rl", "foo=a,baz=shady", "overall_code:OK"},
		{"rl", "nothing=a", "overall_code:OK"},
		{"unknown", "foo=a", "overall_code:OK"},
	} {
		got := output(t, client, "-dial_string", addr, "-domain", tt.domain, "-descriptors", tt.descriptors)
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s of %s: got %s, want %s", tt.descriptors, tt.domain, got, tt.want)
		}
	}
}

// TestExamples loads the example configurations of envoyproxy/ratelimit.
func TestExamples(t *testing.T) {
	var files []string
	for _, pattern := range []string{"examples/ratelimit/config/*.yaml", "test/integration/runtime/current/ratelimit/config/*.yaml"} {
		found, err := filepath.Glob(filepath.Join(originalDir(t), pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dropin.Parse([]dropin.File{{Name: filepath.Base(file), Data: text}}, dropin.ConfigOptions{}); err != nil {
			t.Error(err)
		}
	}
}
