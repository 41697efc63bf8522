// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gateways

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
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
	settings []string // files with addresses and timeouts in them, the main one last

	opening edit // what makes the example fail open, in the file that has it

	http2 edit // makes it serve HTTP/2 in the clear

	// behind and trusts are README.md's edits for a load balancer at 127.9.0.1: in the main file and in
	// mete.yaml.
	behind, trusts edit

	silence   int  // status while mete does not answer and the gateway fails closed
	wrong     int  // status where mete has no /v1/decision
	hasDetail bool // the body of a denial is mete's own
}

// An edit is a change to an example that its README.md asks for.
type edit struct{ from, to string }

var kinds = []kind{
	{
		name: "nginx", program: "nginx", pkg: "nginx",
		args:     []string{"-p", ".", "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off;"},
		settings: []string{"nginx.conf"},
		http2:    edit{"8088;", "8088 http2;"},
		behind:   edit{"server_name _;\n", "server_name _;\nset_real_ip_from 127.9.0.1;\nreal_ip_header X-Forwarded-For;\n"},
		opening:  edit{"            error_page 502 504 = @mete_down;\n", ""},
		silence:  http.StatusServiceUnavailable, wrong: http.StatusServiceUnavailable,
	},
	{
		name: "nginx-lua", program: "nginx", pkg: "nginx libnginx-mod-http-lua",
		args:     []string{"-p", ".", "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off;"},
		settings: []string{"mete.lua", "nginx.conf"},
		http2:    edit{"8088;", "8088 http2;"},
		behind:   edit{"server_name _;\n", "server_name _;\nset_real_ip_from 127.9.0.1;\nreal_ip_header X-Forwarded-For;\n"},
		opening:  edit{"local OPEN = true", "local OPEN = false"},
		silence:  http.StatusServiceUnavailable, wrong: http.StatusServiceUnavailable, hasDetail: true,
	},
	{
		name: "haproxy", program: "haproxy", pkg: "haproxy",
		args:     []string{"-db", "-f", "haproxy.cfg"},
		settings: []string{"mete.lua", "haproxy.cfg"},
		http2:    edit{"bind 127.0.0.1:8088\n", "bind 127.0.0.1:8088 proto h2\n"},
		behind:   edit{"bind 127.0.0.1:8088\n", "bind 127.0.0.1:8088 accept-proxy\n"},
		opening:  edit{"lua.mete open\n", "lua.mete closed\n"},
		silence:  http.StatusServiceUnavailable, wrong: http.StatusServiceUnavailable, hasDetail: true,
	},
	{
		name: "caddy", program: "caddy", pkg: "caddy",
		args:     []string{"run", "--config", "Caddyfile", "--adapter", "caddyfile"},
		settings: []string{"Caddyfile"},
		http2:    edit{"servers {\n", "servers {\n\t\tprotocols h1 h2c\n"},
		behind:   edit{"\t\t\tmethod GET\n", "\t\t\ttrusted_proxies 127.9.0.1/32\n\t\t\tmethod GET\n"},
		trusts:   edit{"[127.0.0.1]", "[127.0.0.1, 127.9.0.1]"},
		opening:  edit{"\t\treverse_proxy @undecided 127.0.0.1:3000\n", ""},
		silence:  http.StatusBadGateway, wrong: http.StatusNotFound, hasDetail: true,
	},
}

// command is how a kind's README starts it.
func (k kind) command() string {
	words := []string{k.program}
	for _, arg := range k.args {
		if strings.ContainsAny(arg, " ;") {
			arg = "'" + arg + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// The README contains the command of the tests, and the example contains the texts to change.
func TestREADME(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		dir := copyExample(t, k)
		text, err := os.ReadFile(filepath.Join(dir, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), k.command()) {
			t.Errorf("README.md does not say %s", k.command())
		}
		k.fileWith(t, dir, k.opening.from)
	})
}

// each runs a test of every gateway, side by side: each has a mete of its own, and mostly
// waits for it.
func each(t *testing.T, test func(t *testing.T, k kind)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}
