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

// Random servers with random locations decide random requests as nginx does. The exception
// is a zone whose hosts and locations one rule cannot express, which convert lists.
func TestNginx_Random(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 6
	}
	random := rand.New(testseed.PCG(19, 1))
	for i := range rounds {
		c := randomCase(random)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			p := versus.Open(t, nginx, c)
			theirs, ours := p.Decide(t, nginx, c)
			if theirs != ours && !strings.Contains(p.Differences, "that one rule cannot express") && !strings.Contains(p.Differences, "takes all paths that begin with") {
				t.Errorf("the decisions differ:\nnginx %s\nmete  %s\n%+v\n%s\n%s", theirs, ours, c.Send, c.Config, p.Policy)
			}
		})
	}
}

// randomCase draws a configuration and requests.
func randomCase(random *rand.Rand) (c versus.Case) {
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	var zones strings.Builder
	bursts := map[string]int{}
	for _, zone := range []string{"a", "b", "c"} {
		fmt.Fprintf(&zones, "limit_req_zone %s zone=%s:1m rate=1r/m;\n",
			pick("$binary_remote_addr", "$binary_remote_addr", "$http_x_key", "$host", "$request_method$http_x_key", "$uri", "$binary_remote_addr$host"), zone)
		bursts[zone] = random.IntN(5)
	}
	limits := func() (text string) {
		for _, zone := range []string{"a", "b", "c"} {
			if random.IntN(4) == 0 {
				text += "limit_req zone=" + zone
				if burst := bursts[zone]; burst > 0 {
					text += fmt.Sprintf(" burst=%d nodelay", burst)
				}
				text += "; "
			}
		}
		return text
	}
	paths := []string{"/a", "/a/", "/a/b", "/a/b/", "/a/b/c", "/b", "/b/", "/"}
	hosts := []string{"one.test", "two.test", "three.test"}
	var servers strings.Builder
	for _, host := range hosts[:1+random.IntN(3)] {
		fmt.Fprintf(&servers, "server {\n\tlisten ADDR;\n\tserver_name %s;\n\t%s\n", host, limits())
		seen := map[string]bool{}
		for range random.IntN(5) {
			modifier, path := pick("", "", "=", "^~", "~ ^"), paths[random.IntN(len(paths))]
			kind := modifier
			if kind == "^~" {
				kind = ""
			}
			if seen[kind+path] {
				continue
			}
			seen[kind+path] = true
			location := strings.TrimSpace(modifier + " " + path)
			if modifier == "~ ^" {
				location = "~ ^" + path + pick("", "$")
			}
			fmt.Fprintf(&servers, "\tlocation %s { %s proxy_pass http://UPSTREAM; }\n", location, limits())
		}
		if !seen["/"] {
			fmt.Fprintf(&servers, "\tlocation / { %s proxy_pass http://UPSTREAM; }\n", limits())
		}
		servers.WriteString("}\n")
	}
	// One limit that all requests have makes each configuration one that convert accepts.
	c.Config = nginxConf(zones.String() + "limit_req_zone $http_x_always zone=always:1m rate=1r/m;\n" + servers.String() +
		"server { listen ADDR; server_name always.test; location / { limit_req zone=always; proxy_pass http://UPSTREAM; } }")
	for range 60 {
		r := versus.Request{Host: pick(append(slices.Clone(hosts), "none.test")...), Path: pick(append(slices.Clone(paths), "/ab", "/a/x", "/b/x/y")...),
			Client: pick("127.0.0.1", "127.0.0.2"), Method: pick("GET", "POST"), Times: 1 + random.IntN(3)}
		if random.IntN(2) == 0 {
			r.Header = []string{"X-Key", pick("k", "l")}
		}
		c.Send = append(c.Send, r)
	}
	return c
}
