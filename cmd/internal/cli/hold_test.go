// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/cli"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// The commands about holds, against a server with one rule of 100 tokens.
func TestHold(t *testing.T) {
	run := serveAPI(t, `{"rules": [{"name": "tokens", "limit_keys": ["header:x-user"], "algorithm_config": {"rate": "1/1000h", "burst": 100}}]}`)
	out, _ := run(0, "hold", "--cost", "40", "--ttl", "5m", "--refund", "header:x-user=kim")
	id := strings.TrimSpace(out)
	if !strings.HasSuffix(id, "_0") {
		t.Fatalf("hold printed %q, want an ID", out)
	}
	for _, tt := range []struct {
		code         int
		args         string
		stdout, errs string
	}{
		{1, "hold --cost 61 header:x-user=kim", "denied by tokens", ""},
		{1, "hold --cost 61 --format json header:x-user=kim", `"allowed":false`, ""},
		{0, "renew " + id + " --for 1h", "open until 2", ""},
		{0, "settle " + id + " --cost 12.5", "settled with 12.5\n", ""},
		{0, "settle " + id + " --cost 3", "already settled with 12.5\n", ""},
		{0, "release " + id + " --format json", `"settled":false,"cost":12.5`, ""},
		{1, "renew " + id + " --for 1h", "", "the hold has ended"},
		{1, "settle x --cost 3", "", "no such hold"},
		{2, "settle --cost 3", "", "the ID of a hold is required"},
		{2, "settle x", "", "cost"},
		{2, "settle x --cost -1", "", "cost"},
		{2, "renew x", "", "for"},
		{2, "renew x --for 0s", "", "above 0"},
		{2, "hold --ttl 5 header:x-user=kim", "", "ttl"},
		{0, "hold path=/", "\n", ""},
	} {
		out, errs := run(tt.code, strings.Fields(tt.args)...)
		if !strings.Contains(out, tt.stdout) || !strings.Contains(errs, tt.errs) {
			t.Errorf("%s: %q %q, want %q %q", tt.args, out, errs, tt.stdout, tt.errs)
		}
	}
}

// A hold under a concurrency limit shows its slot, which the end of the hold does not release.
func TestHold_Slot(t *testing.T) {
	run := serveAPI(t, `{"rules": [{"name": "tokens", "limit_keys": ["header:x-user"], "algorithm_config": {"rate": "1/1000h", "burst": 100}},
		{"name": "jobs", "group": "jobs", "limit_keys": ["header:x-user"], "algorithm": "concurrency", "max": 1, "lease": "1h"}]}`)
	out, _ := run(0, "hold", "--cost", "40", "--format", "json", "header:x-user=kim")
	var h struct{ Hold, Slot string }
	if err := json.Unmarshal([]byte(out), &h); err != nil || h.Hold == "" || len(h.Slot) != 32 {
		t.Fatalf("hold printed %q, want a hold with a slot, error %v", out, err)
	}
	run(0, "settle", h.Hold, "--cost", "10")
	run(1, "hold", "header:x-user=kim")
	run(0, "slots", "release", h.Slot, "header:x-user=kim")
	run(0, "hold", "header:x-user=kim")
}

// serveAPI serves a policy with all endpoints. The returned function runs a command against the server and returns its output.
func serveAPI(t *testing.T, rules string) func(code int, args ...string) (stdout, stderr string) {
	t.Helper()
	m, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := mete.New(s, m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := httpapi.New(l, httpapi.Config{Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return func(code int, args ...string) (stdout, stderr string) {
		t.Helper()
		var out, errs strings.Builder
		args = append(args, "--server", server.URL)
		if got := cli.Main(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); got != code {
			t.Errorf("%v: exit code %d, want %d: %s%s", args, got, code, out.String(), errs.String())
		}
		return out.String(), errs.String()
	}
}

// A usage settles limits of tokens and of money, which one cost cannot.
func TestSettle_Usage(t *testing.T) {
	run := serveAPI(t, `{"prices": {"version": "1", "models": {"small": {"input": 1000, "output": 4000}, "big": {"input": 100000, "output": 100000}}}, "rules": [
		{"name": "tokens", "group": "t", "limit_keys": [], "rate": "5000/1000h", "cost_source": "ai:tokens"},
		{"name": "money", "group": "m", "limit_keys": [], "rate": "5000/1000h", "cost_source": "ai:money"}]}`)
	out, _ := run(0, "hold", "ai:model=small", "ai:prompt_tokens=500", "ai:max_tokens=1000")
	id := strings.TrimSpace(out)
	for _, tt := range []struct {
		code         int
		args         string
		stdout, errs string
	}{
		{1, "settle " + id + " --cost 500", "", "settle it by the usage of the model"},
		{2, "settle " + id, "", "the cost is missing: set --cost, such as --cost 812, or --usage"},
		{2, "settle " + id + " --cost 5 --usage input=1", "", "--cost and --usage are both there: set one of them"},
		{2, "settle " + id + " --cost 5 --model big", "", "--model has no effect on a cost"},
		{2, "settle " + id + " --usage input", "", `input is "": write a whole number of tokens`},
		{2, "settle " + id + " --usage prompt=1", "", `unknown class "prompt": write input, cached`},
		{2, "settle " + id + " --usage input=1,input=2", "", `class "input" is there twice`},
		{2, "settle " + id + " --usage output=1000000001", "", "output is 1000000001: must be between 0 and 1000000000"},
		{0, "settle " + id + " --usage input=400,output=100 --model big", "settled by usage\n", ""},
		{0, "settle " + id + " --usage input=4", "already settled by usage\n", ""},
		{0, "peek ai:model=small ai:prompt_tokens=1 ai:max_tokens=1 --format json", `"remaining":4500`, ""},
		{0, "peek ai:model=small ai:prompt_tokens=1 ai:max_tokens=1 --format json", `"remaining":4950`, ""},
	} {
		out, errs := run(tt.code, strings.Fields(tt.args)...)
		if !strings.Contains(out, tt.stdout) || !strings.Contains(errs, tt.errs) {
			t.Errorf("%s: %q %q, want %q %q", tt.args, out, errs, tt.stdout, tt.errs)
		}
	}
}
