// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metehq/mete/cmd/internal/bundle"
)

// maxFileBytes bounds a configuration file. A larger one is refused.
const maxFileBytes = 1 << 20

// A Setting overrides the file: what a flag says.
type Setting struct {
	Key, Value string // "log_level", "debug"; a dot is before what is within a setting
}

// Load returns the defaults, changed by the file at path, if path is not empty,
// then by the variables in environ, which has the form of [os.Environ], and then by
// the settings. Each replaces the whole value, also one that has an error. Load reports
// all errors at once: unless the file cannot be read, the error is an [Errors]. The Environment is
// valid also where Load returns an error.
func Load(path string, environ []string, settings []Setting) (Config, Environment, error) {
	c := Default()
	d := decoder{file: path, config: &c, lines: map[string]int{}, flags: map[string]bool{}, variables: map[string]string{}, expanded: map[string]bool{}}
	if path != "" {
		if err := d.loadFile(&c, path); err != nil {
			return Config{}, Environment{}, err
		}
	}
	env := d.loadEnvironment(&c, environ)
	for _, s := range settings {
		d.override(&c, s)
	}
	d.check(&c)
	if len(d.errors) > 0 {
		slices.SortStableFunc(d.errors, func(a, b Error) int { return a.fileLine() - b.fileLine() })
		return Config{}, env, d.errors
	}
	return c, env, nil
}

// loadFile decodes the file at path into c.
func (d *decoder) loadFile(c *Config, path string) error {
	data, err := readFile(path)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	root, reason := parseYAML(data)
	switch {
	case reason != "":
		return Errors{{File: path, Reason: reason}}
	case root == nil: // nothing but comments: the defaults
		return nil
	}
	d.dir = filepath.Dir(path)
	d.mapping(root, reflect.ValueOf(c).Elem(), "")
	c.beside(d.dir)
	d.dir = ""
	return nil
}

// parseYAML returns the root of the one document in data, or nil where it is empty.
// The reason is not empty where data is invalid; it shows no values.
func parseYAML(data []byte) (root *yaml.Node, reason string) {
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		return nil, ""
	case err != nil && strings.Contains(err.Error(), "unknown anchor"): // its name is the value
		return nil, "unknown anchor: put a value that begins with * in quotes"
	case err != nil:
		return nil, strings.TrimPrefix(err.Error(), "yaml: ")
	case len(doc.Content) != 1 || dec.Decode(new(yaml.Node)) != io.EOF:
		return nil, "must be one YAML document"
	}
	root = doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, ""
	}
	return root, ""
}

// beside makes relative paths relative to the directory of the file.
func (c *Config) beside(dir string) {
	under := func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(dir, path)
	}
	if c.PolicyDatabase == nil && !bundle.IsURL(c.Policy) {
		c.Policy = under(c.Policy)
	}
	c.PolicyCA, c.StateDirectory = under(c.PolicyCA), under(c.StateDirectory)
	for i := range c.PolicyKeys {
		c.PolicyKeys[i] = under(c.PolicyKeys[i])
	}
	for _, t := range []*TLS{&c.TLS, &c.AdminTLS} {
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
}

// readFile reads a whole file of bounded size.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		err = fmt.Errorf("%s: larger than %d bytes", path, maxFileBytes)
	}
	return data, err
}

// override sets what a flag says.
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
