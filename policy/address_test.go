// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

// Clients behind NAT64 do not share one bucket, and a client of 6to4 has only one bucket. Rules match both by
// their IPv4 addresses.
func TestAddress_OfIPv4InIPv6(t *testing.T) {
	m := load(t, `{"name": "r", "limit_keys": ["ip:address"], "match": {"ip:address": "192.0.2.0/24"}, @}`)
	want := keyOf(t, m, policy.Map{"ip:address": "192.0.2.1"})
	for _, same := range []string{"::ffff:192.0.2.1", "64:ff9b::192.0.2.1", "2002:c000:201::1", "2002:c000:201:ffff::2"} {
		if got := keyOf(t, m, policy.Map{"ip:address": same}); got != want {
			t.Errorf("%s: got key %q, want %q", same, got, want)
		}
	}
	if got := keyOf(t, m, policy.Map{"ip:address": "64:ff9b::192.0.2.2"}); got == want {
		t.Errorf("another client behind NAT64 has the key %q, too", got)
	}
	for network, refused := range map[string]bool{
		"64:ff9b::/96": true, "2002::/16": true, "2002:c000:200::/40": true, "64:ff9b::192.0.2.1": false, "2002:c000:201::1": false, "2000::/3": false,
	} {
		_, err := policy.Load([]byte(`{"name": "r", "limit_keys": ["ip:address"], "match": {"ip:address": "`+network+`"}, "algorithm_config": {"rps": 1, "burst": 1}}`), policy.Options{})
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "identified by their IPv4 addresses") {
			t.Errorf("%s: got error %v, refused should be %v", network, err, refused)
		}
	}
}
