// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/metehq/mete/api"
)

const perUser = `{"rules": [
	{"name": "free", "limit_keys": ["query:user"], "algorithm_config": {"rps": 10, "burst": 2}},
	{"name": "other", "group": "o", "limit_keys": ["query:user"], "algorithm_config": {"rps": 10, "burst": 2}}]}`

// A caller that names a key gets the overrides that match it, and their changes.
func TestOverrides_AboutAKey(t *testing.T) {
	h := withOverrides(t, perUser, nil, roleOfToken)
	for _, body := range []string{
		`"id":"k","action":"block","key":"free:user=alice"`,
		`"id":"m","action":"block","match":{"query:user":["alice","bob"]}`,
		`"id":"a","action":"shadow"`,
		`"id":"x","action":"block","key":"free:user=bob"`,
		`"id":"y","action":"block","match":{"query:user":"bob"}`,
		`"id":"z","action":"block","key":"other:user=alice"`,
		`"id":"n","action":"block","match":{"query:user":12345678901}`,
	} {
		body = `{` + body + `,"reason":"r","author":"kim","expires_at":"2023-11-14T22:14:20Z"}`
		if w := do(h, "PUT", "/v1/overrides", body, "Authorization", "Bearer configure"); w.Code != 200 {
			t.Fatalf("PUT %s: %d %s", body, w.Code, w.Body)
		}
	}
	for _, tt := range []struct{ query, about, audit string }{
		{"?key=free:user=alice", "k:key m:match a:all", "k m a"},
		{"?key=free:user%3Dalice&audit=2", "k:key m:match a:all", "m a"},
		{"?key=free:user=alice&audit=0", "k:key m:match a:all", ""},
		{"?key=other:user=bob", "m:match a:all y:match", "m a y"},
		{"?key=free:user=12345678901", "a:all n:match", "a n"},
		{"", "k: m: a: x: y: z: n:", "k m a x y z n"},
	} {
		w := do(h, "GET", "/v1/overrides"+tt.query, "", "Authorization", "Bearer operate")
		var list api.Overrides
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != 200 {
			t.Fatalf("%s: %d %s", tt.query, w.Code, w.Body)
		}
		var about, audit []string
		for _, o := range list.Overrides {
			about = append(about, o.ID+":"+o.About)
		}
		for _, e := range list.Audit {
			audit = append(audit, e.Override)
		}
		if strings.Join(about, " ") != tt.about || strings.Join(audit, " ") != tt.audit {
			t.Errorf("%s: got %q and %q, want %q and %q", tt.query, about, audit, tt.about, tt.audit)
		}
	}
	for _, path := range []string{"/v1/overrides?key=free:user=alice", "/v1/activity?key=free:user=alice"} {
		if w := do(h, "GET", path, "", "Authorization", "Bearer read"); w.Code != 403 && w.Code != 404 || strings.Contains(w.Body.String(), "alice") {
			t.Errorf("%s by role read: %d %s, want no answer about the key", path, w.Code, w.Body)
		}
	}
	if w := do(h, "GET", "/v1/overrides?key=free:~0123456789ab", "", "Authorization", "Bearer operate"); w.Code != 404 {
		t.Errorf("unknown mask: %d %s, want 404", w.Code, w.Body)
	}
}
