// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/metehq/mete/cmd/internal/smallfile"
	"github.com/metehq/mete/policyyaml/yamltree"
)

const maxFileBytes = 1 << 20

// A Setting is the value of a flag. It overrides the file and the environment.
type Setting struct {
	Key, Value string // such as "log_level", "debug"; dots separate levels
}

// Load returns the defaults, overridden by the file at path, the variables in environ and the flags in settings,
// in this order. An empty path means no file; environ has the form of [os.Environ]. A later source replaces the
// whole value, even an invalid one. Load reports all errors together as [Errors], unless the file cannot be read.
// The Environment is valid even if Load fails.
func Load(path string, environ []string, settings []Setting) (Config, Environment, error) {
	c := Default()
	d := decoder{config: &c, file: path, places: map[string]place{}, flags: map[string]bool{}, variables: map[string]string{}, expanded: map[string]bool{}}
	var data []byte
	if path != "" {
		var err error
		if data, err = smallfile.Read(path, maxFileBytes); err != nil {
			return Config{}, Environment{}, fmt.Errorf("config: %w", err)
		}
		if !d.loadFile(data) {
			d.errors.annotate(path, data)
			return Config{}, Environment{}, d.errors
		}
	}
	env := d.loadEnvironment(&c, environ)
	for _, s := range settings {
		d.override(&c, s)
	}
	d.check(&c)
	if len(d.errors) > 0 {
		d.errors.sort()
		d.errors.annotate(path, data)
		return Config{}, env, d.errors
	}
	return c, env, nil
}

// loadFile decodes the file. It returns false if the contents are not YAML.
func (d *decoder) loadFile(data []byte) bool {
	root, at, reason := parseYAML(data)
	switch {
	case reason != "":
		d.failAt(at, "", "%s", reason)
		return false
	case root == nil: // nothing but comments: the defaults
		return true
	}
	d.dir = filepath.Dir(d.file)
	d.mapping(root, reflect.ValueOf(d.config).Elem(), "")
	d.config.resolvePaths(d.dir)
	d.dir = ""
	return true
}

// parseYAML returns the root of the document in data, or nil if it is empty. If data is invalid, it returns a
// reason without values.
func parseYAML(data []byte) (root *yamltree.Node, at place, reason string) {
	root, err := yamltree.Parse(data)
	var e *yamltree.SyntaxError
	switch {
	case err == nil:
		return root, place{}, ""
	case !errors.As(err, &e):
		return nil, place{1, 1}, err.Error()
	case e.Reason == yamltree.SecondDocument:
		reason = e.Reason + ": the settings must be one YAML document"
	case e.Hint != "":
		reason = "not YAML: " + e.Reason + "; " + e.Hint
	default:
		reason = "not YAML: " + e.Reason
	}
	return nil, place{e.Line, e.Column}, reason
}

// resolvePaths makes relative paths relative to the directory of the file.
func (c *Config) resolvePaths(dir string) {
	under := func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(dir, path)
	}
	if c.PolicyDatabase == nil && c.PolicyBundle == nil {
		c.Policy = under(c.Policy)
	}
	c.PolicyCA, c.StateDirectory = under(c.PolicyCA), under(c.StateDirectory)
	for i := range c.PolicyKeys {
		c.PolicyKeys[i] = under(c.PolicyKeys[i])
	}
	for _, t := range []*TLS{&c.TLS, &c.AdminTLS, &c.GRPCTLS, &c.RESPTLS} {
		t.Cert, t.Key, t.ClientCA = under(t.Cert), under(t.Key), under(t.ClientCA)
	}
	for i := range c.AdminTokens {
		c.AdminTokens[i].File = under(c.AdminTokens[i].File)
	}
	for i := range c.Upstreams {
		c.Upstreams[i].CA = under(c.Upstreams[i].CA)
	}
	if !strings.Contains(c.JWT.Keys, "://") {
		c.JWT.Keys = under(c.JWT.Keys)
	}
	for _, file := range []*string{&c.GeoIP.Country, &c.GeoIP.ASN, &c.GeoIP.TorExits} {
		*file = under(*file)
	}
}

func (d *decoder) override(c *Config, s Setting) {
	d.drop(s.Key)
	d.flags[s.Key] = true
	delete(d.variables, s.Key)
	v := reflect.ValueOf(c).Elem()
	for name := range strings.SplitSeq(s.Key, ".") {
		var ok bool
		if v, ok = fieldByKey(v, name); !ok {
			d.fail(s.Key, "unknown setting")
			return
		}
	}
	d.set(v, s.Key, s.Value)
}

// policyKeys are keys that only policy files have. Every policy file has at least one of them.
var policyKeys = []string{"rules", "policies", "overrides", "kill_switches", "bundle_version", "tests", "spec",
	"limit_keys", "limits", "algorithm", "algorithm_config", "match"}

// LooksLike reports whether data looks like a configuration file and not like a policy.
func LooksLike(data []byte) bool {
	if len(data) > maxFileBytes {
		return false
	}
	root, err := yamltree.Parse(data)
	if err != nil || root == nil {
		return false
	}
	settings := 0
	for _, f := range root.Fields {
		if slices.Contains(policyKeys, f.Key.Value) {
			return false
		}
		if _, ok := fieldByKey(reflect.ValueOf(Config{}), f.Key.Value); ok {
			settings++
		}
	}
	return settings >= 2
}
