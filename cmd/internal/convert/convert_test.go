// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/convert"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

var update = flag.Bool("update", false, "write the policies in testdata")

// Each configuration in testdata stands beside the policy that it becomes. The gateway is
// detected, and named in a second run.
func TestConvert(t *testing.T) {
	files, err := filepath.Glob("testdata/*.in.*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no configurations: %v", err)
	}
	for _, file := range files {
		gateway, _, _ := strings.Cut(filepath.Base(file), ".")
		gateway, _, _ = strings.Cut(gateway, "_")
		t.Run(filepath.Base(file), func(t *testing.T) {
			got := run(t, convert.Options{File: file})
			if named := run(t, convert.Options{File: file, From: gateway}); named != got {
				t.Errorf("--from %s gives another policy:\n%s", gateway, named)
			}
			base, _, _ := strings.Cut(file, ".in.")
			golden := base + ".out.yaml"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs, -update writes it:\n%s", golden, got)
			}
			if _, err := policyyaml.Parse(golden, []byte(got), policy.Options{HashKey: []byte("test")}); err != nil {
				t.Error(err)
			}
		})
	}
}

// The examples show the policies that their configurations become.
func TestConvert_Examples(t *testing.T) {
	const dir = "../../../examples/migrating/gateways"
	for file, after := range map[string]string{
		"nginx.conf": "nginx.yaml", "haproxy.cfg": "haproxy.yaml", "Caddyfile": "caddy.yaml",
		"ratelimit.yaml": "envoy.yaml", "kong-config.yaml": "kong.yaml", "apisix-routes.yaml": "apisix.yaml", "traefik-dynamic.yaml": "traefik.yaml",
	} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		result, err := convert.Convert("", file, data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := result.YAML()
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join(dir, after)
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(golden); err != nil || string(want) != string(got) {
			t.Errorf("%s differs (%v), -update writes it:\n%s", golden, err, got)
		}
	}
}

// run converts a file to standard output.
func run(t *testing.T, o convert.Options) string {
	t.Helper()
	var out, list bytes.Buffer
	o.Out, o.Err = &out, &list
	if err := convert.Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n# - "); !strings.Contains(list.String(), "difference") || n > 0 && strings.Count(list.String(), "\n  testdata/") < n {
		t.Errorf("the list does not have the %d differences of the comments:\n%s", n, &list)
	}
	return out.String()
}

// A configuration that cannot be converted is an error with its place, and with the elements
// that were recognized.
func TestConvert_Error(t *testing.T) {
	for _, tt := range []struct{ name, from, config, want string }{
		{"unknown", "", "hello", "convert: config: unknown format: name the gateway with --from nginx"},
		{"no gateway", "squid", "hello", `convert: unknown gateway "squid": use one of nginx`},
		{"no rate", "nginx", "limit_req_zone $host zone=a:1m rate=1r/s;\nlimit_req_zone $host zone=b:1m;", "convert: config:2: limit_req_zone without rate; recognized 1 zone"},
		{"bad rate", "nginx", "limit_req_zone $host zone=a:1m rate=1r/h;", `convert: config:1: limit_req_zone with the rate "1r/h": it must be like 10r/s or 30r/m; recognized nothing`},
		{"no zone", "nginx", "limit_req zone=a;", `convert: config:1: limit_req of the unknown zone "a"; recognized nothing`},
		{"bad parameter", "nginx", "limit_req_zone $host zone=a:1m rate=1r/s;\nlimit_req zone=a burst=many;", `convert: config:2: limit_req with an invalid parameter "burst=many"; recognized 1 zone`},
		{"open block", "nginx", "http {\nserver {\n}\n", `convert: config:4: the file ends within a block: a "}" is missing; recognized nothing`},
		{"open quote", "nginx", "http {\nlog_format x '\n;}\n", `convert: config:2: a quote ' is not closed; recognized nothing`},
		{"no semicolon", "nginx", "http { sendfile on }", `convert: config:1: unexpected "}": "sendfile" has no ";"; recognized nothing`},
		{"too deep", "nginx", strings.Repeat("a {", 100), `convert: config:1: more than 32 nested blocks; recognized nothing`},
		{"haproxy without window", "haproxy", "frontend web\n  stick-table type ip size 1k store conn_cur\n  http-request track-sc0 src\n  http-request deny if { sc_http_req_rate(0) gt 5 }\n",
			"convert: config:4: the rate of table web, which stores no http_req_rate; recognized 1 section, 1 stick table"},
		{"haproxy period", "haproxy", "frontend web\n  stick-table type ip size 1k store http_req_rate(10y)\n", `convert: config:2: stick-table with http_req_rate(10y): "10y" is not a period such as 10s; recognized 1 section`},
		{"haproxy table", "haproxy", "frontend web\n  http-request track-sc0 src table none\n", "convert: config:2: track-sc0 in none, which has no stick-table"},
		{"haproxy quote", "haproxy", "frontend web\n  acl a path \"/x\n", `convert: config:2: a quote " is not closed`},
		{"haproxy late track", "haproxy", "frontend web\n  stick-table type ip size 1k store http_req_rate(1m)\n  http-request deny if { sc_http_req_rate(0) gt 5 }\n  http-request track-sc0 src\n",
			"config:3: No earlier line of the section tracks requests with counter 0."},
		{"caddy zone", "caddy", ":80\nrate_limit {\n\tzone a {\n\t\tkey x\n\t\twindow 1m\n\t}\n}\n", "convert: config:3: zone a without window or events; recognized 1 rate_limit handler"},
		{"caddy window", "caddy", ":80\nrate_limit {\n\tzone a {\n\t\twindow fast\n\t}\n}\n", `convert: config:4: zone a with the window "fast"; recognized 1 rate_limit handler`},
		{"caddy brace", "caddy", ":80 {\nrate_limit {\n", `convert: config:2: the file ends within a block: a "}" is missing`},
		{"caddy matcher", "caddy", ":80 {\nrate_limit @none {\n}\n}\n", `convert: config:2: rate_limit with an unknown matcher "@none"`},
		{"caddy quote", "caddy", ":80 {\n  respond \"x\n}\n", `convert: config:2: a quote " is not closed`},
		{"caddy json", "caddy", "{\n\"apps\": }", `convert: config:2: invalid character '}'`},
		{"caddy json zone", "caddy", `{"apps":{"http":{"servers":{"a":{"routes":[{"handle":[{"handler":"rate_limit","rate_limits":{"z":{"key":"x"}}}]}]}}}}}`,
			"config: server a, route 1, handler 1: zone z without window or max_events; recognized 1 rate_limit handler"},
		{"haproxy track", "haproxy", "frontend web\n stick-table type ip size 1k store http_req_rate(1m)\n http-request track-sc0 src unless { path_end .css }\n http-request deny if { sc_http_req_rate(0) gt 5 }\n",
			"no rate limit of haproxy found that mete can express\n  config:3: The condition of track-sc0 cannot be expressed: the policy language compares whole values and beginnings, not end." +
				" The policy has no rule for the lines that depend on it. Write a rule for the requests that the line tracks.; recognized"},
		{"haproxy variable", "haproxy", "frontend web\n http-request set-var(req.rate) base32+src,table_http_req_rate(x)\n http-request deny if { var(req.rate) -m int gt 5 }\n",
			"config:2: set-var(req.rate) depends on a rate. The policy has no rule for it."},
		{"caddy errors", "caddy", ":80 {\n\thandle_errors {\n\t\trate_limit {\n\t\t}\n\t}\n}\n", "config:3: The rate_limit within handle_errors does not limit incoming requests."},
		{"nginx named location", "nginx", "limit_req_zone $host zone=a:1m rate=1r/s;\nserver { location @x { limit_req zone=a; } }", "config:2: Only internal redirects lead to location @x."},
		{"no limits", "nginx", "http { server { listen 80; } }", "convert: config: no rate limit of nginx found that mete can express; recognized 1 server"},
		{"nothing to express", "nginx", "limit_req_zone $ssl_client_s_dn zone=a:1m rate=1r/s;\nlimit_req zone=a;",
			`  config:1: The key "$ssl_client_s_dn" cannot be expressed: mete has no attribute for $ssl_client_s_dn.`},
		{"doubling", "nginx", doublingMaps(30) + "limit_req_zone $v0 zone=a:1m rate=1r/s;\nlimit_req zone=a;", "the keys have more than 100000 nested variables"},
		{"circle of maps", "nginx", "map $host $a { default $b; }\nmap $host $b { default $a; }\nlimit_req_zone $a zone=a:1m rate=1r/s;\nlimit_req zone=a;", "its variables are defined by a cycle of maps"},
		{"alternatives", "haproxy", manyAlternatives(), "it has more than 64 alternatives"},
		{"invalid rule", "caddy", ":80\nrate_limit {\n\tzone a {\n\t\tmatch {\n\t\t\tpath /a/{id}\n\t\t}\n\t\tkey x\n\t\tevents 1\n\t\twindow 1m\n\t}\n}\n", "is a pattern, and the policy language compares whole values and beginnings"},
		{"circle", "nginx", "map $a $b { default $b; }\nlimit_req_zone $b zone=a:1m rate=1r/s;\nlimit_req zone=a;", "mete has no attribute for $a"},
		{"overlap", "nginx", "geo $b { default a; 10.0.0.0/8 b; 10.1.0.0/16 c; }\nlimit_req_zone $b zone=a:1m rate=1r/s;\nlimit_req zone=a;",
			"10.0.0.0/8 and 10.1.0.0/16 of $b overlap and have different results"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := convert.Convert(tt.from, "config", []byte(tt.config))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// doublingMaps returns maps that refer to the next one twice.
func doublingMaps(n int) (text string) {
	for i := range n {
		text += fmt.Sprintf("map $host $v%d { default $v%d$v%d; }\n", i, i+1, i+1)
	}
	return text + fmt.Sprintf("map $host $v%d { default x; }\n", n)
}

// manyAlternatives returns a condition of HAProxy whose alternatives multiply.
func manyAlternatives() string {
	text := "frontend web\n stick-table type ip size 1k store http_req_rate(1m)\n acl a path /a\n acl a method POST\n acl a hdr(x) y\n http-request track-sc0 src\n"
	return text + " http-request deny if { sc_http_req_rate(0) gt 5 } " + strings.Repeat("a ", 20) + "\n"
}

// A policy file is written in one step, never over another one without force, and not at
// all after an error.
func TestRun_Output(t *testing.T) {
	dir := t.TempDir()
	output, broken := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "broken.conf")
	if err := os.WriteFile(broken, []byte("http {"), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func(file string, force bool) error {
		var list bytes.Buffer
		return convert.Run(context.Background(), convert.Options{From: "nginx", File: file, Output: output, Force: force, Out: &list, Err: &list})
	}
	if err := start(broken, false); err == nil {
		t.Error("a broken configuration was converted")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("after an error there are %v, %v", entries, err)
	}
	if err := start("testdata/nginx.in.conf", false); err != nil {
		t.Fatal(err)
	}
	if err := start("testdata/nginx.in.conf", false); !errors.Is(err, convert.ErrExists) {
		t.Errorf("got %v, want %v", err, convert.ErrExists)
	}
	if err := start("testdata/nginx.in.conf", true); err != nil {
		t.Error(err)
	}
	if err := start(broken, true); err == nil {
		t.Error("a broken configuration was converted")
	}
	if _, err := policyyaml.LoadFile(output); err != nil {
		t.Error(err)
	}
}

// With JSON, the output has the policy and the differences, and standard error is empty.
func TestRun_JSON(t *testing.T) {
	var out, list bytes.Buffer
	o := convert.Options{File: "testdata/nginx.in.conf", JSON: true, Out: &out, Err: &list}
	if err := convert.Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	var got struct {
		From        string
		Recognized  []string
		Differences []convert.Difference
		Policy      json.RawMessage
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.From != "nginx" || len(got.Differences) == 0 || !slices.Contains(got.Recognized, "4 zones") || list.Len() > 0 {
		t.Errorf("got %+v and %q", got, &list)
	}
	if _, err := policyyaml.Load(got.Policy, policy.Options{HashKey: []byte("test")}); err != nil {
		t.Error(err)
	}
}
