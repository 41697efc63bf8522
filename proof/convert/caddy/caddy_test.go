// SPDX-License-Identifier: Apache-2.0

//go:build linux

package caddy

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/convert/versus"
	"github.com/metehq/mete/proof/meted"
)

// program is the path of Caddy, which the first test builds.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mete-caddy-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "caddy")
	cmd := exec.Command("go", "build", "-ldflags=-w", "-o", path, ".")
	cmd.Dir = filepath.Join("testdata", "program")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return path, cmd.Run()
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, _ := program(); path != "" {
		os.RemoveAll(filepath.Dir(path))
	}
	meted.Clean()
	os.Exit(code)
}

// caddy is a gateway whose configuration is a file of this name.
func caddy(file string, flags ...string) versus.Gateway {
	return versus.Gateway{From: "caddy", File: file, Denial: http.StatusTooManyRequests,
		Start: func(t *testing.T, dir, file string) *proctest.Process {
			path, err := program()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(path, append([]string{"run", "--config", file}, flags...)...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
			return proctest.Start(t, cmd)
		}}
}

const options = `{
	admin off
	auto_https off
	default_bind 127.0.0.1
}
`

// site is a Caddyfile of one site with these lines.
func site(lines string) string {
	return options + ":PORT {\n" + lines + "\nreverse_proxy UPSTREAM\n}\n"
}

var cases = []versus.Case{
	{
		Name: "clients",
		Config: site(`rate_limit {
	zone client {
		key {remote_host}
		events 3
		window 1h
	}
}`),
		Send: []versus.Request{{Times: 2}, {Times: 2, Client: "127.0.0.2"}, {Times: 3}, {Times: 3, Client: "127.0.0.2"}},
	},
	{
		Name: "matchers, of a directive and of a zone",
		Config: site(`@writes {
	method POST PUT
	not path /hooks/*
}
rate_limit @writes {
	zone writes {
		key static
		events 2
		window 1h
	}
}
rate_limit /api/* {
	zone api {
		match {
			not remote_ip 127.0.0.8/29
			header X-Plan free
		}
		key {client_ip}
		events 2
		window 1h
	}
}`),
		Send: []versus.Request{
			{Times: 4}, {Method: "POST", Path: "/hooks/x", Times: 4}, {Method: "POST", Times: 2}, {Method: "PUT", Client: "127.0.0.2", Times: 2},
			{Path: "/api/x", Times: 4}, {Path: "/api/x", Header: []string{"X-Plan", "free"}, Times: 3}, {Path: "/api", Header: []string{"X-Plan", "free"}, Times: 3},
			{Path: "/api/x", Header: []string{"X-Plan", "free"}, Client: "127.0.0.9", Times: 3},
		},
	},
	{
		Name: "a key of a header, which may be missing",
		Config: site(`rate_limit {
	zone key {
		key {header.X-Api-Key}
		events 2
		window 1h
	}
}`),
		Send: []versus.Request{{Times: 3}, {Times: 3, Header: []string{"X-Api-Key", "a"}}, {Times: 3, Header: []string{"X-Api-Key", "b"}}, {Client: "127.0.0.2"}},
	},
	{
		Name: "handle blocks",
		Config: options + `:PORT {
	handle_path /api/* {
		rate_limit {
			zone export {
				match {
					path /export
				}
				key {remote_host}
				events 1
				window 1h
			}
		}
		reverse_proxy UPSTREAM
	}
	handle /static/* {
		reverse_proxy UPSTREAM
	}
	handle {
		rate_limit {
			zone rest {
				key {remote_host}-{method}
				events 2
				window 1h
			}
		}
		reverse_proxy UPSTREAM
	}
}`,
		Send: []versus.Request{
			{Path: "/api/export", Times: 2}, {Path: "/api/x", Times: 4}, {Path: "/export", Times: 1}, {Path: "/", Times: 2},
			{Path: "/static/x", Times: 3}, {Path: "/", Method: "POST", Times: 3},
		},
	},
	{
		Name: "sites, and a snippet",
		Config: options + `
(limited) {
	rate_limit {
		zone {args[0]} {
			key {remote_host}
			events {args[1]}
			window 1h
		}
	}
	reverse_proxy UPSTREAM
}
http://a.test:PORT, http://b.test:PORT {
	import limited first 2
}
http://c.test:PORT {
	import limited second 1
}
http://free.test:PORT {
	reverse_proxy UPSTREAM
}`,
		Send: []versus.Request{{Host: "a.test", Times: 1}, {Host: "b.test", Times: 2}, {Host: "c.test", Times: 2}, {Host: "free.test", Times: 4}},
	},
	{
		Name: "zones of one handler, of which Caddy charges some for a denied request",
		Config: site(`rate_limit {
	zone all {
		key static
		events 4
		window 1h
	}
	zone client {
		key {remote_host}
		events 2
		window 1h
	}
}`),
		Send: []versus.Request{{Times: 4}, {Client: "127.0.0.2", Times: 2}}, Unlike: true,
		Listed: []string{"Caddy charges the zones of a request one by one until one denies, and keeps what it charged."},
	},
	{
		Name: "a path in another case",
		Config: site(`rate_limit /api/* {
	zone api {
		key {remote_host}
		events 2
		window 1h
	}
}`),
		Send: []versus.Request{{Path: "/api/x", Times: 2}, {Path: "/API/x", Times: 2}}, Unlike: true,
		Listed: []string{"Caddy compares paths in any case."},
	},
}

func TestCaddyfile(t *testing.T) {
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			versus.Compare(t, caddy("Caddyfile"), c)
		})
	}
}

func TestJSON(t *testing.T) {
	versus.Compare(t, caddy("caddy.json"), versus.Case{
		Config: `{
	"admin": {"disabled": true},
	"apps": {"http": {"servers": {"demo": {
		"listen": ["ADDR"],
		"automatic_https": {"disable": true},
		"routes": [
			{"handle": [{"handler": "rate_limit", "rate_limits": {
				"posts": {"match": [{"method": ["POST"]}], "key": "static", "window": "1h", "max_events": 3}
			}}]},
			{"group": "pages", "match": [{"path": ["/v1/*"]}], "handle": [{"handler": "rate_limit", "rate_limits": {
				"v1": {"key": "{http.request.remote.host}", "window": 3600000000000, "max_events": 2}
			}}]},
			{"group": "pages", "handle": [{"handler": "rate_limit", "rate_limits": {
				"rest": {"key": "{http.request.remote.host}", "window": "1h", "max_events": 1}
			}}]},
			{"handle": [{"handler": "reverse_proxy", "upstreams": [{"dial": "UPSTREAM"}]}]}
		]
	}}}}
}`,
		Send: []versus.Request{{Path: "/v1/x", Times: 3}, {Path: "/", Times: 2}, {Path: "/v1/x", Method: "POST", Client: "127.0.0.2", Times: 2}, {Method: "POST", Client: "127.0.0.3", Times: 2}},
	})
}
