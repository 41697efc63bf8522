// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/httpapi"
)

func TestLoad_AdminTokens(t *testing.T) {
	t.Setenv("METE_TEST_TOKEN", "from-the-environment")
	path := write(t, `
admin_listen: 0.0.0.0:8081
admin_tokens:
  - name: on-call
    role: operate
    token: ${METE_TEST_TOKEN}
  - { name: grafana, role: read, token_file: reader.token }
tls: { cert: c.pem, key: k.pem }
`)
	dir := filepath.Dir(path)
	for _, name := range []string{"reader.token", "c.pem", "k.pem"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(" 0123456789abcdef\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.AdminTokens) != 2 || c.AdminTokens[0] != (config.AdminToken{Name: "on-call", Role: httpapi.RoleOperate, Token: "from-the-environment"}) ||
		c.AdminTokens[1].Token != "0123456789abcdef" {
		t.Errorf("tokens %+v", c.AdminTokens)
	}
	if c.TLS.Cert != filepath.Join(dir, "c.pem") || c.TLS.Key != filepath.Join(dir, "k.pem") {
		t.Errorf("TLS %+v, want its files beside the configuration", c.TLS)
	}
}

func TestLoad_AdminMistakes(t *testing.T) {
	const good = "0123456789abcdef"
	t.Setenv("METE_TEST_EMPTY", "")
	for text, want := range map[string]string{
		"admin_listen: :8081":            `admin_listen: ":8081" is reachable from other machines: set admin_tokens, or listen on 127.0.0.1`,
		"grpc_listen: 0.0.0.0:9001":      `grpc_listen: "0.0.0.0:9001" is reachable from other machines: set admin_tokens or grpc_tls, or listen on 127.0.0.1`,
		"resp_listen: :6380":             `resp_listen: ":6380" is reachable from other machines: set admin_tokens or resp_tls.client_ca, or listen on 127.0.0.1`,
		"grpc_listen: somewhere":         `grpc_listen: "somewhere" is not host:port`,
		"grpc_listen: 8080":              "grpc_listen: is the same address as listen: the two must differ",
		"grpc_tls: { cert: c.pem }":      "grpc_tls: needs both cert and key",
		"resp_tls: { client_ca: c.pem }": "resp_tls.client_ca: needs cert and key",
		"grpc_max_connections: 0":        "grpc_max_connections: must be between 1 and",
		"resp_max_connections: 0":        "resp_max_connections: must be between 1 and",
		"admin_listen: 10.0.0.1:80":      "is reachable from other machines",
		"admin_tokens: nobody":           "mete.yaml:1:15: admin_tokens: must be a list of mappings",
		"admin_tokens: [nobody]":         "mete.yaml:1:16: admin_tokens[0]: must be a mapping",
		"admin_tokens: [{nam: x}]":       `admin_tokens[0].nam: unknown setting; did you mean name?`,
		"admin_tokens: [{name: ''}]":     "admin_tokens[0].name: is required",
		"admin_tokens: [{name: a, role: read, token: " + good + "}, {name: a, role: read, token: x" + good + "}]": `admin_tokens[1].name: "a" is also the name of another token`,
		"admin_tokens: [{name: a, role: read, token: " + good + "}, {name: b, role: read, token: " + good + "}]":  "admin_tokens[1].token: is also the token of another name",
		"admin_tokens: [{name: a, role: root, token: " + good + "}]":                                              `admin_tokens[0].role: must be read, operate or configure, not "root"`,
		"admin_tokens: [{name: a, role: none, token: " + good + "}]":                                              "admin_tokens[0].role",
		"admin_tokens: [{name: a, role: read}]":                                                                   "admin_tokens[0].token: is required",
		"admin_tokens: [{name: a, role: read, token: '${METE_TEST_EMPTY}'}]":                                      "admin_tokens[0].token: is required",
		"admin_tokens: [{name: a, role: read, token: short}]":                                                     "admin_tokens[0].token: must be 16 to 1024 printable",
		"admin_tokens: [{name: a, role: read, token: '0123456789 abcdef'}]":                                       "printable ASCII characters without spaces",
		"admin_tokens: [{name: a, role: read, token: " + good + ", token_file: f}]":                               "admin_tokens[0].token_file: excludes token",
		"admin_tokens: [{name: a, role: read, token_file: nowhere}]":                                              "no such file",
		"tls: { cert: c.pem }":            "tls: needs both cert and key",
		"admin_tls: { client_ca: c.pem }": "admin_tls.client_ca: needs cert and key",
		"decision_profile: nginx\nupstream: http://127.0.0.1:1\ntrusted_hops: 1": "decision_profile: needs trusted_proxies together with an upstream",
		"max_connections: 0":     "max_connections: must be between 1 and 1048576, not 0",
		"max_wait: 0s":           "max_wait: must be between 1ms and 24h0m0s, not 0s",
		"max_wait: 25h":          "max_wait: must be between 1ms and 24h0m0s, not 25h0m0s",
		"max_in_flight: 1048577": "max_in_flight: must be between 1 and",
		"admin_tokens:\n" + strings.Repeat("  - {}\n", 1001): "admin_tokens: has 1001 items: at most 1000 are allowed",
		"admin_tokens:\n" + strings.Repeat("  - {}\n", 101):  "admin_tokens: has 101 entries: at most 100 are allowed",
	} {
		_, err := load(write(t, text), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.90s:\ngot  %v\nwant %s", text, err, want)
			continue
		}
		if strings.Contains(err.Error(), good) {
			t.Errorf("%.90s: the error has the token: %v", text, err)
		}
	}
}

// A port alone is a loopback address, which needs neither tokens nor TLS.
func TestLoad_PortAlone(t *testing.T) {
	c, err := load(write(t, "grpc_listen: 9001\nresp_listen: '6380'\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.GRPCListen != "127.0.0.1:9001" || c.RESPListen != "127.0.0.1:6380" {
		t.Errorf("grpc_listen %q, resp_listen %q; want loopback addresses", c.GRPCListen, c.RESPListen)
	}
	if c.RequiresToken(c.GRPCListen, c.GRPCTLS) {
		t.Error("a loopback address requires a token")
	}
}

// Tokens or TLS allow an address that other machines reach.
func TestLoad_OpenAddresses(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"c.pem", "k.pem", "ca.pem"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := "cert: " + dir + "/c.pem, key: " + dir + "/k.pem"
	for _, tt := range []struct {
		text  string
		token bool
	}{
		{"grpc_listen: :9001\ngrpc_tls: {" + files + "}", false},
		{"resp_listen: :6380\nresp_tls: {" + files + ", client_ca: " + dir + "/ca.pem}", false},
		{"grpc_listen: :9001\nresp_listen: :6380\nadmin_tokens: [{name: a, role: read, token: 0123456789abcdef}]", true},
	} {
		c, err := load(write(t, tt.text), nil)
		if err != nil {
			t.Errorf("%s:\n%v", tt.text, err)
			continue
		}
		if got := c.RequiresToken(":9001", c.GRPCTLS); got != tt.token {
			t.Errorf("%s: a token is required: %v, want %v", tt.text, got, tt.token)
		}
	}
}
