// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/convert"
)

// A document that cannot be converted is an error with its line and the recognized parts.
func TestDocument_Error(t *testing.T) {
	const kong = "_format_version: \"3.0\"\nplugins:\n- name: rate-limiting\n"
	for _, tt := range []struct{ name, from, config, want string }{
		{"envoy YAML", "envoy", "domain: a\ndescriptors: [\n", "convert: config:2: not YAML"},
		{"envoy empty", "envoy", "", "convert: config: the file is empty"},
		{"envoy list", "envoy", "- a\n", "convert: config:1: want an object; recognized nothing"},
		{"envoy field", "envoy", "domain: a\ndescriptor: []\n", `convert: config:2: unknown field "descriptor": the fields here are domain, descriptors`},
		{"envoy no domain", "envoy", "descriptors: []\n", "convert: config: the file has no domain"},
		{"envoy no key", "envoy", "domain: a\ndescriptors:\n- value: x\n", `convert: config:3: a descriptor has no key; recognized domain "a"`},
		{"envoy unit", "envoy", "domain: a\ndescriptors:\n- key: x\n  rate_limit: {unit: fortnight, requests_per_unit: 1}\n", `convert: config:4: unknown unit "fortnight"`},
		{"envoy unlimited", "envoy", "domain: a\ndescriptors:\n- key: x\n  rate_limit: {unit: day, unlimited: true}\n", "convert: config:4: a limit with unlimited: true has no unit"},
		{"envoy negative", "envoy", "domain: a\ndescriptors:\n- key: x\n  rate_limit:\n    unit: day\n    requests_per_unit: -1\n", `config:6: requests_per_unit: want a whole number`},
		{"envoy twice", "envoy", "domain: a\ndescriptors:\n- key: x\n- key: x\n", "convert: config:4: descriptor x= is defined twice; recognized domain \"a\", 1 descriptor"},
		{"envoy no limit", "envoy", "domain: a\ndescriptors:\n- key: x\n", "no rate limit of envoy found that mete can express"},

		{"kong no limit", "kong", kong + "  config: {policy: local}\n", "convert: config:3: the plugin rate-limiting has no limit"},
		{"kong zero", "kong", kong + "  config: {minute: 0}\n", "convert: config:4: minute: want a number above 0 (got 0); recognized 1 rate limit"},
		{"kong word", "kong", kong + "  config:\n    minute: many\n", `convert: config:5: minute: want a whole number from 0 to 1099511627776 (got "many")`},
		{"kong advanced", "kong", strings.Replace(kong, "rate-limiting", "rate-limiting-advanced", 1) + "  config: {limit: [1, 2], window_size: [1]}\n", "has 2 in limit and 1 in window_size"},
		{"kong no header", "kong", kong + "  config: {minute: 1, limit_by: header}\n", "config:3: limit_by: header has no header_name, which Kong rejects."},
		{"kong no path", "kong", kong + "  config: {minute: 1, limit_by: path}\n", "config:3: limit_by: path has no path, which Kong rejects."},
		{"kong other plugin", "kong", "_format_version: \"3.0\"\nplugins:\n- name: response-ratelimiting\n", "config:3: The plugin response-ratelimiting limits requests. mete has no rule for it."},

		{"apisix empty", "apisix", "limit-count: {count: 1}\n", "convert: config: no routes, services or plugins of APISIX found"},
		{"apisix count", "apisix", "routes:\n- uri: /a\n  plugins:\n    limit-count: {count: 0, time_window: 1}\n", "convert: config:4: limit-count: want a count above 0"},
		{"apisix rate", "apisix", "routes:\n- uri: /a\n  plugins:\n    limit-req: {rate: fast}\n", `convert: config:4: limit-req: want a rate from 0.001`},
		{"apisix connections", "apisix", "routes:\n- uri: /a\n  plugins:\n    limit-conn: {conn: 1}\n", "config:4: limit-conn of route bounds how many requests are served at once."},

		{"traefik YAML", "traefik", "http:\n  middlewares: {a: {rateLimit: {average: fast}}}\n", `convert: config:2: average: want a whole number from 0 to 1099511627776 (got "fast"); recognized 1 rateLimit middleware`},
		{"traefik TOML", "traefik", "[http.middlewares.a.rateLimit]\naverage = \n", "convert: config:2: not valid TOML: expected value"},
		{"traefik burst", "traefik", "http:\n  middlewares:\n    a:\n      rateLimit: {average: 1, burst: 0}\n", "convert: config:4: burst: want at least 1 (got 0)"},
		{"traefik period", "traefik", "http:\n  middlewares:\n    a:\n      rateLimit: {average: 1, period: soon}\n", `convert: config:4: period: want a duration such as 10s (got "soon")`},
		{"traefik circle", "traefik", "http:\n  routers:\n    r: {rule: 'Host(`a`)', middlewares: [a]}\n  middlewares:\n    a: {chain: {middlewares: [a]}}\n", "convert: config:5: the chain a contains itself"},
		{"traefik no limit", "traefik", "http:\n  middlewares:\n    a: {inFlightReq: {amount: 1}}\n", "config:3: The middleware a (inFlightReq) bounds how many requests are served at once."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := convert.Convert(tt.from, "config", []byte(tt.config))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// A file with more values than a clause can list becomes tiers.
func TestEnvoy_ManyValues(t *testing.T) {
	const values = 1100
	config := strings.Builder{}
	config.WriteString("domain: a\ndescriptors:\n- {key: k, rate_limit: {unit: day, requests_per_unit: 1}}\n")
	for i := range values {
		fmt.Fprintf(&config, "- {key: k, value: v%d, rate_limit: {unit: day, requests_per_unit: 2}}\n", i)
	}
	result, err := convert.Convert("envoy", "config", []byte(config.String()))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(result.Rules); n != values+1 || result.Rules[n-1].Name != "a/k" {
		t.Errorf("%d rules, the last one is %s", n, result.Rules[n-1].Name)
	}
}

// The rule of a router becomes a match, or a difference.
func TestTraefik_Rule(t *testing.T) {
	for _, tt := range []struct{ rule, want string }{
		{"Host(`A.example`)", `match: {host: "a.example"}`},
		{"Host(`a`, `b`) && PathPrefix(`/`)", "match: {host: [a, b]}"},
		{"(Path(`/a`) || Path(`/b`)) && Method(`post`)", `match: {method: POST, path: ["/a", "/b"]}`},
		{`Path("/a*")`, `match: {path: "/a%2A"}`},
		{"Header(`X-Plan`, `free`) && ClientIP(`10.0.0.0/8`)", `match: {"header:x-plan": free, "ip:address": "10.0.0.0/8"}`},
		{"Query(`a`, `b`)", `match: {"query:a": b}`},
		{"Host(`a`) || Path(`/b`)", "joins different conditions with ||"},
		{"Host(`a`) || Host(`b`) && Path(`/b`)", "joins different conditions with ||"},
		{"Host(`a`) && Host(`b`)", "has two conditions on host"},
		{"!Host(`a`)", "a part that mete cannot express: !Host(`a`)"},
		{"HostRegexp(`.*`)", "the matcher HostRegexp, which mete cannot express"},
		{"PathPrefix(`/{id}`)", "has a path template"},
		{"Host(`a`) && (Path(`/b`)", "a part that mete cannot express"},
		{"Host()", "the matcher Host without a value"},
		{"", "a part that mete cannot express"},
	} {
		config := "http:\n  routers:\n    r: {rule: '" + tt.rule + "', middlewares: [a]}\n    other: {rule: 'Path(`/other`)', middlewares: [a]}\n  middlewares:\n    a: {rateLimit: {average: 1}}\n"
		result, err := convert.Convert("traefik", "config", []byte(config))
		if err != nil {
			t.Errorf("%s: %v", tt.rule, err)
			continue
		}
		text, err := result.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if flat := strings.ReplaceAll(string(text), "\n#   ", " "); !strings.Contains(flat, tt.want) {
			t.Errorf("%s: got\n%s\nwant %s", tt.rule, text, tt.want)
		}
	}
}

// FuzzConvert converts configurations of all gateways: each becomes a policy that compiles,
// or an error.
func FuzzConvert(f *testing.F) {
	files, err := filepath.Glob("testdata/*.in.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		gateway, _, _ := strings.Cut(filepath.Base(file), ".")
		gateway, _, _ = strings.Cut(gateway, "_")
		f.Add(gateway, data)
	}
	f.Fuzz(func(t *testing.T, gateway string, data []byte) {
		result, err := convert.Convert(gateway, "config", data)
		if err != nil {
			if strings.Contains(err.Error(), "the policy does not compile") {
				t.Logf("%v", err)
			}
			return
		}
		if len(result.Rules) == 0 {
			t.Error("a result without rules")
		}
	})
}
