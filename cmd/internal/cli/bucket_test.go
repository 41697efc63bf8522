// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// bucketServer returns the URL of a server for administrators.
func bucketServer(t *testing.T) string {
	t.Helper()
	m, err := policy.Load([]byte(`{"rules": [
		{"name": "free", "group": "1", "limit_keys": ["query:user"], "algorithm_config": {"rate": "1/1d", "burst": 5}},
		{"name": "slow", "group": "2", "mode": "shadow", "limit_keys": ["query:user"], "algorithm": "leaky_bucket", "algorithm_config": {"rate": "1/1d", "queue": 3}}],
		"overrides": [{"id": "gone", "action": "block", "key": "free:user=eve", "reason": "scrapes \u202e a lot", "author": "lee", "expires_at": "2099-01-01T00:00:00Z"},
		{"id": "more", "action": "limit", "key": "free:user=vip", "algorithm_config": {"rate": "1/1d", "burst": 50}, "reason": "pays", "author": "lee", "expires_at": "2099-01-01T00:00:00Z"}]}`),
		policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := mete.New(store, m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(limiter, httpapi.Config{Admin: true, Role: func(r *http.Request) httpapi.Role { return httpapi.RoleConfigure }})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(api)
	t.Cleanup(s.Close)
	return s.URL
}

func TestByKey(t *testing.T) {
	url := bucketServer(t)
	const key = "free:user=al'ice" // which a shell must not read
	wantRun(t, 0, `free:user=al'ice\n  5 of 5 left, full\n  limit free, token_bucket: capacity 5, refill 1/24h0m0s\n`, "", "peek", "--server", url, "--key", key)
	wantRun(t, 0, `took 3.25 of 3.25\nfree:user=al'ice\n  1.75 of 5 left, full again in .*`, "", "take", "--server", url, "--key", key, "--cost", "3.25")
	wantRun(t, 0, `took 1.75\d* of 100\n.*  0 of 5 left, full again in .*; a request of 1 passes in .*`, "", "take", "--server", url, "--key", key, "--cost", "100", "--reason", "r")
	wantRun(t, 1, `.*0 of 5 left.*`, "", "peek", "--server", url, "--key", key)
	wantRun(t, 1, `took 0 of 1\n.*`, "", "take", "--server", url, "--key", key, "--cost", "1")
	wantRun(t, 0, `full: (5|4\.99\d+) of 5 were missing\nundo it with: mete take --key 'free:user=al'\\''ice' --cost (5|4\.99\d+)\n`, "", "reset", "--server", url, "--key", key, "--reason", "by mistake")
	wantRun(t, 0, `full: 0 of 5 were missing\n`, "", "reset", "--server", url, "--key", key, "--reason", "again")
	wantRun(t, 0, `\{"at":.*"remaining":5,.*\}\n`, "", "peek", "--server", url, "--key", key, "--format", "json")

	wantRun(t, 1, `.*blocked by override gone: scrapes \\u202e a lot\n`, "", "peek", "--server", url, "--key", "free:user=eve")
	wantRun(t, 0, `.*50 of 50 left.*another limit by override more: pays\n`, "", "peek", "--server", url, "--key", "free:user=vip")
	wantRun(t, 0, `took 2.5 of 2.5\n.*1.5 of 4 left, full again in .*; 1.5 owed\n.*queue 3; mode shadow, for this key in shadow\n`, "", "take", "--server", url, "--key", "slow:user=a", "--cost", "2.5")

	wantRun(t, 4, "", `mete peek: .* rejects the request: no bucket has this key: the policy has no limit named "fre"; did you mean "free"\?\n`, "peek", "--server", url, "--key", "fre:user=a")
	for _, wrong := range []struct{ args, want string }{
		{"peek --key k path=/", "exclude each other"},
		{"peek --key k --cost 1", "--cost and --key exclude each other"},
		{"peek --key k --max-wait 1s", "--max-wait and --key exclude each other"},
		{"take --key k", "the number of tokens is required: --cost TOKENS"},
		{"take --key k --cost 1 --id x", "--id and --key exclude each other"},
		{"take --reason x path=/", "--reason requires --key"},
		{"reset --key k", "a reason is required for the audit trail: --reason WHY"},
		{"reset --key k --reason r --cost 1", "unknown flag --cost"},
		{"reset path=/ --cost 5", "unknown flag --cost"},
		{"refund --key k", "unknown flag --key"},
	} {
		if stdout, stderr, code := run(t, strings.Fields(wrong.args)...); code != 2 || stdout != "" || !strings.Contains(stderr, wrong.want) {
			t.Errorf("mete %s: code %d, %q, %q; want 2 and %q", wrong.args, code, stdout, stderr, wrong.want)
		}
	}
	wantRun(t, 3, "", `mete peek: http://127.0.0.1:1 does not answer: .*`, "peek", "--server", "http://127.0.0.1:1", "--key", key)
}
