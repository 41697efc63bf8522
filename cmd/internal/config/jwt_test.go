// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
)

func TestLoad_JWT(t *testing.T) {
	path := write(t, `policy: p.yaml
policy_keys: [a.pem, /etc/b.pem]
jwt:
  keys: jwks.json
  algorithms: [EdDSA]
  issuer: https://id.example.com
  audience: [api, search]
  leeway: 1m
`)
	dir := filepath.Dir(path)
	got, err := load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	j := got.JWT
	if j.Keys != filepath.Join(dir, "jwks.json") || !slices.Equal(j.Algorithms, []string{"EdDSA"}) || j.Issuer != "https://id.example.com" ||
		!slices.Equal(j.Audience, []string{"api", "search"}) || j.Leeway != time.Minute {
		t.Errorf("got %+v", j)
	}
	if want := []string{filepath.Join(dir, "a.pem"), "/etc/b.pem"}; !slices.Equal(got.PolicyKeys, want) {
		t.Errorf("policy keys %q, want %q", got.PolicyKeys, want)
	}
	got, err = load(path, []config.Setting{{Key: "jwt.keys", Value: "https://id.example.com/jwks"}, {Key: "policy_keys", Value: "c.pem"}})
	if err != nil || got.JWT.Keys != "https://id.example.com/jwks" || got.JWT.Issuer != "https://id.example.com" || !slices.Equal(got.PolicyKeys, []string{"c.pem"}) {
		t.Errorf("with flags: %+v, %q, %v; want theirs as they are, and the rest of the file", got.JWT, got.PolicyKeys, err)
	}
}

func TestLoad_JWTMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"jwt: { keys: a, algorithms: [none] }":                      `:1:17: jwt.algorithms: algorithm "none" is not a signature`,
		"jwt: { keys: a, algorithms: [RS256, RS256] }":              ":1:17: jwt.algorithms: duplicate algorithm RS256",
		"jwt: { keys: a, algorithms: [HS1] }":                       ":1:17: jwt.algorithms: unknown algorithm",
		"jwt: { keys: a, algorithms: [] }":                          ":1:17: jwt.algorithms: is empty",
		"jwt: { keys: ftp://id.example.com }":                       ":1:14: jwt.keys: ",
		"jwt: { keys: \"https://u:hunter2@id.example.com/\" }":      ":1:14: jwt.keys: the URL must have neither a user",
		"jwt: { keys: a, leeway: 1h }":                              ":1:25: jwt.leeway: must be between 0s and 10m0s",
		"jwt: { keys: a, leeway: -1s }":                             ":1:25: jwt.leeway: ",
		"jwt: { issuer: a }":                                        "jwt.keys: must name the key set",
		"jwt: { audience: a }":                                      "jwt.keys: must name the key set",
		"jwt: { keys: a }\ntrust_jwt: true":                         ":2:12: trust_jwt: excludes jwt.keys",
		"jwt: a":                                                    "jwt: must be a mapping",
		"jwt: { kees: a }":                                          "jwt.kees: unknown setting; did you mean keys?",
		"policy_keys: a.pem":                                        ":1:14: policy_keys: needs a policy file",
		"policy_keys: a.pem\npolicy: postgres://127.0.0.1/database": ":1:14: policy_keys: requires a policy file",
	} {
		_, err := load(write(t, text+"\n"), nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, key := range []string{"jwt.nonsense", "jwt.keys.x", "timeouts..drain"} {
		if _, err := load("", []config.Setting{{Key: key, Value: "1"}}); err == nil || !strings.Contains(err.Error(), key+": unknown setting") {
			t.Errorf("setting %s: %v, want that it is unknown", key, err)
		}
	}
}

// Settings that say what is checked are not turned off by an empty variable.
func TestLoad_EmptyChecks(t *testing.T) {
	t.Setenv("METE_TEST_EMPTY", "")
	t.Setenv("METE_TEST_FULL", "full")
	for text, wrong := range map[string]bool{
		"policy: p\npolicy_keys: '${METE_TEST_EMPTY}'":                            true,
		"policy: p\npolicy_keys: ['${METE_TEST_EMPTY}']":                          true,
		"policy: p\npolicy_keys: [a.pem, '${METE_TEST_EMPTY}']":                   true,
		"policy: p\npolicy_keys: ['']":                                            true,
		"jwt: { keys: '${METE_TEST_EMPTY}' }":                                     true,
		"jwt: { keys: k.json, issuer: '${METE_TEST_EMPTY}' }":                     true,
		"jwt: { keys: k.json, audience: ['${METE_TEST_EMPTY}'] }":                 true,
		"jwt: { keys: '${METE_TEST_FULL}', issuer: '', audience: [] }":            false,
		"policy: p\npolicy_keys: []":                                              false,
		"policy: p\npolicy_keys: ['${METE_TEST_FULL}']\nupstream: ''":             false,
		"upstream: '${METE_TEST_EMPTY}'\njwt: { keys: '', audience: '' }":         false,
		"jwt: { keys: a, audience: ['${METE_TEST_FULL}', '${METE_TEST_EMPTY}'] }": true,
	} {
		if _, err := load(write(t, text), nil); wrong != (err != nil && strings.Contains(err.Error(), "which would disable the check")) {
			t.Errorf("%s: error %v, want one: %v", text, err, wrong)
		}
	}
}
