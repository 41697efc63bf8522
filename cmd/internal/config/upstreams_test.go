// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
)

func TestLoad_Upstreams(t *testing.T) {
	path := write(t, `
upstreams:
  - name: app
    urls: [https://10.0.0.1:3000, h2c://10.0.0.2:3000/base]
    ca: ca.pem
    health: { path: /healthz, interval: 1s, down: 3 }
    timeouts: { header: 10s }
  - { name: files, urls: "https://files.internal" }
routes:
  - upstream: app
  - { hosts: [files.example, "*.files.example"], path: /v1, upstream: files, max_body_bytes: 5 }
`)
	got, err := load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Upstream{
		{Name: "app", URLs: urls("https://10.0.0.1:3000", "h2c://10.0.0.2:3000/base"), CA: filepath.Join(filepath.Dir(path), "ca.pem"),
			Health: config.Health{Path: "/healthz", Interval: time.Second, Down: 3}, Timeouts: config.UpstreamTimeouts{Header: 10 * time.Second}},
		{Name: "files", URLs: urls("https://files.internal")},
	}
	routes := []config.Route{{Upstream: "app"}, {Hosts: []string{"files.example", "*.files.example"}, Path: "/v1", Upstream: "files", MaxBodyBytes: 5}}
	if !reflect.DeepEqual(got.Upstreams, want) || !reflect.DeepEqual(got.Routes, routes) || !got.IsGateway() {
		t.Errorf("got\n%+v\n%+v\nwant\n%+v\n%+v", got.Upstreams, got.Routes, want, routes)
	}
	upstreams, to := got.UpstreamsAndRoutes()
	if len(upstreams) != 2 || upstreams[0].Servers[1].String() != "h2c://10.0.0.2:3000/base" || to[1].MaxBodyBytes != 5 {
		t.Errorf("routing: got %+v, %+v (%v)", upstreams, to, err)
	}
}

// One upstream without a route gets everything, and so does the short form.
func TestRouting_OfOne(t *testing.T) {
	for _, text := range []string{"upstream: http://h", "upstreams: [{name: app, urls: [http://h]}]"} {
		c, err := load(write(t, text), nil)
		if err != nil {
			t.Fatal(err)
		}
		upstreams, routes := c.UpstreamsAndRoutes()
		if len(upstreams) != 1 || len(routes) != 1 || routes[0].Upstream != upstreams[0].Name || routes[0].Path != "" {
			t.Errorf("%s: got %+v, %+v (%v)", text, upstreams, routes, err)
		}
	}
}

func TestLoad_UpstreamMistakes(t *testing.T) {
	const app = "upstreams: [{name: app, urls: [http://h]}]\n"
	for text, want := range map[string]string{
		app + "upstream: http://h":                                              "upstreams: excludes upstream",
		"routes: [{upstream: app}]":                                             "routes: needs upstreams",
		app + "routes: [{upstream: other}]":                                     `routes: route 1: unknown upstream "other"; upstream "app": no route uses it`,
		app + "routes: [{upstream: app, path: /x/../y}]":                        "matches no request",
		app + "routes: [{upstream: app}, {upstream: app}]":                      "route 2: never matches",
		"upstreams: [{name: a, urls: [http://h]}, {name: b, urls: [http://h]}]": "routes: at least one route is required",
		"upstreams: [{urls: [http://h]}]":                                       "upstreams[0]: upstream \"\": name is required",
		"upstreams: [{name: app}]":                                              "0 servers",
		"upstreams: [{name: app, url: http://h}]":                               "upstreams[0].url: unknown setting; did you mean urls?",
		"upstreams: [{name: app, urls: [\"http://u:secret@[\"]}]":               "upstreams[0].urls: one is not a URL",
		"upstreams: [{name: app, urls: [\"http://u:secret@h\"]}]":               "must have no user",
		"upstreams: [{name: app, urls: [http://h], health: {path: x}}]":         "health: path",
		"upstreams: [{name: app, urls: [http://h], timeouts: {body: 48h}}]":     "upstreams[0].timeouts.body: must be between",
		"upstreams: [{name: app, urls: [http://h, h2c://i], ca: x.pem}]":        "upstreams[0].ca: requires an https URL",
		"upstreams: [{name: app, urls: [http://h], timeouts: {header: 48h}}]":   "upstreams[0].timeouts.header: must be between",
		"upgrades: [\"web socket\"]":                                            "upgrades: ",
		"underscores_in_headers: on":                                            "underscores_in_headers: must be drop, pass or refuse",
		"max_delayed: 0":                                                        "max_delayed: must be between 1",
		"timeouts: { client_body: -1s }":                                        "timeouts.client_body: ",
		"timeouts: { upgraded: -1s }":                                           "timeouts.upgraded: ",
		"timeouts: { upstream_body: 48h }":                                      "timeouts.upstream_body: must be between",
		"upstream: http://h\nadaptive: { law: pid }":                            "adaptive.law: must be aimd or gradient",
		"adaptive: { law: aimd }":                                               "adaptive.law: needs an upstream",
		"upstream: http://h\nadaptive: { law: gradient, target: 1s }":           "adaptive.target: requires aimd",
		"adaptive: { floor: 0 }":                                                "adaptive.floor: must be between",
		"adaptive: { floor: NaN }":                                              "adaptive.floor: must be between",
		"adaptive: { tolerance: 0.5 }":                                          "adaptive.tolerance: must be between",
		"adaptive: { interval: 2h }":                                            "adaptive.interval: must be between",
		"adaptive: { target: 2h }":                                              "adaptive.target: must be between 0s and 1h0m0s, not 2h0m0s",
	} {
		_, err := load(write(t, text+"\n"), nil)
		var all config.Errors
		if !errors.As(err, &all) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s:\ngot error %v\nwant one that says %q", text, err, want)
		}
	}
}
