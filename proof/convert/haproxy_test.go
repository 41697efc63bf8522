// SPDX-License-Identifier: Apache-2.0

//go:build linux

package convert

import (
	"net/http"
	"os/exec"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/convert/versus"
)

var haproxy = versus.Gateway{From: "haproxy", File: "haproxy.cfg", Denial: http.StatusTooManyRequests,
	Start: func(t *testing.T, dir, file string) *proctest.Process {
		cmd := exec.Command(proctest.Find(t, "haproxy", "haproxy"), "-db", "-f", file)
		cmd.Dir = dir
		return proctest.Start(t, cmd)
	}}

// haproxyConf is a configuration with these lines in its frontend.
func haproxyConf(lines string) string {
	return `
defaults
	mode http
	timeout connect 5s
	timeout client 1m
	timeout server 1m

frontend web
	bind ADDR
` + lines + `
	default_backend app

backend app
	server app1 UPSTREAM

backend per_key
	stick-table type string len 64 size 10k expire 2h store http_req_rate(1h)

backend per_page
	stick-table type binary len 20 size 10k expire 2h store http_req_rate(1h)
`
}

const ipTable = "stick-table type ipv6 size 10k expire 2h store http_req_rate(1h)\n"

var haproxyCases = []versus.Case{
	{
		Name:   "a rate for each client",
		Config: haproxyConf(ipTable + "http-request track-sc0 src\nhttp-request deny deny_status 429 if { sc_http_req_rate(0) gt 3 }"),
		Send:   []versus.Request{{Times: 2}, {Times: 2, Client: "127.0.0.2"}, {Times: 4}, {Times: 3, Client: "127.0.0.2"}},
		Listed: []string{"HAProxy counts denied requests"},
	},
	{
		Name:   "at least, and the old name of the fetch",
		Config: haproxyConf(ipTable + "http-request track-sc1 src\nhttp-request deny deny_status 429 if { sc1_http_req_rate ge 3 }"),
		Send:   []versus.Request{{Times: 5}},
	},
	{
		Name:   "the comparison before the count",
		Config: haproxyConf(ipTable + "http-request deny deny_status 429 if { src_http_req_rate gt 3 }\nhttp-request track-sc0 src"),
		Send:   []versus.Request{{Times: 7}, {Times: 2, Client: "127.0.0.2"}},
	},
	{
		Name: "acls on paths and methods",
		Config: haproxyConf(ipTable + `
	acl login path /login /login/
	acl api path_beg /api/
	acl public path_beg /api/public/
	http-request track-sc0 src if login METH_POST
	http-request track-sc1 req.hdr(X-Api-Key) table per_key if api !public
	http-request deny deny_status 429 if login METH_POST { sc_http_req_rate(0) gt 2 }
	http-request deny deny_status 429 if api !public { sc_http_req_rate(1) gt 2 }`),
		Send: []versus.Request{
			{Path: "/login", Times: 4}, {Path: "/login", Method: "POST", Times: 2}, {Path: "/login/", Method: "POST", Times: 2}, {Path: "/login/x", Method: "POST", Times: 2},
			{Path: "/api/x", Times: 4}, {Path: "/api/x", Times: 3, Header: []string{"X-Api-Key", "a"}}, {Path: "/api/y", Times: 3, Header: []string{"X-Api-Key", "b"}},
			{Path: "/api/public/x", Times: 4, Header: []string{"X-Api-Key", "a"}}, {Path: "/api/public", Times: 2, Header: []string{"X-Api-Key", "a"}},
		},
	},
	{
		Name: "exemptions by an earlier allow, hosts",
		Config: haproxyConf(ipTable + `
	acl ours src 127.0.0.8/29 127.0.0.5
	http-request allow if ours
	http-request track-sc0 src if { hdr(host) -i limited.test }
	http-request deny deny_status 429 if { hdr(host) -i limited.test } { sc_http_req_rate(0) gt 2 }`),
		Send: []versus.Request{
			{Host: "limited.test", Times: 3}, {Host: "LIMITED.test", Times: 1}, {Host: "other.test", Times: 4},
			{Host: "limited.test", Client: "127.0.0.9", Times: 4}, {Host: "limited.test", Client: "127.0.0.5", Times: 4}, {Host: "limited.test", Client: "127.0.0.6", Times: 3},
		},
	},
	{
		Name:   "a client on a page",
		Config: haproxyConf("http-request track-sc0 base32+src table per_page\nhttp-request deny deny_status 429 if { sc_http_req_rate(0,per_page) gt 1 }"),
		Send:   []versus.Request{{Path: "/a", Times: 3}, {Path: "/b", Times: 3}, {Path: "/a", Client: "127.0.0.2", Times: 2}},
	},
	{
		Name:   "tcp-request content, and unless",
		Config: haproxyConf(ipTable + "tcp-request content track-sc0 src\nhttp-request deny deny_status 429 unless { sc_http_req_rate(0) le 2 }"),
		Send:   []versus.Request{{Times: 4}},
	},
	{
		Name: "two limits, of which one sees what the other denies",
		Config: haproxyConf(ipTable + `
	http-request track-sc0 src
	http-request track-sc1 str(all) table per_key
	http-request deny deny_status 429 if { sc_http_req_rate(0) gt 2 }
	http-request deny deny_status 429 if { sc_http_req_rate(1) gt 4 }`),
		Send: []versus.Request{{Times: 4}, {Times: 2, Client: "127.0.0.2"}}, Unlike: true,
		Listed: []string{"HAProxy counts denied requests, so a client that keeps sending more than its limit stays denied."},
	},
	{
		Name: "a count of more than what is denied",
		Config: haproxyConf(ipTable + `
	http-request track-sc0 src
	http-request deny deny_status 429 if { path_beg /api/ } { sc_http_req_rate(0) gt 3 }`),
		Send: []versus.Request{{Path: "/", Times: 3}, {Path: "/api/x", Times: 4}}, Unlike: true,
		Listed: []string{"HAProxy counts all requests that line 12 tracks, and denies some of them."},
	},
	{
		Name: "the end of a path, which mete cannot compare",
		Config: haproxyConf(ipTable + `
	http-request track-sc0 src
	http-request deny deny_status 429 if { sc_http_req_rate(0) gt 9 }
	http-request deny deny_status 429 if { path_end .php } { sc_http_req_rate(0) gt 2 }`),
		Send: []versus.Request{{Path: "/a.php", Times: 4}}, Unlike: true,
		Listed: []string{"The condition of deny cannot be expressed: the policy language compares whole values and beginnings, not end."},
	},
}

func TestHAProxy(t *testing.T) {
	for _, c := range haproxyCases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			versus.Compare(t, haproxy, c)
		})
	}
}
