// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/metehq/mete/httpapi"
)

// The role read sees overrides, but not their clients.
func TestOverrides_AreMasked(t *testing.T) {
	role := httpapi.RoleConfigure
	api := withOverrides(t, `{"rules": [{"name": "free", "limit_keys": ["header:x-team"], "slot_by": "header:x-team", "algorithm_config": {"rps": 1, "burst": 1}}]}`, nil, func(*http.Request) httpapi.Role { return role })
	for _, body := range []string{
		`{"id":"a","action":"block","match":{"header:x-api-key":"canary-key","ip:address":["192.0.2.77","198.51.100.0/25"],"path":"/login"},"reason":"r","author":"kim","expires_at":"2099-01-01T00:00:00Z"}`,
		`{"id":"b","action":"allow","key":"free:x-team=canary","reason":"r","author":"kim","expires_at":"2099-01-01T00:00:00Z"}`,
		`{"id":"t","action":"allow","key":"{canary}free:x-team=canary","reason":"r","author":"kim","expires_at":"2099-01-01T00:00:00Z"}`,
		`{"id":"c","action":"block","match":{"header:x-team":{"not":"canary-team"}},"reason":"r","author":"kim","expires_at":"2099-01-01T00:00:00Z"}`,
	} {
		if got := do(api, http.MethodPut, "/v1/overrides", body); got.Code != http.StatusOK {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
	}
	secrets := []string{"canary", "192.0.2.77", "100.0/25"}
	all := do(api, http.MethodGet, "/v1/overrides?audit=9", "").Body.String()
	for _, secret := range secrets {
		if !strings.Contains(all, secret) {
			t.Errorf("who may change overrides does not see %s in %s", secret, all)
		}
	}
	role = httpapi.RoleRead
	masked := do(api, http.MethodGet, "/v1/overrides?audit=9", "").Body.String()
	for _, secret := range secrets {
		if strings.Contains(masked, secret) {
			t.Errorf("who may only look sees %s in %s", secret, masked)
		}
	}
	for _, kept := range []string{`"header:x-api-key":"ca…"`, `["192.0.2.0/24","198.51.100.0/24"]`, `"path":"/login"`, `"key":"free:…"`, `{"not":"ca…"}`, `"author":"kim"`} {
		if !strings.Contains(masked, kept) {
			t.Errorf("%s is not in %s", kept, masked)
		}
	}
	role = httpapi.RoleConfigure
	if again := do(api, http.MethodGet, "/v1/overrides?audit=9", "").Body.String(); again != all {
		t.Errorf("masking has changed what there is:\n%s\nwas\n%s", again, all)
	}
}
