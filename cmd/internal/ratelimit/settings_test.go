// SPDX-License-Identifier: Apache-2.0

package ratelimit_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/ratelimit"
)

var update = flag.Bool("update", false, "rewrite the tables in doc/envoy.md")

func TestReadSettings_Defaults(t *testing.T) {
	s, warnings, err := ratelimit.ReadSettings(nil)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("err %v, warnings %q", err, warnings)
	}
	if s.GRPCHost != "0.0.0.0" || s.GRPCPort != 8081 || s.HTTPPort != 8080 || s.DebugHost != "127.0.0.1" || s.DebugPort != 6070 {
		t.Errorf("addresses: %+v", s)
	}
	if s.ConfigType != "FILE" || s.NearLimit != 0.8 || s.MaxConnectionAge != 24*time.Hour || s.Statsd || s.Algorithm != "fixed_window" {
		t.Errorf("defaults: %+v", s)
	}
	if err := s.CheckStore(); err == nil || !strings.Contains(err.Error(), "REDIS_URL is not set: set it to HOST:PORT, or set METE_STORE") {
		t.Errorf("without a store: %v", err)
	}
}

func TestReadSettings_Errors(t *testing.T) {
	for _, c := range []struct{ variable, want string }{
		{"GRPC_PORT=tcp://10.0.0.1:80", `GRPC_PORT="tcp://10.0.0.1:80": must be a whole number from 0 to 65535`},
		{"GRPC_SERVER_USE_TLS=yes", `GRPC_SERVER_USE_TLS="yes": must be true or false`},
		{"GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_USE_TLS=true: requires GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY"},
		{"GRPC_CLIENT_TLS_CACERT=ca.pem", "GRPC_CLIENT_TLS_CACERT: requires GRPC_SERVER_USE_TLS=true"},
		{"GRPC_CLIENT_TLS_SAN=envoy", "GRPC_CLIENT_TLS_SAN: requires GRPC_CLIENT_TLS_CACERT"},
		{"CONFIG_TYPE=XDS", `CONFIG_TYPE="XDS": must be FILE or GRPC_XDS_SOTW`},
		{"BACKEND_TYPE=memcache", "mete has no store in memcache"},
		{"GRPC_MAX_CONNECTION_AGE=1", `GRPC_MAX_CONNECTION_AGE="1": must be a duration such as 500ms`},
		{"NEAR_LIMIT_RATIO=1.5", `NEAR_LIMIT_RATIO="1.5": must be a number from 0 to 1`},
		{"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=0s", "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=0s: must be above 0"},
		{"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES=1", "must be a whole number from 1024 to 1073741824"},
		{"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=token", "must be key:value,key:value"},
		{"REDIS_TLS_CLIENT_CERT=a", "REDIS_TLS_CLIENT_CERT and REDIS_TLS_CLIENT_KEY: set both or neither"},
		{"PROMETHEUS_PATH=metrics", `PROMETHEUS_PATH="metrics": must begin with /`},
	} {
		if _, _, err := ratelimit.ReadSettings([]string{c.variable}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.variable, err, c.want)
		}
	}
}

func TestReadSettings_Warnings(t *testing.T) {
	_, warnings, err := ratelimit.ReadSettings([]string{
		"REDIS_PERSECOND=true", "GRPC_PROT=1", "REDIS_TLS_CIPHERS=x", "LOCAL_CACHE_SIZE_IN_BYTES=1000", "PATH=/bin",
		"REDIS_SERVICE_HOST=10.0.0.1", "REDIS_TLS_PORT_6379_TCP=tcp://10.0.0.1:6379", "EXTRA_TAGS=", "PORTS=1",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"REDIS_PERSECOND has no effect: all limits use the store of REDIS_URL, also limits per second",
		"GRPC_PROT is not a setting: did you mean GRPC_PORT?",
		"PORTS is not a setting: did you mean PORT?",
		"REDIS_TLS_CIPHERS is not a setting, and is ignored: see the table in doc/envoy.md",
	}
	if !slices.Equal(warnings, want) {
		t.Errorf("got %q\nwant %q", warnings, want)
	}
}

func TestCheckStore(t *testing.T) {
	for _, c := range []struct {
		environ []string
		want    string // part of the error; empty for none
	}{
		{[]string{"REDIS_URL=redis:6379"}, ""},
		{[]string{"REDIS_URL=redis://:secret@redis:6379"}, ""},
		{[]string{"REDIS_URL=/run/redis.sock", "REDIS_AUTH=user:p@ss word"}, ""},
		{[]string{"REDIS_TYPE=sentinel", "REDIS_URL=main,a:26379,b:26379", "REDIS_SENTINEL_AUTH=x", "REDIS_AUTH=y"}, ""},
		{[]string{"REDIS_TYPE=Cluster", "REDIS_URL=a:6379,b:6379", "REDIS_TLS=true"}, ""},
		{[]string{"METE_STORE=memory"}, ""},
		{[]string{"METE_STORE=postgres://localhost/limits", "REDIS_URL=ignored:1"}, ""},
		{[]string{"REDIS_URL=a:6379,b:6379"}, "set REDIS_TYPE to sentinel or cluster"},
		{[]string{"REDIS_TYPE=sentinel", "REDIS_URL=a:26379"}, "must be MASTER,HOST:PORT"},
		{[]string{"REDIS_URL=memcache://a"}, `"memcache": unknown scheme`},
		{[]string{"REDIS_URL=redis:port"}, "REDIS_URL: "},
		{[]string{"METE_STORE=disk"}, "METE_STORE: "},
	} {
		s, _, err := ratelimit.ReadSettings(c.environ)
		if err != nil {
			t.Fatal(err)
		}
		err = s.CheckStore()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: got %v, want %q", c.environ, err, c.want)
		}
	}
}

// TestTable_Doc compares the tables in doc/envoy.md with the settings.
func TestTable_Doc(t *testing.T) {
	const page = "../../../doc/envoy.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| Variable | Value | Default | Meaning |\n|---|---|---|---|\n")
	for _, row := range ratelimit.Table() {
		if row.Effect == "" {
			def := ""
			if row.Default != "" {
				def = "`" + row.Default + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", row.Name, row.Form, def, row.About)
		}
	}
	b.WriteString("\nmete accepts these variables of the original, and does not use them:\n\n| Variable | Reason |\n|---|---|\n")
	for _, row := range ratelimit.Table() {
		if row.Effect != "" {
			fmt.Fprintf(&b, "| `%s` | %s |\n", row.Name, row.Effect)
		}
	}
	const begin, end = "<!-- begin settings -->\n\n", "\n<!-- end settings -->"
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s lacks %q or %q", page, begin, end)
	}
	want := before + begin + b.String() + end + after
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatal("the tables differ from the settings: run go test ./internal/ratelimit -run Doc -update in cmd")
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
