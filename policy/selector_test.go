// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

// bundle loads policies, each a spec in which @ is a limit.
func bundle(t testing.TB, specs ...string) (*policy.Matcher, error) {
	t.Helper()
	var entries []string
	for i, spec := range specs {
		entries = append(entries, fmt.Sprintf(`{"id": "p%d", "spec": {%s}}`, i+1, strings.ReplaceAll(spec, "@", `"algorithm_config": {"rps": 1, "burst": 10}`)))
	}
	return policy.Load([]byte(`{"policies": [`+strings.Join(entries, ",")+`]}`), policy.Options{HashKey: []byte("test")})
}

func TestSelector(t *testing.T) {
	for _, tc := range []struct {
		selector string
		attrs    policy.Map
		want     bool
	}{
		{`{"pathExact": "/v1/chat"}`, policy.Map{"path": "/v1/chat"}, true},
		{`{"pathExact": "/v1/chat"}`, policy.Map{"path": "/v1/chat/"}, false},
		{`{"pathExact": "/v1/chat"}`, policy.Map{"path": "/v1/chat/x"}, false},
		{`{"pathExact": "/v1/chat"}`, policy.Map{}, false},
		{`{"pathExact": ["/a", "/b"]}`, policy.Map{"path": "/b"}, true},
		{`{"pathPrefix": "/v1"}`, policy.Map{"path": "/v1"}, true},
		{`{"pathPrefix": "/v1"}`, policy.Map{"path": "/v1/"}, true},
		{`{"pathPrefix": "/v1"}`, policy.Map{"path": "/v1/x"}, true},
		{`{"pathPrefix": "/v1"}`, policy.Map{"path": "/v1x"}, false},
		{`{"pathPrefix": "/v1/"}`, policy.Map{"path": "/v1"}, false},
		{`{"pathPrefix": "/v1/"}`, policy.Map{"path": "/v1/x"}, true},
		{`{"pathPrefix": "/"}`, policy.Map{"path": "/"}, true},
		{`{"pathPrefix": "/"}`, policy.Map{"path": "/x"}, true},
		{`{"pathPrefix": ["/a", "/b/"]}`, policy.Map{"path": "/a"}, true},
		{`{"pathPrefix": ["/a", "/b/"]}`, policy.Map{"path": "/b"}, false},
		{`{"pathExact": "/b", "pathPrefix": "/a"}`, policy.Map{"path": "/b"}, true},
		{`{"pathExact": "/b", "pathPrefix": "/a"}`, policy.Map{"path": "/a/x"}, true},
		{`{"pathExact": "/b", "pathPrefix": "/a"}`, policy.Map{"path": "/b/x"}, false},
		{`{"methods": ["get", "POST"]}`, policy.Map{"method": "GET"}, true},
		{`{"methods": "POST"}`, policy.Map{"method": "GET"}, false},
		{`{"hosts": ["API.example.com"]}`, policy.Map{"host": "api.example.com"}, true},
		{`{"hosts": ["api.example.com"]}`, policy.Map{"host": "example.com"}, false},
		{`{"hosts": "*.example.com"}`, policy.Map{"host": "api.example.com"}, true},
		{`{"hosts": ["*.example.org", "*.example.com"]}`, policy.Map{"host": "example.com"}, false},
		{`{"hosts": ["h"], "pathPrefix": "/a", "methods": ["PUT"]}`, policy.Map{"host": "h", "path": "/a", "method": "PUT"}, true},
		{`{"hosts": ["h"], "pathPrefix": "/a", "methods": ["PUT"]}`, policy.Map{"host": "h", "path": "/a", "method": "GET"}, false},
	} {
		m, err := bundle(t, `"selector": `+tc.selector+`, "rules": [{"name": "r", "limit_keys": [], @}]`)
		if err != nil {
			t.Errorf("%s: %v", tc.selector, err)
			continue
		}
		if got, _ := names(t, m, tc.attrs); (len(got) > 0) != tc.want {
			t.Errorf("%s, %v: rules %v, want one: %t", tc.selector, tc.attrs, got, tc.want)
		}
	}
}

// A selector narrows only the rules of its own policy.
func TestSelector_AndMatch(t *testing.T) {
	m, err := bundle(t,
		`"selector": {"pathPrefix": "/v1"}, "rules": [{"name": "deep", "limit_keys": [], "match": {"path": "/v1/x*"}, @}, {"name": "v1", "limit_keys": [], @}]`,
		`"rules": [{"name": "all", "limit_keys": [], @}]`)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/v1/xy": "[deep all]", "/v1/y": "[v1 all]", "/x": "[all]"} {
		if got, _ := names(t, m, policy.Map{"path": path}); fmt.Sprint(got) != want {
			t.Errorf("%s: rules %v, want %s", path, got, want)
		}
	}
	_, err = bundle(t, `"selector": {"pathPrefix": "/v1"}, "rules": [{"name": "r", "limit_keys": [], "match": {"path": "/v2*"}, @}]`)
	if err == nil || !strings.Contains(err.Error(), "can never match") {
		t.Errorf("a rule that its selector excludes: error %v", err)
	}
}

func TestFallback(t *testing.T) {
	m, err := bundle(t,
		`"selector": {"pathPrefix": "/v1"}, "rules": [
			{"name": "gold", "limit_keys": ["jwt:sub"], "match": {"jwt:plan": "gold"}, @},
			{"name": "trial", "limit_keys": ["jwt:sub"], "mode": "shadow", @}], "fallback_limit": {"limit_keys": ["ip:address"], @}`,
		`"fallback_limit": {"name": "rest", @}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ path, plan, want string }{
		{"/v1", "gold", "[gold rest]"}, {"/v1", "free", "[trial p1/fallback rest]"}, {"/v1", "", "[p1/fallback rest]"}, {"/v2", "gold", "[rest]"},
	} {
		attrs := policy.Map{"path": tc.path, "ip:address": "192.0.2.1"}
		if tc.plan != "" {
			attrs["jwt:plan"], attrs["jwt:sub"] = tc.plan, "ada"
		}
		if got, _ := names(t, m, attrs); fmt.Sprint(got) != tc.want {
			t.Errorf("%v: rules %v, want %s", attrs, got, tc.want)
		}
	}
	// As if it were alone: of one policy that is a file, its name is short.
	m, err = policy.Load([]byte(`{"fallback_limit": {"algorithm_config": {"rps": 1, "burst": 1}}}`), policy.Options{})
	if err != nil || m.Rules()[0].Name != "fallback" {
		t.Errorf("a policy of a fallback_limit alone: %v", err)
	}
	for _, bad := range []string{`"fallback_limit": 5`, `"fallback_limit": {}`, `"fallback_limit": {"match": {"path": "/"}, @}`, `"fallback_limit": {"group": "g", @}`,
		`"rules": [{"name": "p1/fallback", "limit_keys": [], @}], "fallback_limit": {@}`} {
		if _, err := bundle(t, bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
