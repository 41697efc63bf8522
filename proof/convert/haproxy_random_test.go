// SPDX-License-Identifier: Apache-2.0

//go:build linux

package convert

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/proof/convert/versus"
)

// A line that denies under random conditions decides random requests as HAProxy does, unless
// convert lists that it cannot express them.
func TestHAProxy_Random(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 6
	}
	random := rand.New(testseed.PCG(19, 2))
	for i := range rounds {
		c := randomHAProxy(random)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			p := versus.Open(t, haproxy, c)
			theirs, ours := p.Decide(t, haproxy, c)
			listed := strings.Contains(p.Differences, "cannot be expressed") || strings.Contains(p.Differences, "in several cases")
			if theirs != ours && !listed {
				t.Errorf("the decisions differ:\nHAProxy %s\nmete    %s\n%+v\n%s\n%s", theirs, ours, c.Send, c.Config, p.Policy)
			}
		})
	}
}

// randomHAProxy draws a configuration with one limit, and requests.
func randomHAProxy(random *rand.Rand) (c versus.Case) {
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	acls := []string{"path /a /b/", "path_beg /a", "path_beg /a/b /b", "method GET HEAD", "method POST", "hdr(host) -i one.test", "hdr(host) one.test two.test",
		"hdr(x-plan) gold", "hdr(x-plan) -m found", "src 127.0.0.1", "src 127.0.0.0/31 127.0.0.3", "path_reg ^/b/x$", "hdr(x-plan) -m beg go"}
	var lines strings.Builder
	for i := range 4 {
		for range 1 + random.IntN(2) {
			fmt.Fprintf(&lines, "\tacl a%d %s\n", i, acls[random.IntN(len(acls))])
		}
	}
	terms := func() string {
		var all []string
		for range 1 + random.IntN(3) {
			all = append(all, pick("", "", "!")+pick("a0", "a1", "a2", "a3"))
		}
		return strings.Join(all, " ")
	}
	if random.IntN(2) == 0 {
		fmt.Fprintf(&lines, "\thttp-request allow if %s\n", pick("a0", "!a0", "{ path_beg /b }", "!{ src 127.0.0.2 }"))
	}
	source := pick("src", "src", "req.hdr(X-Key) table per_key", "base32+src table per_page", "path table per_key", "str(all) table per_key")
	condition := terms()
	fmt.Fprintf(&lines, "\t%s\thttp-request track-sc0 %s if %s\n", ipTable, source, condition)
	fmt.Fprintf(&lines, "\thttp-request deny deny_status 429 if %s { sc_http_req_rate(0) %s %d }\n", condition, pick("gt", "ge"), 2+random.IntN(3))
	// One more limit, which no request reaches, makes each configuration one that convert accepts.
	c.Config = haproxyConf("\thttp-request track-sc1 req.hdr(X-Always) table per_key if { path /always }\n" +
		"\thttp-request deny deny_status 429 if { path /always } { sc_http_req_rate(1) gt 5 }\n" + lines.String())
	hosts, paths := []string{"one.test", "two.test", "three.test"}, []string{"/a", "/a/b", "/a/b/c", "/b", "/b/", "/b/x", "/c"}
	for range 60 {
		r := versus.Request{Host: hosts[random.IntN(len(hosts))], Path: paths[random.IntN(len(paths))], Client: pick("127.0.0.1", "127.0.0.2", "127.0.0.3"),
			Method: pick("GET", "POST"), Times: 1 + random.IntN(3)}
		for _, header := range [][]string{{"X-Key", pick("k", "l")}, {"X-Plan", pick("gold", "silver", "gone")}} {
			if random.IntN(2) == 0 {
				r.Header = slices.Concat(r.Header, header)
			}
		}
		c.Send = append(c.Send, r)
	}
	return c
}
