// SPDX-License-Identifier: Apache-2.0

//go:build linux

package convert

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/convert/versus"
	"github.com/metehq/mete/proof/meted"
)

func TestMain(m *testing.M) { meted.Main(m) }

var nginx = versus.Gateway{From: "nginx", File: "nginx.conf", Denial: http.StatusServiceUnavailable,
	Start: func(t *testing.T, dir, file string) *proctest.Process {
		directives := "daemon off;"
		if os.Geteuid() == 0 {
			directives += " user root;" // its workers must be able to read the test's files
		}
		cmd := exec.Command(proctest.Find(t, "nginx", "nginx"), "-p", dir, "-c", file, "-e", "stderr", "-g", directives)
		cmd.Dir = dir
		return proctest.Start(t, cmd)
	}}

// nginxConf is a configuration with these lines in the block http.
func nginxConf(lines string) string {
	return "pid nginx.pid;\nevents {}\nhttp {\n" +
		"\taccess_log off;\n\tclient_body_temp_path body;\n\tproxy_temp_path proxy;\n\tfastcgi_temp_path fastcgi;\n\tuwsgi_temp_path uwsgi;\n\tscgi_temp_path scgi;\n" +
		lines + "\n}\n"
}

// site is a server with one location in which these lines stand.
func site(lines string) string {
	return "server {\n\tlisten ADDR;\n\tlocation / {\n" + lines + "\n\t\tproxy_pass http://UPSTREAM;\n\t}\n}"
}

const perClient = "limit_req_zone $binary_remote_addr zone=client:1m rate=1r/m;\n"

var nginxCases = []versus.Case{
	{
		Name: "burst", Config: nginxConf(perClient + site("limit_req zone=client burst=3 nodelay;")),
		Send: []versus.Request{{Times: 3}, {Times: 3, Client: "127.0.0.2"}, {Times: 4}, {Times: 3, Client: "127.0.0.2"}},
	},
	{
		Name: "no burst", Config: nginxConf(perClient + site("limit_req zone=client;")),
		Send:   []versus.Request{{Times: 3}, {Times: 2, Client: "127.0.0.2"}},
		Listed: []string{"nginx denies with status 503 (limit_req_status).", "nginx truncates 1r/m to 0.016 requests per second."},
	},
	{
		Name: "locations",
		Config: nginxConf(perClient + "limit_req_zone $binary_remote_addr zone=login:1m rate=1r/m;\nlimit_req_zone $binary_remote_addr zone=api:1m rate=1r/m;\n" + `
server {
	listen ADDR;
	limit_req zone=client burst=4 nodelay;
	location / { proxy_pass http://UPSTREAM; }
	location = /login { limit_req zone=login; proxy_pass http://UPSTREAM; }
	location ^~ /api/ { limit_req zone=api burst=1 nodelay; proxy_pass http://UPSTREAM;
		location /api/inner/ { proxy_pass http://UPSTREAM; }
	}
	location /v2/ { proxy_pass http://UPSTREAM; }
	location ~ ^/about { limit_req zone=login; proxy_pass http://UPSTREAM; }
}`),
		Send: []versus.Request{
			{Path: "/login", Times: 2}, {Path: "/login/", Times: 2}, {Path: "/api/x", Times: 1}, {Path: "/api/inner/x", Times: 2},
			{Path: "/v2/x", Times: 2}, {Path: "/about"}, {Path: "/b", Times: 4}, {Path: "/about", Client: "127.0.0.2", Times: 2},
		},
	},
	{
		Name: "paths that one rule cannot express",
		Config: nginxConf(perClient + `
server {
	listen ADDR;
	location / { proxy_pass http://UPSTREAM; }
	location ^~ /a/b/ { proxy_pass http://UPSTREAM; }
	location /a/ { limit_req zone=client burst=1 nodelay; proxy_pass http://UPSTREAM; }
	location /a/b/c/ { limit_req zone=client burst=1 nodelay; proxy_pass http://UPSTREAM; }
}`),
		Send: []versus.Request{{Path: "/a/x", Times: 2}, {Path: "/a/b/x", Times: 2}, {Path: "/a/b/c/x", Times: 3}}, Unlike: true,
		Listed: []string{"Zone client is one bucket for hosts and locations that one rule cannot express."},
	},
	{
		Name: "an empty key",
		Config: nginxConf(perClient + "limit_req_zone $server_name zone=all:1m rate=1r/m;\n" +
			site("limit_req zone=client burst=3 nodelay;\nlimit_req zone=all;")),
		Send:   []versus.Request{{Times: 5}},
		Listed: []string{"The key $server_name of zone all is always empty, and nginx does not count such requests."},
	},
	{
		Name: "a location without a limit within one with a limit",
		Config: nginxConf(perClient + `
server {
	listen ADDR;
	location / { proxy_pass http://UPSTREAM; }
	location /api/ { limit_req zone=client burst=2 nodelay; proxy_pass http://UPSTREAM; }
	location /api/public/ { proxy_pass http://UPSTREAM; }
}`),
		Send: []versus.Request{{Path: "/api/x", Times: 2}, {Path: "/api/public/x", Times: 5}, {Path: "/", Times: 5}, {Path: "/api/y", Times: 3}, {Path: "/api/public/", Times: 2}},
	},
	{
		Name: "several limits on a location",
		Config: nginxConf(perClient + "limit_req_zone $server_name zone=all:1m rate=1r/m;\n" +
			strings.Replace(site("limit_req zone=client burst=3 nodelay;\nlimit_req zone=all burst=5 nodelay;"), "listen ADDR;", "listen ADDR; server_name a.test;", 1)),
		Send: []versus.Request{{Times: 6}, {Times: 6, Client: "127.0.0.2"}, {Times: 2, Client: "127.0.0.3"}},
	},
	{
		Name: "keys of headers, cookies and arguments",
		Config: nginxConf("limit_req_zone $http_x_api_key zone=key:1m rate=1r/m;\nlimit_req_zone $cookie_session$arg_user zone=user:1m rate=1r/m;\n" + `
server {
	listen ADDR;
	location / { limit_req zone=key burst=1 nodelay; proxy_pass http://UPSTREAM; }
	location /user { limit_req zone=user burst=1 nodelay; proxy_pass http://UPSTREAM; }
}`),
		Send: []versus.Request{
			{Times: 4}, {Times: 3, Header: []string{"X-Api-Key", "a"}}, {Times: 3, Header: []string{"X-Api-Key", "b"}},
			{Path: "/user?user=a", Times: 3}, {Path: "/user?user=b", Times: 3}, {Path: "/user?user=a", Times: 3, Header: []string{"Cookie", "session=s"}},
		},
	},
	{
		Name: "exemptions by geo and map",
		Config: nginxConf(`
geo $trusted { default 0; 127.0.0.8/29 1; 127.0.0.5 1; }
map $trusted $client { 0 $binary_remote_addr; 1 ""; }
map $request_method $writer { default ""; POST $binary_remote_addr; }
map $http_x_plan $plan { default $binary_remote_addr; gold ""; }
limit_req_zone $client zone=client:1m rate=1r/m;
limit_req_zone $writer zone=writer:1m rate=1r/m;
limit_req_zone $plan zone=plan:1m rate=1r/m;
server {
	listen ADDR;
	location / { limit_req zone=client burst=1 nodelay; proxy_pass http://UPSTREAM; }
	location /write { limit_req zone=writer burst=1 nodelay; proxy_pass http://UPSTREAM; }
	location /plan { limit_req zone=plan burst=1 nodelay; proxy_pass http://UPSTREAM; }
}`),
		Send: []versus.Request{
			{Times: 3}, {Times: 4, Client: "127.0.0.9"}, {Times: 4, Client: "127.0.0.5"}, {Times: 3, Client: "127.0.0.6"},
			{Path: "/write", Times: 4}, {Path: "/write", Method: "POST", Times: 3}, {Path: "/write", Times: 2},
			{Path: "/plan", Times: 3, Header: []string{"X-Plan", "gold"}}, {Path: "/plan", Times: 3}, {Path: "/plan", Times: 1, Header: []string{"X-Plan", "silver"}},
		},
	},
	{
		Name: "servers",
		Config: nginxConf(perClient + "limit_req_zone $binary_remote_addr$host zone=host:1m rate=1r/m;\n" + `
server { listen ADDR; server_name a.test b.test; location / { limit_req zone=client burst=2 nodelay; proxy_pass http://UPSTREAM; } }
server { listen ADDR default_server; server_name c.test; location / { limit_req zone=host; proxy_pass http://UPSTREAM; } }
server { listen ADDR; server_name free.test; location / { proxy_pass http://UPSTREAM; } }`),
		Send: []versus.Request{
			{Host: "a.test", Times: 2}, {Host: "b.test", Times: 2}, {Host: "c.test", Times: 2}, {Host: "d.test", Times: 2},
			{Host: "free.test", Times: 4}, {Host: "A.test"},
		},
	},
	{
		Name:   "an included file",
		Config: nginxConf("include zones/*.conf;\n" + site("limit_req zone=client burst=1 nodelay;")),
		Files:  []string{"zones/client.conf", perClient},
		Send:   []versus.Request{{Times: 4}},
	},
	{
		Name: "dry run",
		Config: nginxConf(perClient + `
server {
	listen ADDR;
	location / { limit_req zone=client; limit_req_dry_run on; proxy_pass http://UPSTREAM; }
	location /x { limit_req zone=client; proxy_pass http://UPSTREAM; }
}`),
		Send:   []versus.Request{{Path: "/x", Times: 2}, {Times: 5}},
		Listed: []string{"Zone client is used with different bursts, delays or modes"},
	},
	{
		Name: "one zone with two bursts, which mete counts apart",
		Config: nginxConf(perClient + `
server {
	listen ADDR;
	location / { limit_req zone=client burst=2 nodelay; proxy_pass http://UPSTREAM; }
	location /x { limit_req zone=client burst=1 nodelay; proxy_pass http://UPSTREAM; }
}`),
		Send: []versus.Request{{Times: 3}, {Path: "/x", Times: 3}}, Unlike: true,
		Listed: []string{"Zone client is used with different bursts, delays or modes, and nginx counts them in one bucket."},
	},
	{
		Name: "a regular expression, which mete leaves out",
		Config: nginxConf(perClient + `
server {
	listen ADDR;
	location / { proxy_pass http://UPSTREAM; }
	location /x { limit_req zone=client burst=1 nodelay; proxy_pass http://UPSTREAM; }
	location ~ \.php$ { limit_req zone=client burst=1 nodelay; proxy_pass http://UPSTREAM; }
}`),
		Send: []versus.Request{{Path: "/x"}, {Path: "/a.php", Times: 3}}, Unlike: true,
		Listed: []string{`The policy language has no regular expressions, so location ~ \.php$ is left out.`},
	},
}

func TestNginx(t *testing.T) {
	for _, c := range nginxCases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			versus.Compare(t, nginx, c)
		})
	}
}

// Of requests that come together, a burst with a delay lets some go ahead, keeps some
// waiting and denies the rest. The first of the waiting ones waits for ten seconds,
// so the test sees the others end and then gives up.
func TestNginx_Delay(t *testing.T) {
	for _, tt := range []struct {
		parameters     string
		ahead, waiting int
	}{{"burst=2", 1, 2}, {"burst=4 delay=2", 3, 2}} {
		t.Run(tt.parameters, func(t *testing.T) {
			t.Parallel()
			const denied = 2
			p := versus.Open(t, nginx, versus.Case{Config: nginxConf(strings.ReplaceAll(perClient, "1r/m", "6r/m") + site("limit_req zone=client "+tt.parameters+";"))})
			for _, addr := range []string{p.Gateway, p.Mete} {
				ctx, cancel := context.WithCancel(t.Context())
				answers := make(chan string)
				sent := tt.ahead + tt.waiting + denied
				for range sent {
					go func() {
						res, err := versus.DoContext(ctx, addr, versus.Request{})
						if err != nil {
							answers <- "waiting"
							return
						}
						res.Body.Close()
						answers <- res.Status[:3]
					}()
				}
				got := map[string]int{}
				for i := range sent {
					if i == tt.ahead+denied {
						cancel()
					}
					answer := <-answers
					if answer == "503" || answer == "429" {
						answer = "denied"
					}
					got[answer]++
				}
				cancel()
				if want := map[string]int{"200": tt.ahead, "waiting": tt.waiting, "denied": denied}; fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s: got %v, want %v", strings.TrimPrefix(addr, "127.0.0.1"), got, want)
				}
			}
		})
	}
}
