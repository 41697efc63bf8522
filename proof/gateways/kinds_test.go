// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gateways

import (
	"net/http"
	"testing"

	"github.com/metehq/mete/proof/meted"
)

func TestMain(m *testing.M) { meted.Main(m) }

// A kind is one directory of examples/gateways and what its gateway can do.
type kind struct {
	name     string // of the directory, and of the profile
	program  string
	pkg      string   // Debian's
	args     []string // the command of its README
	settings []string // files with addresses and timeouts in them

	// opening is what makes the example fail open, in the first of the settings that
	// has it.
	opening edit

	silence   int  // status while mete does not answer and the gateway fails closed
	wrong     int  // status where mete has no /v1/decision
	hasDetail bool // the body of a denial is mete's own
}

// An edit is what a reader of an example is told to change in it.
type edit struct{ from, to string }

var kinds = []kind{
	{
		name: "nginx", program: "nginx", pkg: "nginx",
		args:     []string{"-p", ".", "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off;"},
		settings: []string{"nginx.conf"},
		opening:  edit{"            error_page 502 504 = @mete_down;\n", ""},
		silence:  http.StatusServiceUnavailable, wrong: http.StatusServiceUnavailable,
	},
	{
		name: "nginx-lua", program: "nginx", pkg: "nginx libnginx-mod-http-lua",
		args:     []string{"-p", ".", "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off;"},
		settings: []string{"mete.lua", "nginx.conf"},
		opening:  edit{"local OPEN = true", "local OPEN = false"},
		silence:  http.StatusServiceUnavailable, wrong: http.StatusServiceUnavailable, hasDetail: true,
	},
	{
		name: "haproxy", program: "haproxy", pkg: "haproxy",
		args:     []string{"-db", "-f", "haproxy.cfg"},
		settings: []string{"haproxy.cfg", "mete.lua"},
		opening:  edit{"lua.mete open\n", "lua.mete closed\n"},
		silence:  http.StatusServiceUnavailable, wrong: http.StatusServiceUnavailable, hasDetail: true,
	},
	{
		name: "caddy", program: "caddy", pkg: "caddy",
		args:     []string{"run", "--config", "Caddyfile", "--adapter", "caddyfile"},
		settings: []string{"Caddyfile"},
		opening:  edit{"\t\treverse_proxy @undecided 127.0.0.1:3000\n", ""},
		silence:  http.StatusBadGateway, wrong: http.StatusNotFound, hasDetail: true,
	},
}

// each runs a test of every gateway.
func each(t *testing.T, test func(t *testing.T, k kind)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { test(t, k) })
	}
}
