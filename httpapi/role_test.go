// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/metehq/mete/httpapi"
)

// What holds for all requests is for those who configure, whoever made it.
func TestRole_OverridesOfAll(t *testing.T) {
	role := httpapi.NoRole
	api := withOverrides(t, perKey, nil, func(*http.Request) httpapi.Role { return role })
	for _, action := range []string{"break_glass", "shadow"} {
		body := `{"id":"x","action":"` + action + `","reason":"r","author":"kim","expires_at":"2023-11-14T22:14:20Z"}`
		for _, tt := range []struct {
			role         httpapi.Role
			method, path string
			want         int
		}{
			{httpapi.Read, "PUT", "/v1/overrides", 403},
			{httpapi.Operate, "PUT", "/v1/overrides", 403},
			{httpapi.Configure, "PUT", "/v1/overrides", 200},
			{httpapi.Operate, "DELETE", "/v1/overrides/x?author=a&reason=r", 403},
			{httpapi.Configure, "DELETE", "/v1/overrides/x?author=a&reason=r", 200},
		} {
			role = tt.role
			if w := do(api, tt.method, tt.path, body, "Authorization", "Bearer x"); w.Code != tt.want {
				t.Errorf("%s of %s as %v: %d %s, want %d", tt.method, action, tt.role, w.Code, w.Body, tt.want)
			}
		}
	}
}

func TestReload(t *testing.T) {
	var fault error
	reloads := 0
	api, _ := newAPI(t, perKey, httpapi.Config{Admin: true, Reload: func(context.Context) error {
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
		{errors.New("line 3 is wrong"), "/v1/reload", nil, 422, "the old policy stays in force: line 3 is wrong", 1},
		{context.Canceled, "/v1/reload", nil, 503, "there was no time left", 1},
		{context.DeadlineExceeded, "/v1/reload", nil, 503, "there was no time left", 1},
		{nil, "/v1/reload?force=1", nil, 400, `parameter \"force\" is unknown here`, 0},
		{nil, "/v1/reload", []string{"Sec-Fetch-Site", "cross-site"}, 403, "other origins", 0},
		{nil, "/v1/reload", []string{"Content-Type", "text/plain"}, 415, "must be JSON", 0},
	} {
		fault, reloads = tt.fault, 0
		if w := do(api, "POST", tt.path, "", tt.headers...); w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) || reloads != tt.reloads {
			t.Errorf("POST %s %q, where reloading says %v: %d %s after %d reloads; want %d with %q after %d",
				tt.path, tt.headers, tt.fault, w.Code, w.Body, reloads, tt.status, tt.want, tt.reloads)
		}
	}
	if w := do(api, "GET", "/v1/reload", ""); w.Code != 405 {
		t.Errorf("GET: %d, want 405", w.Code)
	}
}

// A hash says nothing of what it stands for, and is left as it is: so it is found again in
// an explanation.
func TestTop_LeavesHashes(t *testing.T) {
	api, _ := topAPI(t, topRules)
	take(t, api, 2, `{"header:x-api-key":"secret"}`)
	raw, masked := "", ""
	for role, to := range map[string]*string{"operate": &raw, "read": &masked} {
		w := do(api, "GET", "/v1/top?rule=never", "", "Authorization", "Bearer "+role)
		_, rest, _ := strings.Cut(w.Body.String(), `"parts":[{"name":"header:x-api-key","value":"`)
		*to, _, _ = strings.Cut(rest, `"`)
	}
	if raw != masked || !strings.HasPrefix(raw, "~") || len(raw) < 8 {
		t.Errorf("the hash of a key is %q, and %q where keys are masked; want the same", raw, masked)
	}
}
