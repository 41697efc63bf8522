// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/httpapi"
)

// Overrides for all requests require the role configure, for every author.
func TestRole_OverridesForAllRequests(t *testing.T) {
	role := httpapi.RoleNone
	h := withOverrides(t, perKey, nil, func(*http.Request) httpapi.Role { return role })
	for _, action := range []string{"break_glass", "shadow"} {
		body := `{"id":"x","action":"` + action + `","reason":"r","author":"kim","expires_at":"2023-11-14T22:14:20Z"}`
		for _, tt := range []struct {
			role         httpapi.Role
			method, path string
			want         int
		}{
			{httpapi.RoleRead, "PUT", "/v1/overrides", 403},
			{httpapi.RoleOperate, "PUT", "/v1/overrides", 403},
			{httpapi.RoleConfigure, "PUT", "/v1/overrides", 200},
			{httpapi.RoleOperate, "DELETE", "/v1/overrides/x?author=a&reason=r", 403},
			{httpapi.RoleConfigure, "DELETE", "/v1/overrides/x?author=a&reason=r", 200},
		} {
			role = tt.role
			if w := do(h, tt.method, tt.path, body, "Authorization", "Bearer x"); w.Code != tt.want {
				t.Errorf("%s of %s as %v: %d %s, want %d", tt.method, action, tt.role, w.Code, w.Body, tt.want)
			}
		}
	}
}

// The role operate makes and ends overrides of clients that they name. One that reaches
// further can switch the limiter off, or block everybody, whatever its action.
func TestRole_OverridesWithoutClients(t *testing.T) {
	role := httpapi.RoleNone
	h := withOverrides(t, perKey, nil, func(*http.Request) httpapi.Role { return role })
	const until = `"reason":"r","author":"kim","expires_at":"2023-11-14T22:14:20Z"}`
	const limit = `"action":"limit","algorithm":"token_bucket","algorithm_config":{"rps":1000,"burst":1000},`
	put := func(body string) int { return do(h, "PUT", "/v1/overrides", body, "Authorization", "Bearer x").Code }
	remove := func() int {
		return do(h, "DELETE", "/v1/overrides/x?author=a&reason=r", "", "Authorization", "Bearer x").Code
	}
	const named = `{"id":"x","action":"block","match":{"header:x-api-key":"k1"},` + until
	for _, wide := range []string{
		`"action":"allow","match":{"header:x-nobody":{"not":"x"}},`,
		`"action":"block","match":{"header:x-api-key":{"not":"x"}},`,
		`"action":"allow","match":{"path":"/*"},`,
		`"action":"block","match":{"method":"*"},`,
		`"action":"block","match":{"ip:address":"0.0.0.0/0"},`,
		`"action":"allow","match":{"ip:address":["0.0.0.0/1","128.0.0.0/1"]},`,
		`"action":"block","match":{"header:x-api-key":"k*"},`,
		`"action":"allow","key":"all:",`,
		limit + `"rules":["free"],"match":{},`,
		limit + `"rules":["all"],`,
	} {
		body := `{"id":"x",` + wide + until
		role = httpapi.RoleOperate
		if got := put(body); got != 403 {
			t.Errorf("%s made by the role operate: %d, want 403", wide, got)
		}
		role = httpapi.RoleConfigure
		if got := put(body); got != 200 {
			t.Fatalf("%s made by the role configure: %d, want 200", wide, got)
		}
		role = httpapi.RoleOperate
		if got := put(named); got != 403 {
			t.Errorf("%s replaced by the role operate: %d, want 403", wide, got)
		}
		if got := remove(); got != 403 {
			t.Errorf("%s removed by the role operate: %d, want 403", wide, got)
		}
		role = httpapi.RoleConfigure
		if got := remove(); got != 200 {
			t.Fatalf("%s removed by the role configure: %d, want 200", wide, got)
		}
	}
	role = httpapi.RoleOperate
	for _, narrow := range []string{
		named,
		`{"id":"x","action":"allow","match":{"ip:address":"192.0.2.0/24","path":"/*"},` + until,
		`{"id":"x","action":"block","key":"free:x-api-key=~_F9FYculp30hRZvEw8dtSw",` + until,
		`{"id":"x",` + limit + `"rules":["free"],"match":{"header:x-api-key":["k1","k2"]},` + until,
	} {
		if made, removed := put(narrow), remove(); made != 200 || removed != 200 {
			t.Errorf("%s by the role operate: made %d, removed %d, want 200", narrow, made, removed)
		}
	}
	w := do(h, "PUT", "/v1/overrides", strings.Replace(named, "header:x-api-key", "heder:x-api-key", 1), "Authorization", "Bearer x")
	if w.Code != 422 || !strings.Contains(w.Body.String(), "/match/heder:x-api-key") {
		t.Errorf("a mistake of the role operate: %d %s, want 422 with its place", w.Code, w.Body)
	}
}

func TestReload(t *testing.T) {
	var fault error
	reloads := 0
	h, _ := newAPI(t, perKey, httpapi.Config{Admin: true, Reload: func(context.Context) error {
		reloads++
		return fault
	}})
	for _, tt := range []struct {
		fault   error
		path    string
		headers []string
		status  int
		want    string
		reloads int
	}{
		{nil, "/v1/reload", nil, 200, `{"policy_version":0,"rules":2}`, 1},
		{errors.New("line 3 is wrong"), "/v1/reload", nil, 422, "the old policy remains active: line 3 is wrong", 1},
		{context.Canceled, "/v1/reload", nil, 503, "the request timed out", 1},
		{context.DeadlineExceeded, "/v1/reload", nil, 503, "the request timed out", 1},
		{nil, "/v1/reload?force=1", nil, 400, `unknown parameter \"force\"`, 0},
		{nil, "/v1/reload", []string{"Sec-Fetch-Site", "cross-site"}, 403, "other origins", 0},
		{nil, "/v1/reload", []string{"Content-Type", "text/plain"}, 415, "must be JSON", 0},
	} {
		fault, reloads = tt.fault, 0
		if w := do(h, "POST", tt.path, "", tt.headers...); w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) || reloads != tt.reloads {
			t.Errorf("POST %s %q, where reloading says %v: %d %s after %d reloads; want %d with %q after %d",
				tt.path, tt.headers, tt.fault, w.Code, w.Body, reloads, tt.status, tt.want, tt.reloads)
		}
	}
	if w := do(h, "GET", "/v1/reload", ""); w.Code != 405 {
		t.Errorf("GET: %d, want 405", w.Code)
	}
}

// The role read cannot confirm a guessed key: neither an explanation nor a bucket shows a hash.
func TestRole_ReadCannotConfirmHashes(t *testing.T) {
	const rules = `{"rules": [{"name": "never", "limit_keys": ["header:x-api-key", "path"], "slot_by": "header:x-api-key", "algorithm_config": {"rps": 1, "burst": 1}}]}`
	h, _ := topAPI(t, rules)
	const request = `{"header:x-api-key":"cust-17","path":"/v1/orders"}`
	take(t, h, 3, request)
	ask := func(role, method, path, body string) string {
		w := do(h, method, path, body, "Authorization", "Bearer "+role)
		if w.Code != 200 {
			t.Fatalf("%s %s as %s: %d %s", method, path, role, w.Code, w.Body)
		}
		return w.Body.String()
	}
	var top api.Top
	if err := json.Unmarshal([]byte(ask("operate", "GET", "/v1/top", "")), &top); err != nil || len(top.Keys) != 1 {
		t.Fatalf("%+v, %v", top, err)
	}
	hash := top.Keys[0].Parts[0].Value
	if !strings.HasPrefix(hash, "~") || len(hash) < 16 {
		t.Fatalf("the hash of a key is %q", hash)
	}
	if err := json.Unmarshal([]byte(ask("read", "GET", "/v1/top", "")), &top); err != nil || top.Keys[0].Parts[0] != (api.KeyPart{Name: "header:x-api-key", Value: "~…", Hashed: true}) {
		t.Fatalf("%+v, %v; want a hash of which nothing is left", top, err)
	}
	explanation := `{"attributes":` + request + `}`
	if operate := ask("operate", "POST", "/v1/explain", explanation); !strings.Contains(operate, hash) {
		t.Errorf("who may see keys does not see %s in %s", hash, operate)
	}
	for _, answer := range []string{
		ask("read", "POST", "/v1/explain", explanation),
		ask("read", "GET", "/v1/top", ""),
		ask("read", "GET", "/v1/bucket?key="+url.QueryEscape(top.Keys[0].Key), ""),
	} {
		if strings.Contains(answer, hash[1:]) {
			t.Errorf("who may only look sees the hash %s in %s", hash, answer)
		}
	}
	var x api.Explanation
	if err := json.Unmarshal([]byte(ask("read", "POST", "/v1/explain", explanation)), &x); err != nil || x.Rules[0].Limits[0].Key != "{~…}never:x-api-key=~…|path=/v1/orders" {
		t.Errorf("%+v, %v; want a key with nothing of the hash, and with what the request has", x, err)
	}
	if key := x.Rules[0].Limits[0].Key; strings.Contains(key, strings.TrimPrefix(top.Keys[0].Key, "never:")) {
		t.Errorf("the key of an explanation, %s, is that of the top keys", key)
	}
}

// For the role read, an explanation reveals neither the clients of an override nor the secrets of a match.
func TestRole_ReadSeesNoOtherClients(t *testing.T) {
	role := httpapi.RoleConfigure
	h := withOverrides(t, `{"rules": [{"name": "paid", "limit_keys": ["ip:address"], "match": {"header:x-api-key": "canary-wanted"}, "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "free", "limit_keys": ["tenant"], "algorithm_config": {"rps": 1, "burst": 1}}]}`, nil, func(*http.Request) httpapi.Role { return role })
	const until = `"reason":"r","author":"kim","expires_at":"2099-01-01T00:00:00Z"}`
	for _, body := range []string{
		`{"id":"a","action":"allow","match":{"tenant":["guess","canary-other"]},` + until,
		`{"id":"l","action":"limit","rules":["free"],"match":{"tenant":["guessed","canary-third"]},"algorithm":"token_bucket","algorithm_config":{"rps":1,"burst":2},` + until,
	} {
		if w := do(h, "PUT", "/v1/overrides", body); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	for _, request := range []string{`{"tenant":"guess"}`, `{"tenant":"guessed","ip:address":"192.0.2.1","header:x-api-key":"mine"}`} {
		for have, want := range map[httpapi.Role]bool{httpapi.RoleRead: false, httpapi.RoleOperate: true} {
			role = have
			w := post(h, "/v1/explain", `{"attributes":`+request+`}`)
			if got := strings.Contains(w.Body.String(), "canary"); w.Code != 200 || got != want {
				t.Errorf("%s explained to the role %v: %d %s, want others in it: %v", request, have, w.Code, w.Body, want)
			}
		}
	}
}
