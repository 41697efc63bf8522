// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/cli"
)

const curlPolicy = `
rules:
  - name: keys
    limit_keys: ["header:x-tenant"]
    match: { path: "/v1/*", method: POST, host: api.example.com, "query:q": "a b", "cookie:beta": "1", "jwt:plan": pro }
    algorithm_config: { rps: 10, burst: 20, cost_source: "header:content-length", max_cost: 20 }
  - { name: addresses, limit_keys: ["ip:address"], algorithm_config: { rps: 1, burst: 5 } }
`

const curlLine = `curl --max-time 5 'https://API.example.com/v1/x?q=a%20b' \
  -H 'X-Tenant: acme' -b 'beta=1' -H 'Authorization: Bearer e30.eyJwbGFuIjoicHJvIn0.secret' \
  --data-raw '{"a":1}'`

func TestExplain_Curl(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(curlPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := run(t, "explain", "--policy", file, "--curl", curlLine, "ip=192.0.2.7")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	for _, want := range []string{
		"keys:x-tenant=acme", "addresses:ip=192.0.2.7", "note: ignored: --max-time 5", "note: the claims of the token are taken as they stand",
		`note: the host "API.example.com" is matched as "api.example.com"`,
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("output lacks %q:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "secret") {
		t.Errorf("the token is in the output:\n%s", stdout)
	}
	// The body has 7 bytes.
	if !strings.Contains(strings.Join(strings.Fields(stdout), " "), "keys 7 20 13 20 now") {
		t.Errorf("the request does not cost 7:\n%s", stdout)
	}
}

// An attribute beside the command goes before what that says.
func TestExplain_CurlAndAttributes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(curlPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, _ := run(t, "explain", "--policy", file, "--curl", curlLine, "header:x-tenant=other", "cost=1.5")
	if stderr != "" || !strings.Contains(stdout, "keys:x-tenant=other") || !strings.Contains(strings.Join(strings.Fields(stdout), " "), "keys 1.5 20 18.5") {
		t.Errorf("stderr %q:\n%s", stderr, stdout)
	}
}

func TestExplain_CurlFromStandardInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(curlPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	code := cli.Main(t.Context(), []string{"explain", "--policy", file, "--curl", "-"}, cli.Streams{In: strings.NewReader(curlLine), Out: &out, Err: &errs})
	stdout, stderr := out.String(), errs.String()
	if code != 0 || stderr != "" || !strings.Contains(stdout, "keys:x-tenant=acme") {
		t.Errorf("exit code %d, stderr %q:\n%s", code, stderr, stdout)
	}
}

func TestExplain_CurlMistakes(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--curl", "curl h --max-tme 5"}, "--curl: line 1, column 8: curl option --max-tme is not read; did you mean --max-time?"},
		{[]string{"--curl", "curl http://h/x", "GET /y"}, "one request is explained at a time: leave out the path or --curl"},
		{[]string{"--curl", "-", "--policy", "-"}, "--policy and --curl cannot both be standard input"},
		{[]string{"--curl", "curl http://a..b/"}, `--curl: "a..b" is no host; write its name, such as example.com`},
	} {
		stdout, stderr, code := run(t, append([]string{"explain"}, tt.args...)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q, want %q", tt.args, code, stdout, stderr, tt.want)
		}
	}
}

// A server is asked for all that the command sends: which of it the policy looks at,
// only the server knows.
func TestExplain_CurlOfServer(t *testing.T) {
	var got struct{ Attributes map[string]string }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	run(t, "explain", "--server", server.URL, "--curl", curlLine)
	for name, want := range map[string]string{
		"method": "POST", "path": "/v1/x", "host": "api.example.com", "query:q": "a b", "cookie:beta": "1", "jwt:plan": "pro",
		"header:x-tenant": "acme", "header:content-length": "7", "header:content-type": "application/x-www-form-urlencoded",
	} {
		if got.Attributes[name] != want {
			t.Errorf("the server is told %s is %q, want %q", name, got.Attributes[name], want)
		}
	}
}
