// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/storeurl"
)

// Each setting of the Config has a variable of its own, which Load reads: a value of
// its type changes that setting and no other.
func TestEnvironment_EverySetting(t *testing.T) {
	values := map[string]string{
		"policy": "p.yaml", "policy_keys": "a.pem,b.pem", "policy_ca": "ca.pem", "state_directory": "/var/lib/mete", "store": "memory:?max_keys=5", "listen": "127.0.0.1:1", "admin_listen": "127.0.0.1:2",
		"admin_tokens": `[{"name":"a","role":"read","token":"0123456789abcdef"}]`, "upstream": "http://127.0.0.1:3",
		"upstreams": "[{name: app, urls: [http://127.0.0.1:3, http://127.0.0.1:4]}]", "routes": "- path: /v1\n  upstream: app\n",
		"tls.cert": "/dev/null", "tls.key": "/dev/null", "tls.client_ca": "/dev/null",
		"admin_tls.cert": "/dev/null", "admin_tls.key": "/dev/null", "admin_tls.client_ca": "/dev/null",
		"grpc_listen": "9001", "grpc_tls.cert": "/dev/null", "grpc_tls.key": "/dev/null", "grpc_tls.client_ca": "/dev/null",
		"resp_listen": "6380", "resp_tls.cert": "/dev/null", "resp_tls.key": "/dev/null", "resp_tls.client_ca": "/dev/null",
		"underscores_in_headers": "pass", "adaptive.law": "aimd", "adaptive.tolerance": "2", "adaptive.floor": "0.5",
		"decision_profile": "nginx", "trusted_proxies": "10.0.0.0/8, ::1", "forwarded_header": "X-Real-IP",
		"jwt.algorithms": "[ES256]", "jwt.keys": "keys.json", "jwt.issuer": "i", "jwt.audience": "a,b",
		"geoip.country": "c.mmdb", "geoip.asn": "a.mmdb", "geoip.tor_exits": "exits.txt", "hash_key": "${k}",
		"violations": "postgres://db/x", "violations_user": "header:x-user", "rate_limit_fields": "none", "rewrite_host": "true", "cors_origins": "https://a.example,https://b.example",
		"log_format": "json", "log_level": "debug", "telemetry.endpoint": "http://127.0.0.1:4318", "telemetry.headers": "a=b,c=d", "telemetry.sample": "0.5",
		"upgrades": "websocket,x", "trusted_hops": "2", "violations_retention": "40d", "denial_log.max_lines": "20", "denial_webhook.url": "https://h/d", "denial_webhook.headers": "a=b,c=d", "denial_webhook.secret": "s3cret", "denial_webhook.batch": "20", "top_keys": "20",
	}
	needs := map[string][]string{ // what a setting is valid with
		"policy_keys": {"METE_POLICY=p"}, "policy_ca": {"METE_POLICY=https://h/p.yaml", "METE_POLICY_KEYS=k.pem", "METE_STATE_DIRECTORY=/var/lib/mete"}, "routes": {"METE_UPSTREAMS=[{name: app, urls: [http://127.0.0.1:3]}]"},
		"tls.cert": {"METE_TLS_KEY=/dev/null"}, "tls.key": {"METE_TLS_CERT=/dev/null"}, "tls.client_ca": {"METE_TLS_CERT=/dev/null", "METE_TLS_KEY=/dev/null"},
		"admin_tls.cert": {"METE_ADMIN_TLS_KEY=/dev/null"}, "admin_tls.key": {"METE_ADMIN_TLS_CERT=/dev/null"},
		"admin_tls.client_ca": {"METE_ADMIN_TLS_CERT=/dev/null", "METE_ADMIN_TLS_KEY=/dev/null"},
		"grpc_tls.cert":       {"METE_GRPC_TLS_KEY=/dev/null"}, "grpc_tls.key": {"METE_GRPC_TLS_CERT=/dev/null"},
		"grpc_tls.client_ca": {"METE_GRPC_TLS_CERT=/dev/null", "METE_GRPC_TLS_KEY=/dev/null"},
		"resp_tls.cert":      {"METE_RESP_TLS_KEY=/dev/null"}, "resp_tls.key": {"METE_RESP_TLS_CERT=/dev/null"},
		"resp_tls.client_ca": {"METE_RESP_TLS_CERT=/dev/null", "METE_RESP_TLS_KEY=/dev/null"},
		"adaptive.law":       {"METE_UPSTREAM=http://127.0.0.1:3"}, "decision_profile": {"METE_TRUSTED_PROXIES=10.0.0.1"},
		"jwt.issuer": {"METE_JWT_KEYS=k"}, "jwt.audience": {"METE_JWT_KEYS=k"},
	}
	seen := map[string]bool{}
	for _, v := range config.Variables() {
		if want := "METE_" + strings.ToUpper(strings.ReplaceAll(v.Key, ".", "_")); v.Name != want || seen[v.Name] {
			t.Errorf("setting %s has the variable %s, want %s, once", v.Key, v.Name, want)
		}
		seen[v.Name] = true
		value := values[v.Key]
		if value == "" {
			value = map[string]string{"duration": "7s", "number": "3000", "true or false": fmt.Sprint(!boolOf(t, v.Key))}[v.Form]
		}
		environ := append([]string{"PATH=/bin", v.Name + "=" + value}, needs[v.Key]...)
		got, env, err := config.Load("", environ, nil)
		if err != nil || !slices.Contains(env.Used, v.Name) || len(env.Unknown) > 0 {
			t.Errorf("%s=%s: used %q, unknown %q, error %v", v.Name, value, env.Used, env.Unknown, err)
			continue
		}
		without, _, err := config.Load("", needs[v.Key], nil)
		if len(needs[v.Key]) == 0 && err != nil {
			t.Fatal(err)
		}
		if err != nil { // valid only together
			continue
		}
		if changed := differences(reflect.ValueOf(got), reflect.ValueOf(without), ""); !slices.Equal(changed, []string{v.Key}) {
			t.Errorf("%s=%s changes %q, want %s alone", v.Name, value, changed, v.Key)
		}
	}
	if n := len(seen); n < 69 {
		t.Errorf("%d variables, want one for each setting", n)
	}
}

// boolOf returns the default of a setting, where that is true or false.
func boolOf(t *testing.T, key string) bool {
	t.Helper()
	v := reflect.ValueOf(config.Default())
	for name := range strings.SplitSeq(key, ".") {
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("yaml") == name {
				v = v.Field(i)
				break
			}
		}
	}
	return v.Kind() == reflect.Bool && v.Bool()
}

// differences returns the settings in which a and b differ.
func differences(a, b reflect.Value, prefix string) (keys []string) {
	for i := range a.NumField() {
		key := prefix + a.Type().Field(i).Tag.Get("yaml")
		switch {
		case key == "-":
		case a.Field(i).Kind() == reflect.Struct:
			keys = append(keys, differences(a.Field(i), b.Field(i), key+".")...)
		case !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()):
			keys = append(keys, key)
		}
	}
	return keys
}

// A flag overrides the environment, the environment the file, and the file the defaults.
func TestEnvironment_Precedence(t *testing.T) {
	path := write(t, `
listen: 127.0.0.1:10
admin_listen: 127.0.0.1:20
log_level: error
policy: file.yaml
store: memory:?file=of-the-file
trusted_proxies: [10.0.0.0/8]
upstreams: [{name: one, urls: [http://127.0.0.1:1]}, {name: two, urls: [http://127.0.0.1:2]}]
routes: [{path: /, upstream: one}]
timeouts: {drain: 1s, idle: 1s}
hash_key: of-the-file
`)
	environ := []string{
		"METE_LISTEN=127.0.0.1:11", "METE_ADMIN_LISTEN=127.0.0.1:21", "METE_POLICY=env.yaml", "METE_TRUSTED_PROXIES=[]",
		"METE_UPSTREAMS=[{name: one, urls: [http://127.0.0.1:3]}]", "METE_TIMEOUTS_DRAIN=2s", "METE_STORE=memory:?file=of-the-environment",
		"METE_HASH_KEY=$${a}${b}", "METE_LOG_LEVEL=", // taken as it is; empty is none
	}
	got, env, err := config.Load(path, environ, []config.Setting{{Key: "listen", Value: "127.0.0.1:12"}})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Listen, want.AdminListen, want.LogLevel = "127.0.0.1:12", "127.0.0.1:21", "error"
	want.Policy, want.Store = "env.yaml", storeurl.MustParse("memory:?file=of-the-environment") // of the working directory
	want.TrustedProxies = []netip.Prefix{}
	want.Upstreams = []config.Upstream{{Name: "one", URLs: urls("http://127.0.0.1:3")}}
	want.Routes = []config.Route{{Path: "/", Upstream: "one"}}
	want.Timeouts.Drain, want.Timeouts.Idle, want.HashKey = 2*time.Second, time.Second, "$${a}${b}"
	if !sameConfig(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if used := []string{"METE_POLICY", "METE_STORE", "METE_LISTEN", "METE_ADMIN_LISTEN", "METE_UPSTREAMS", "METE_TRUSTED_PROXIES", "METE_HASH_KEY", "METE_TIMEOUTS_DRAIN"}; !slices.Equal(env.Used, used) {
		t.Errorf("used %q, want %q", env.Used, used)
	}
	if got.Policy == filepath.Join(filepath.Dir(path), "env.yaml") {
		t.Error("a path in the environment is relative to the file")
	}

	// A variable or a flag also replaces a value that has an error, but no error elsewhere.
	for _, tt := range []struct {
		file, variable string
		flags          []config.Setting
		want           string // the error; empty if there is none
	}{
		{file: "admin_tokens:\n- {name: a, role: read, token: '${METE_TEST_UNSET}'}\n- {nam: b}\n- c\n", variable: "METE_ADMIN_TOKENS=[]"},
		{file: "timeouts: {drain: soon}\n", variable: "METE_TIMEOUTS_DRAIN=2s"},
		{file: "jwt: {keys: '${METE_TEST_UNSET}'}\n", variable: "METE_JWT_KEYS=keys.json"},
		{file: "trusted_proxies: [[10.0.0.0/8]]\n", variable: "METE_TRUSTED_PROXIES=10.0.0.1"},
		{file: "listen: '${METE_TEST_UNSET}'\n", flags: []config.Setting{{Key: "listen", Value: ":80"}}},
		{variable: "METE_TRUST_JWT=perhaps", flags: []config.Setting{{Key: "trust_jwt", Value: "true"}}},
		{file: "timeouts: {drain: soon, idle: soon}\n", variable: "METE_TIMEOUTS_DRAIN=2s", want: ":1:31: timeouts.idle: \"soon\" is not a duration"},
		{file: "upstream: '${METE_TEST_UNSET}'\n", variable: "METE_UPSTREAMS=[]", want: ":1:11: upstream: the environment variable METE_TEST_UNSET is not set"},
		{file: "timeouts: 5s\n", variable: "METE_TIMEOUTS_DRAIN=2s", want: ": timeouts: must be a mapping"},
		{file: "timeouts: {drain: soon}\n", variable: "METE_TIMEOUTS_DRAIN=later", want: "environment: METE_TIMEOUTS_DRAIN: \"later\" is not a duration"},
		{file: "listen: [\n", variable: "METE_LISTEN=:80", want: ":1:9: not YAML: "},
	} {
		_, _, err := config.Load(write(t, tt.file), []string{tt.variable}, tt.flags)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("file %q, %s, flags %v:\n got %v\nwant %q alone", tt.file, tt.variable, tt.flags, err, tt.want)
		}
	}
}

// A bad value names its variable, the value and the remedy, and no secret.
func TestEnvironment_BadValues(t *testing.T) {
	for _, tt := range []struct{ pair, want string }{
		{"METE_TIMEOUTS_DRAIN=5", `environment: METE_TIMEOUTS_DRAIN: "5" is not a duration: write a number and a unit, such as 500ms, 10s or 2m`},
		{"METE_LOG_LEVEL=loud", `environment: METE_LOG_LEVEL: must be debug, info, warn or error, not "loud"`},
		{"METE_MAX_IN_FLIGHT=many", `environment: METE_MAX_IN_FLIGHT: "many" is not a whole number`},
		{"METE_JITTER=perhaps", `environment: METE_JITTER: "perhaps" is neither true nor false`},
		{"METE_TRUSTED_PROXIES=10.0.0.0/33,x", `environment: METE_TRUSTED_PROXIES: "10.0.0.0/33", "x" are neither addresses nor CIDRs`},
		{"METE_TRUSTED_PROXIES=10.0.0.0/8,x", `environment: METE_TRUSTED_PROXIES: "x" is neither an address nor a CIDR`},
		{"METE_STORE=mysql://user:hunter2@db", `environment: METE_STORE: "mysql": unknown kind of store`},
		{"METE_UPSTREAM=http://user:hunter2@127.0.0.1", "environment: METE_UPSTREAM: must be a scheme"},
		{"METE_ADMIN_TOKENS=hunter2hunter2hunter2", "environment: METE_ADMIN_TOKENS: must be a list of mappings"},
		{"METE_ADMIN_TOKENS=[{name: a, role: read, token: hunter2}]", "environment: METE_ADMIN_TOKENS: admin_tokens[0].token: must be 16 to"},
		{"METE_ADMIN_TOKENS=[{name: a, role: read, token: *hunter2}]", "environment: METE_ADMIN_TOKENS: not YAML: unknown anchor; put a value that begins with * in quotes"},
		{"METE_ADMIN_TOKENS=[{name: a, name: b}]", "environment: METE_ADMIN_TOKENS: admin_tokens[0].name: already set on line 1"},
		{"METE_ADMIN_TOKENS=\n- name: a\n  rol: read", "environment: METE_ADMIN_TOKENS:3:3: admin_tokens[0].rol: unknown setting; did you mean role?"},
		{"METE_ADMIN_TOKENS=[{name: hunter2", "environment: METE_ADMIN_TOKENS: not YAML: "},
		{"METE_UPSTREAMS=# none", "environment: METE_UPSTREAMS: has no value: write [] for an empty list"},
		{"METE_UPSTREAMS=[{name: app, urls: [ftp://x]}]", "environment: METE_UPSTREAMS: upstreams[0]: "},
		{"METE_JWT_KEYS=", "environment: METE_JWT_KEYS: is empty, which would disable the check: unset it, or give it a value"},
		{"METE_POLICY_KEYS=", "environment: METE_POLICY_KEYS: is empty"},
		{"METE_JWT_AUDIENCE=a,,b", "environment: METE_JWT_AUDIENCE: "},
	} {
		path := write(t, "timeouts: { drain: 3s }\nadmin_tokens: [{name: b, role: read, token: 0123456789abcdef}]\n")
		_, _, err := config.Load(path, []string{tt.pair}, nil)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s:\n got %v\nwant %s", tt.pair, err, tt.want)
		}
	}
	// Errors of the file name its line, and errors of a flag no variable.
	path := write(t, "log_level: loud\n")
	_, _, err := config.Load(path, []string{"METE_LOG_FORMAT=xml", "METE_LISTEN=x"}, []config.Setting{{Key: "listen", Value: "y"}})
	want := "listen: \"y\" is not host:port, such as 127.0.0.1:8080 or :8080\nenvironment: METE_LOG_FORMAT: must be text or json, not \"xml\"\n" +
		path + ":1:12: log_level: must be debug, info, warn or error, not \"loud\""
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// Load warns about a variable whose name is almost a setting, or begins like one. It ignores the variables of
// tests and tools, and the variables that Kubernetes sets for a Service.
func TestEnvironment_Unknown(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"METE_LISTN", "METE_LISTN is not a setting: did you mean METE_LISTEN?"},
		{"METE_LISTEN_ADDRESS", "METE_LISTEN_ADDRESS is not a setting: did you mean METE_LISTEN?"},
		{"METE_listen_address", "METE_listen_address is not a setting: did you mean METE_LISTEN?"},
		{"METE_ADMIN_LISTEN_ADDRESS", "METE_ADMIN_LISTEN_ADDRESS is not a setting: did you mean METE_ADMIN_LISTEN?"},
		{"METE_TLS_CERTIFICATE_FILE", "METE_TLS_CERTIFICATE_FILE is not a setting: did you mean METE_TLS_CERT?"},
		{"METE_UPSTREAM_ADDRESS", "METE_UPSTREAM_ADDRESS is not a setting: did you mean METE_UPSTREAM?"},
		{"METE_ADDRESS", ""}, {"METE_LISTENING_ADDRESS", ""}, {"METE_TEST_LISTEN", ""},
		{"METE_STOER", "METE_STOER is not a setting: did you mean METE_STORE?"},
		{"METE_TIMEOUT_DRAIN", "METE_TIMEOUT_DRAIN is not a setting: did you mean METE_TIMEOUTS_DRAIN?"},
		{"METE_ADMIN_TOKEN", "METE_ADMIN_TOKEN is not a setting: did you mean METE_ADMIN_TOKENS?"},
		{"METE_Listen", "METE_Listen is not a setting: did you mean METE_LISTEN?"},
		{"METE_", ""}, {"METE_X", ""}, {"METER_LISTEN", ""}, {"mete_listen", ""},
		{"METE_CONFIG", ""}, {"METE_TOKEN", ""}, {"METE_SERVER", ""}, {"METE_PROGRAM", ""}, {"METE_SOAK", ""}, {"METE_CHROMIUM", ""}, {"METE_SCREENSHOTS", ""},
		{"METE_TEST_REDIS", ""}, {"METE_TEST_POSTGRES", ""}, {"METE_TEST_LONG", ""}, {"METE_TEST_CLOCK", ""},
		{"METE_PORT", ""}, {"METE_SERVICE_HOST", ""}, {"METE_SERVICE_PORT", ""}, {"METE_SERVICE_PORT_HTTP", ""},
		{"METE_PORT_80_TCP", ""}, {"METE_PORT_80_TCP_ADDR", ""}, {"METE_PORT_80_TCP_PORT", ""}, {"METE_PORT_80_TCP_PROTO", ""},
		{"METE_LISTEN_PORT_8080_TCP", ""}, {"METE_ADMIN_PORT", ""}, {"METE_STORE_SERVICE_HOST", ""}, {"METE_STORE_PORT", ""}, {"METE_TLS_PORT", ""}, {"METE_TLS_PORT_443_TCP", ""},
	} {
		got, env, err := config.Load("", []string{tt.name + "=tcp://10.0.0.1:80"}, nil)
		if err != nil || !sameConfig(got, config.Default()) || len(env.Used) > 0 || strings.Join(env.Unknown, "\n") != tt.want {
			t.Errorf("%s: error %v, used %q, unknown %q; want the defaults, and %q", tt.name, err, env.Used, env.Unknown, tt.want)
		}
	}
	// The file reads these.
	t.Setenv("METE_ADMIN_TOKEN", "0123456789abcdef")
	t.Setenv("METE_HASH_KEY_OF_TODAY", "secret")
	path := write(t, "admin_tokens: [{name: a, role: read, token: '${METE_ADMIN_TOKEN}'}]\nhash_key: ${METE_HASH_KEY_OF_TODAY}\n")
	if _, env, err := config.Load(path, []string{"METE_ADMIN_TOKEN=0123456789abcdef", "METE_HASH_KEY_OF_TODAY=secret"}, nil); err != nil || len(env.Unknown) > 0 {
		t.Errorf("a variable of the file: %v, unknown %q", err, env.Unknown)
	}
	// No setting has the name of such a link: Kubernetes would set it.
	link := regexp.MustCompile(`_SERVICE_|_PORT$|_PORT_`)
	for _, v := range config.Variables() {
		if link.MatchString(v.Name) {
			t.Errorf("Kubernetes sets %s for a service: name the setting otherwise", v.Name)
		}
	}
}
