// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/policyyaml/yamltree"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mete.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// urls parses URLs that are valid.
func urls(raw ...string) (parsed []*url.URL) {
	for _, r := range raw {
		u, err := url.Parse(r)
		if err != nil {
			panic(err)
		}
		parsed = append(parsed, u)
	}
	return parsed
}

// load loads settings without an environment.
func load(path string, settings []config.Setting) (config.Config, error) {
	c, _, err := config.Load(path, nil, settings)
	return c, err
}

func TestSample_IsTheDefaults(t *testing.T) {
	got, err := load(write(t, config.Sample), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := config.Default(); !sameConfig(got, want) {
		t.Errorf("the sample decodes to\n%+v\nwant the defaults\n%+v", got, want)
	}
}

// A relative path in the store's URL counts from the file, as that of the policy.
func TestLoad_PathsAreRelativeToTheFile(t *testing.T) {
	path := write(t, "policy: p.yaml\nstore: memory:?file=b&every=5s\n")
	got, err := load(path, nil)
	dir := filepath.Dir(path)
	if err != nil || got.Policy != filepath.Join(dir, "p.yaml") || got.Store.String() != "memory:?file="+dir+"/b&every=5s" {
		t.Errorf("policy %q, store %q, error %v; want both in %s", got.Policy, got.Store, err, dir)
	}
	got, err = load(path, []config.Setting{{Key: "store", Value: "memory:?file=b"}})
	if err != nil || got.Store.String() != "memory:?file=b" {
		t.Errorf("store %q, error %v; want the flag's as it is", got.Store, err)
	}
}

// sameConfig takes an empty list for no list.
func sameConfig(a, b config.Config) bool {
	if len(a.TrustedProxies) == 0 && len(b.TrustedProxies) == 0 {
		a.TrustedProxies, b.TrustedProxies = nil, nil
	}
	return reflect.DeepEqual(a, b)
}

func TestSample_HasEverySetting(t *testing.T) {
	root, err := yamltree.Parse([]byte(config.Sample))
	if err != nil {
		t.Fatal(err)
	}
	checkHas(t, "", root, reflect.TypeFor[config.Config]())
}

func checkHas(t *testing.T, prefix string, doc *yamltree.Node, typ reflect.Type) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		key := f.Tag.Get("yaml")
		if key == "-" {
			continue
		}
		i := slices.IndexFunc(doc.Fields, func(f yamltree.Field) bool { return f.Key.Value == key })
		if key == "" || i < 0 {
			t.Errorf("setting %q (field %s) is not in the sample", prefix+key, f.Name)
			continue
		}
		if f.Type.Kind() == reflect.Struct {
			checkHas(t, prefix+key+".", doc.Fields[i].Value, f.Type)
		}
	}
}

func TestLoad_NothingSaid(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "null\n", "{}\n"} {
		got, err := load(write(t, text), nil)
		if err != nil || !sameConfig(got, config.Default()) {
			t.Errorf("Load(%q) = %+v, %v; want the defaults", text, got, err)
		}
	}
	if got, err := load("", nil); err != nil || !sameConfig(got, config.Default()) {
		t.Errorf("Load without a file = %+v, %v; want the defaults", got, err)
	}
}

func TestLoad_FlagsOverride(t *testing.T) {
	t.Setenv("METE_TEST_HOST", "10.1.2.3")
	path := write(t, `
listen: ${METE_TEST_HOST}:80
hash_key: $${literal}
upstream: not a url
trusted_proxies: [10.0.0.0/8, "::1"]
timeouts: { drain: 1d }
policy: p.yaml
`)
	got, err := load(path, []config.Setting{
		{Key: "upstream", Value: "http://127.0.0.1:9"},
		{Key: "trust_jwt", Value: "true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Listen, want.HashKey, want.Upstream = "10.1.2.3:80", "${literal}", urls("http://127.0.0.1:9")[0]
	want.TrustJWT, want.Timeouts.Drain = true, 24*time.Hour
	want.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	want.Policy = filepath.Join(filepath.Dir(path), "p.yaml")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func TestLoad_ReportsEveryMistake(t *testing.T) {
	path := write(t, `listen: nowhere
adminlisten: 127.0.0.1:1
admin_listen: 127.0.0.1:99999
listen: 127.0.0.1:2
upstream: ftp://x
store: ${METE_TEST_UNSET}
trust_jwt: perhaps
trusted_proxies: [10.0.0.0/33, fe80::1%eth0, 10.0.0.1]
max_header_bytes: many
jitter: 2
log_format: xml
reload_interval: 5
timeouts:
  drain: -1s
  idle: 2d
  dain: 1s
decision_profile: [nginx]
frobnicate: true
`)
	_, err := load(path, []config.Setting{{Key: "log_level", Value: "loud"}})
	var got config.Errors
	if !errors.As(err, &got) {
		t.Fatalf("Load: %v, want config.Errors", err)
	}
	for _, want := range []string{
		":1:9: listen: ",
		":2:1: adminlisten: unknown setting; did you mean admin_listen?",
		":3:15: admin_listen: ",
		":4:1: listen: already set on line 1: remove one of them",
		":5:11: upstream: ",
		":6:8: store: the environment variable METE_TEST_UNSET is not set",
		":7:12: trust_jwt: ",
		":8:1: trusted_proxies: ",
		":9:19: max_header_bytes: ",
		":10:9: jitter: ",
		":11:13: log_format: must be text or json, not \"xml\"",
		":12:18: reload_interval: ",
		":14:10: timeouts.drain: ",
		":15:9: timeouts.idle: ",
		":16:3: timeouts.dain: unknown setting",
		":17:1: decision_profile: ",
		":18:1: frobnicate: unknown setting",
	} {
		if !strings.Contains(err.Error(), path+want) {
			t.Errorf("no mistake %q in\n%v", want, err)
		}
	}
	if !strings.Contains(err.Error(), "log_level: must be") {
		t.Errorf("the flag's mistake is missing or blamed on the file:\n%v", err)
	}
	if len(got) != 18 {
		t.Errorf("%d mistakes, want 18:\n%v", len(got), err)
	}
}

func TestLoad_BadFiles(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"not YAML", "a: [", ":1:4: not YAML: "},
		{"a list", "- a\n", "must be a mapping"},
		{"a word", "hello\n", "must be a mapping"},
		{"two documents", "{}\n---\n{}\n", ":2:1: a second document begins here: the settings must be one YAML document"},
		{"a mapping where a value belongs", "listen: {a: b}\n", "listen: must be a plain value"},
		{"a list where a mapping belongs", "timeouts: [1]\n", "timeouts: must be a mapping"},
		{"a nested list", "trusted_proxies: [[a]]\n", "must be a list of plain values"},
		{"too large", "# " + strings.Repeat("x", 1<<20), "larger than"},
		{"same addresses", "admin_listen: 127.0.0.1:8080\n", "must differ"},
		{"no dialect", "rate_limit_fields: []\n", "write none to send none"},
		{"none and another", "rate_limit_fields: [none, x]\n", "cannot be combined with other dialects"},
		{"a dialect twice", "rate_limit_fields: [x, x]\n", "twice"},
		{"an unknown dialect", "rate_limit_fields: [draft-99]\n", "use draft-11, legacy, x or none"},
		{"everybody trusted", "trusted_proxies: [0.0.0.0/0]\n", "use trusted_hops if"},
		{"another database", "store: mysql://user:hunter2@db/x\n", ":1:8: store: \"mysql\": unknown kind of store"},
		{"no number of keys", "store: memory:?max_keys=many\n", ":1:8: store: max_keys: "},
		{"no certificate", "listen: 127.0.0.1:1\ntls: { cert: none.pem, key: none.key }\n", ":2:14: tls.cert: stat "},
		{"no authority", "admin_tls:\n  cert: /dev/null\n  key: /dev/null\n  client_ca: none.pem\n", ":4:14: admin_tls.client_ca: stat "},
		{"a default", "listen: ${HOST:-secret}:8080\n", ":1:9: listen: ${HOST must end with }: write ${HOST}, defaults are not supported"},
		{"a default of nothing", "listen: 127.0.0.1:${METE_TEST_UNSET-1}\n", "defaults are not supported"},
		{"a mapped prefix", "trusted_proxies: [\"::ffff:10.0.0.0/104\"]\n", "write it as IPv4"},
		{"a gateway nobody trusts", "decision_profile: nginx\n", "needs trusted_proxies"},
		{"hops and proxies", "trusted_hops: 1\ntrusted_proxies: 10.0.0.1\n", "excludes trusted_proxies"},
		{"a negative body", "max_body_bytes: -1\n", "max_body_bytes: must be 0"},
		{"many hops", "trusted_hops: 33\n", "between 0 and 32"},
		{"no header name", "forwarded_header: a b\n", "is not a header name"},
		{"binary", "\x00\x01", ":1:1: not YAML: the file has the control character 0x00"},
	}
	for _, tt := range tests {
		if _, err := load(write(t, tt.text), nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want an error with %q", tt.name, err, tt.want)
		}
	}
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	if _, err := load(missing, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of a missing file: %v, want os.ErrNotExist", err)
	}
	if _, err := load("", []config.Setting{{Key: "nonsense", Value: "1"}}); err == nil {
		t.Error("an unknown setting was accepted")
	}
}

func TestLoad_DefaultsAreNotShown(t *testing.T) {
	if _, err := load(write(t, "hash_key: ${KEY:-hunter2}\n"), nil); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v, want an error without the default", err)
	}
	for _, text := range []string{"hash_key: $${KEY:-hunter2}\n", "hash_key: ${\n", "hash_key: ${1:-x}\n"} { // none of a variable
		if _, err := load(write(t, text), nil); err != nil {
			t.Errorf("%q: %v, want none", text, err)
		}
	}
}

func TestLooksLike(t *testing.T) {
	for text, want := range map[string]bool{
		config.Sample:                            true,
		"listen: x\nstore: y\n":                  true,
		`{"listen": "x", "upstream": "y"}`:       true,
		"listen: x\nstore: y\nfrobnicate: z\n":   true,
		"listen: x\n":                            false,
		"listen: x\nstore: y\nrules: []\n":       false,
		"jitter: 0.5\nname: a\nlimit_keys: []\n": false,
		"- listen\n- store\n":                    false,
		"a: [":                                   false,
		"":                                       false,
	} {
		if got := config.LooksLike([]byte(text)); got != want {
			t.Errorf("LooksLike(%.60q) = %v, want %v", text, got, want)
		}
	}
}
