// SPDX-License-Identifier: Apache-2.0

package respapi_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/respapi"
	"github.com/metehq/mete/storetest"
)

// textIn returns the n-th element of a shown array.
func textIn(shown string, n int) string {
	return strings.Split(strings.Trim(shown, "*[]"), ",")[n]
}

func TestHold(t *testing.T) {
	p, _, _ := start(t, `{"rules": [{"name": "users", "limit_keys": ["user"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1000h", "burst": 100}}]}`,
		respapi.Config{Anonymous: respapi.RoleTake})
	const fullAfter = "108000000"
	got := p.do("METE.HOLD", "60000", "EXPIRY", "refund", "COST", "30", "user", "a", "usr", "x")
	id := textIn(got, 9)
	if want := "*[0,100,70,-1," + fullAfter + ",users,,0,*[usr]," + id + ",]"; got != want || !strings.HasSuffix(id, "_0") {
		t.Fatalf("got %s, want %s", got, want)
	}
	for _, tt := range []struct{ command, want string }{
		{"METE.HOLD 60000 COST 71 user a", "*[1,100,70,3600000," + fullAfter + ",users,token_bucket_exceeded,0,*[],,]"},
		{"METE.RENEW HOLD " + id + " 120000", "*[open,0,0,"},
		{"METE.SETTLE " + id + " 10.5", "*[settled,1,10.5,"},
		{"METE.SETTLE " + id + " 3", "*[settled,0,10.5,"},
		{"METE.RELEASE HOLD " + id, "*[settled,0,10.5,"},
		{"METE.RENEW HOLD " + id + " 1000", "-HOLDENDED "},
		{"METE.SETTLE x 1", "-NOHOLD "},
		{"METE.SETTLE x -1", "-ERR "},
		{"METE.RELEASE " + id + " x", "-ERR syntax error; write METE.RELEASE HOLD id"},
		{"METE.RENEW x " + id + " 1000", "-ERR syntax error; write METE.RENEW HOLD id ttl"},
		{"METE.RENEW HOLD " + id + " 0", "-ERR the ttl is not"},
		{"METE.HOLD 0 user a", "-ERR the ttl is not"},
		{"METE.HOLD 604800001 user a", "-ERR the ttl is not"},
		{"METE.HOLD 1000 EXPIRY never user a", "-ERR EXPIRY is not keep or refund"},
		{"METE.HOLD 1000 COST", "-ERR COST has no value"},
		{"METE.HOLD", "-ERR wrong number of arguments"},
	} {
		if got := p.do(strings.Fields(tt.command)...); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: got %s, want %s…", tt.command, got, tt.want)
		}
	}
	if got := p.do("METE.PEEK", "user", "a"); textIn(got, 2) != "89" {
		t.Errorf("peek: got %s, want 89 tokens left", got)
	}
}

// A hold under a concurrency limit returns its slot. The settlement does not release it.
func TestHold_Slot(t *testing.T) {
	lim := newLimiter(t, storetest.NewModel(newClock().read), `{"rules": [{"name": "users", "limit_keys": ["user"], "algorithm_config": {"rate": "1/1000h", "burst": 100}},
		{"name": "jobs", "group": "jobs", "limit_keys": ["user"], "algorithm": "concurrency", "max": 1, "lease": "1h"}]}`, mete.Config{})
	_, addr := serve(t, lim, respapi.Config{Anonymous: respapi.RoleTake})
	p := dial(t, addr)
	got := p.do("METE.HOLD", "60000", "COST", "30", "user", "a")
	slot, err := bucket.ParseSlotID(textIn(got, 10))
	if err != nil {
		t.Fatalf("got %s, want a slot at the end, error %v", got, err)
	}
	if got := p.do("METE.SETTLE", textIn(got, 9), "10"); !strings.HasPrefix(got, "*[settled,1,10,") {
		t.Errorf("settle: got %s", got)
	}
	if got := p.do("METE.HOLD", "60000", "user", "a"); textIn(got, 6) != "concurrency_exceeded" || !strings.HasSuffix(got, ",,]") {
		t.Errorf("second hold: got %s, want a denial without ID and slot", got)
	}
	if err := lim.ReleaseSlots(t.Context(), mete.Request{Attributes: mete.Attrs{"user": "a"}, Slot: slot}); err != nil {
		t.Error(err)
	}
	if got := p.do("METE.HOLD", "60000", "user", "a"); textIn(got, 0) != "0" {
		t.Errorf("hold after the release: got %s", got)
	}
}

// A usage settles limits of tokens and of money, which one cost cannot.
func TestHold_Usage(t *testing.T) {
	p, _, _ := start(t, `{"prices": {"version": "1", "models": {"small": {"input": 1000, "output": 4000}, "big": {"input": 100000, "output": 100000}}}, "rules": [
		{"name": "tokens", "group": "t", "limit_keys": [], "rate": "5000/1000h", "cost_source": "ai:tokens"},
		{"name": "money", "group": "m", "limit_keys": [], "rate": "5000/1000h", "cost_source": "ai:money"}]}`,
		respapi.Config{Anonymous: respapi.RoleTake})
	hold := []string{"METE.HOLD", "60000", "ai:model", "small", "ai:prompt_tokens", "500", "ai:max_tokens", "1000"}
	first, second := textIn(p.do(hold...), 9), textIn(p.do(hold...), 9)
	for _, tt := range []struct{ command, want string }{
		{"METE.SETTLE " + first + " 500", "-ERR mete: invalid hold: it has limits of tokens and of money"},
		{"METE.SETTLE " + first + " USAGE", "-ERR syntax error; write METE.SETTLE id cost, or"},
		{"METE.SETTLE " + first + " USAGE input", "-ERR syntax error"},
		{"METE.SETTLE " + first + " 5 USAGE input 4", "-ERR syntax error"},
		{"METE.SETTLE " + first + " MODEL small", "-ERR syntax error"},
		{"METE.SETTLE " + first + " USAGE inputs 4", "-ERR usage: unknown class \"inputs\": write input, cached"},
		{"METE.SETTLE " + first + " USAGE input -4", "-ERR usage: input is -4: must be between 0 and 1000000000"},
		{"METE.SETTLE " + first + " USAGE input 4 input 5", "-ERR usage: class \"input\" is there twice"},
		{"METE.SETTLE " + first + " USAGE input 400 output 100", "*[settled,1,,"},
		{"METE.SETTLE " + first + " USAGE input 4", "*[settled,0,,"},
		{"METE.SETTLE " + second + " model big usage input 400 output 100", "*[settled,1,,"},
		{"METE.PEEK ai:model small ai:prompt_tokens 1 ai:max_tokens 1", "*[0,5000,4000,"},
	} {
		if got := p.do(strings.Fields(tt.command)...); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: got %s, want %s…", tt.command, got, tt.want)
		}
	}
}
