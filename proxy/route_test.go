// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/proxy"
	"github.com/metehq/mete/storetest"
)

// upstreamsOf has a server for each name that answers with it, and what it was asked.
func upstreamsOf(t *testing.T, names ...string) (all []proxy.Upstream) {
	t.Helper()
	for _, name := range names {
		u, err := url.Parse(serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, name+" "+r.RequestURI) }))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, proxy.Upstream{Name: name, Servers: []*url.URL{u}})
	}
	return all
}

// routed serves a proxy with routes, and returns its address.
func routed(t *testing.T, mw *httplimit.Middleware, config proxy.Config, upstreams []proxy.Upstream, routes ...proxy.Route) string {
	t.Helper()
	p, err := proxy.NewRouted(upstreams, routes, mw, config)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p)
	t.Cleanup(func() { front.Close(); p.Close() })
	return front.Listener.Addr().String()
}

func TestRoutes_TheMostSpecificHolds(t *testing.T) {
	front := routed(t, middleware(t, 1000, httplimit.Config{}), proxy.Config{},
		upstreamsOf(t, "site", "api", "v1", "admin", "wild", "deep", "img"),
		proxy.Route{Upstream: "site"},
		proxy.Route{Path: "/img/", Upstream: "img"},
		proxy.Route{Hosts: []string{"API.example.com"}, Upstream: "api"},
		proxy.Route{Hosts: []string{"api.example.com", "other.example"}, Path: "/v1", Upstream: "v1"},
		proxy.Route{Hosts: []string{"api.example.com"}, Path: "/v1/admin", Upstream: "admin"},
		proxy.Route{Hosts: []string{"*.example.com"}, Upstream: "wild"},
		proxy.Route{Hosts: []string{"*.deep.example.com", "[2001:db8::1]"}, Path: "/x", Upstream: "deep"})
	for _, tt := range []struct{ host, target, want string }{
		{"a.test", "/", "site /"},
		{"a.test", "/v1", "site /v1"},
		{"a.test", "/img", "img /img"},
		{"a.test", "/img/a", "img /img/a"},
		{"a.test", "/image", "site /image"},
		{"api.example.com", "/", "api /"},
		{"api.example.com", "/v1", "v1 /v1"},
		{"api.example.com", "/v1/", "v1 /v1/"},
		{"api.example.com", "/v1x", "api /v1x"},
		{"api.example.com", "/V1", "api /V1"},
		{"api.example.com", "/v1/admin/a/b", "admin /v1/admin/a/b"},
		{"api.example.com", "/v1/adminx", "v1 /v1/adminx"},
		{"api.example.com", "/img/a", "api /img/a"}, // the host comes first
		{"example.com", "/", "site /"},
		{"www.example.com", "/", "wild /"},
		{"a.b.example.com", "/v1", "wild /v1"},
		{"a.deep.example.com", "/x/y", "deep /x/y"},
		{"a.deep.example.com", "/y", "wild /y"},
		{"deep.example.com", "/x", "wild /x"},
		{"[2001:DB8::0:1]:8080", "/x", "deep /x"},
		{"[2001:db8::1]", "/y", "site /y"},
		{"other.example", "/v2", "site /v2"},
		{strings.Repeat("a.", 200) + "example.com", "/", "site /"}, // no name is so long

		// However it is spelled, it is the route of what rules see.
		{"API.Example.COM:8080", "/v1", "v1 /v1"},
		{"api.example.com.", "/v1", "v1 /v1"},
		{"api.example.com", "//v1///admin", "admin /v1/admin"},
		{"api.example.com", "/%76%31/adm%69n", "admin /%76%31/adm%69n"},
		{"api.example.com", "/v1%2Fadmin", "admin /v1%2Fadmin"},
		{"api.example.com", "/v1;a=b/admin;c", "admin /v1;a=b/admin;c"},
		{"api.example.com", `/v1%5Cadmin`, `admin /v1%5Cadmin`},
		{"api.example.com", "/v1/../v1/./admin", "admin /v1/admin"},
		{"api.example.com", "/x/%2e%2e/v1/admin", "admin /v1/admin"},
		{"api.example.com", "/x/..;/v1/admin", "admin /v1/admin"},
		{"api.example.com", "http://www.example.com/v1/admin", "wild /v1/admin"}, // RFC 9112, 3.2.2
		{"api.example.com", "/v1/admin?x=/../y", "admin /v1/admin?x=/../y"},
	} {
		status, body := exchange(t, front, fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", tt.target, tt.host))
		if status != 200 || body != tt.want {
			t.Errorf("%s %s: got %d %q, want %q", tt.host, tt.target, status, body, tt.want)
		}
	}
	for _, host := range []string{"a/b", "api.example.com..", "[api.example.com]", "u@api.example.com"} {
		if status, body := exchange(t, front, "GET / HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n"); status != 400 {
			t.Errorf("host %q: got %d %q, want 400", host, status, body)
		}
	}
}

// A request without a route gets a 404, and the rules still count it.
func TestRoutes_None(t *testing.T) {
	front := routed(t, middleware(t, 3, httplimit.Config{}), proxy.Config{}, upstreamsOf(t, "v1"), proxy.Route{Hosts: []string{"a.test"}, Path: "/v1", Upstream: "v1"})
	for _, tt := range []struct {
		host, path string
		want       int
	}{{"a.test", "/v1", 200}, {"a.test", "/", 404}, {"b.test", "/v1", 404}, {"b.test", "/v1", 429}} {
		resp, body := get(t, "http://"+front+tt.path, "Host", tt.host)
		if tt.want == 404 {
			wantProblem(t, resp, body, 404)
		} else if resp.StatusCode != tt.want {
			t.Errorf("%s%s: got %d, want %d", tt.host, tt.path, resp.StatusCode, tt.want)
		}
	}
}

// No spelling comes to a route without its rule, nor to a rule without its route.
func TestRoutes_AgreeWithRules(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [{"name": "admin", "limit_keys": [], "match": {"path": "/admin/*", "host": "a.test"},
		"algorithm": "token_bucket", "algorithm_config": {"rate": "1/1d", "burst": 1}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(storetest.NewModel(func() bucket.Instant { return 1 }), m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := httplimit.New(lim, httplimit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	front := routed(t, mw, proxy.Config{}, upstreamsOf(t, "admin", "rest"),
		proxy.Route{Hosts: []string{"a.test"}, Path: "/admin", Upstream: "admin"}, proxy.Route{Upstream: "rest"})
	if status, body := exchange(t, front, "GET /admin/x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"); status != 200 || !strings.HasPrefix(body, "admin") {
		t.Fatalf("the one request that is allowed: got %d %q", status, body)
	}
	for _, target := range []string{"/admin/x", "//admin/x", "/%61dmin/x", "/admin%2Fx", "/a/../admin/x", "/a/%2e%2e/admin/x", "/admin;v=1/x",
		`/admin\x`, "/./admin//x", "/a/..;/admin/x", "/a/..%2Fadmin/x", "/a%2F..%2Fadmin/x", "http://a.test/admin/x", "http:/admin/x"} {
		for _, host := range []string{"a.test", "A.TEST", "a.test.", "a.test:443", "a.TEST.:1"} {
			status, body := exchange(t, front, "GET "+target+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
			if status == 200 && strings.HasPrefix(body, "admin") {
				t.Errorf("%s %s came to the server of the rule that denies it: %q", host, target, body)
			}
		}
	}
}

func TestRoutes_BodyBound(t *testing.T) {
	front := routed(t, middleware(t, 100, httplimit.Config{}), proxy.Config{MaxBodyBytes: 10}, upstreamsOf(t, "a"),
		proxy.Route{Upstream: "a"}, proxy.Route{Path: "/upload", Upstream: "a", MaxBodyBytes: 1000})
	for path, want := range map[string]int{"/": 413, "/upload": 200} {
		resp, err := http.Post("http://"+front+path, "text/plain", strings.NewReader(strings.Repeat("x", 100)))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("100 bytes to %s: got %d, want %d", path, resp.StatusCode, want)
		}
	}
}

func TestNewRouted_RefusesBadRoutes(t *testing.T) {
	mw := middleware(t, 1, httplimit.Config{})
	at := func(text string) *url.URL {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	good := []proxy.Upstream{{Name: "a", Servers: []*url.URL{at("http://h")}}}
	all := []proxy.Route{{Upstream: "a"}}
	for name, tt := range map[string]struct {
		upstreams []proxy.Upstream
		routes    []proxy.Route
		want      string
	}{
		"no route":          {good, nil, "at least one route is required"},
		"unknown upstream":  {good, []proxy.Route{{Upstream: "a"}, {Path: "/x", Upstream: "b"}}, `route 2: unknown upstream "b"`},
		"unused upstream":   {append(good[:1:1], proxy.Upstream{Name: "b", Servers: good[0].Servers}), all, `upstream "b": no route uses it`},
		"twice":             {good, []proxy.Route{{Path: "/x/", Upstream: "a"}, {Path: "/x", Upstream: "a"}}, "route 2: never matches"},
		"host twice":        {good, []proxy.Route{{Hosts: []string{"A.test", "a.test."}, Upstream: "a"}}, "route 1: never matches"},
		"unreachable":       {good, []proxy.Route{{Path: "/x//y", Upstream: "a"}}, "matches no request"},
		"dots":              {good, []proxy.Route{{Path: "/x/../y", Upstream: "a"}}, "matches no request"},
		"params":            {good, []proxy.Route{{Path: "/x;y", Upstream: "a"}}, "matches no request"},
		"relative":          {good, []proxy.Route{{Path: "x", Upstream: "a"}}, "matches no request"},
		"pattern":           {good, []proxy.Route{{Path: "/x/*", Upstream: "a"}}, "must not contain"},
		"host with a port":  {good, []proxy.Route{{Hosts: []string{"a.test:80"}, Upstream: "a"}}, "without a port"},
		"host with a star":  {good, []proxy.Route{{Hosts: []string{"a.*.test"}, Upstream: "a"}}, "must be a name"},
		"empty host":        {good, []proxy.Route{{Hosts: []string{""}, Upstream: "a"}}, "must be a name"},
		"negative bound":    {good, []proxy.Route{{Upstream: "a", MaxBodyBytes: -1}}, "must not be negative"},
		"name taken":        {append(good[:1:1], good[0]), all, "duplicate name"},
		"no name":           {[]proxy.Upstream{{Servers: good[0].Servers}}, []proxy.Route{{}}, "name is required"},
		"no server":         {[]proxy.Upstream{{Name: "a"}}, all, "0 servers"},
		"server twice":      {[]proxy.Upstream{{Name: "a", Servers: []*url.URL{at("http://h"), at("https://h/x")}}}, all, "duplicate server"},
		"too many":          {[]proxy.Upstream{{Name: "a", Servers: make([]*url.URL, 65)}}, all, "65 servers"},
		"health, no path":   {[]proxy.Upstream{{Name: "a", Servers: good[0].Servers, Health: proxy.Health{Down: 1}}}, all, "path is required"},
		"health path":       {[]proxy.Upstream{{Name: "a", Servers: good[0].Servers, Health: proxy.Health{Path: "x"}}}, all, "must be a path such as"},
		"health interval":   {[]proxy.Upstream{{Name: "a", Servers: good[0].Servers, Health: proxy.Health{Path: "/", Interval: 1}}}, all, "interval"},
		"negative timeout":  {[]proxy.Upstream{{Name: "a", Servers: good[0].Servers, BodyTimeout: -1}}, all, "must not be negative"},
		"too many routes":   {good, make([]proxy.Route, 1001), "1001 routes"},
		"upgrade of spaces": {good, all, "must be the name of a protocol"},
	} {
		config := proxy.Config{}
		if name == "upgrade of spaces" {
			config.Upgrades = []string{"web socket"}
		}
		_, err := proxy.NewRouted(tt.upstreams, tt.routes, mw, config)
		if err == nil || !strings.HasPrefix(err.Error(), "proxy: new: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want one that says %q", name, err, tt.want)
		}
	}
	if _, err := proxy.NewRouted(good, all, mw, proxy.Config{}); err != nil {
		t.Errorf("a good one: %v", err)
	}
}
