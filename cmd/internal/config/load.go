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

	"github.com/metehq/mete/cmd/internal/storeurl"
)

// maxFileBytes bounds a configuration file. A larger one is refused.
const maxFileBytes = 1 << 20

// A Setting overrides the file: what a flag says.
type Setting struct {
	Key, Value string // "log_level", "debug"
}

// Load returns the defaults, changed by the file at path, if path is not empty,
// and then by the settings. Every mistake is reported at once: unless the file
// cannot be read, the error is an [Errors].
func Load(path string, settings []Setting) (Config, error) {
	c := Default()
	d := decoder{file: path, lines: map[string]int{}, flags: map[string]bool{}}
	if path != "" {
		if err := d.loadFile(&c, path); err != nil {
			return Config{}, err
		}
	}
	for _, s := range settings {
		d.override(&c, s)
	}
	d.check(&c)
	if len(d.errors) > 0 {
		slices.SortStableFunc(d.errors, func(a, b Error) int { return a.Line - b.Line })
		return Config{}, d.errors
	}
	return c, nil
}

// loadFile decodes the file at path into c.
func (d *decoder) loadFile(c *Config, path string) error {
	data, err := readFile(path)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err = dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF): // nothing but comments: the defaults
		return nil
	case err != nil:
		return Errors{{File: path, Reason: strings.TrimPrefix(err.Error(), "yaml: ")}}
	case len(doc.Content) != 1 || dec.Decode(new(yaml.Node)) != io.EOF:
		return Errors{{File: path, Reason: "must be one YAML document"}}
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil
	}
	d.mapping(root, reflect.ValueOf(c).Elem(), "")
	if storeurl.IsPostgres(c.Policy) {
		c.Policy = storeurl.Under(filepath.Dir(path), c.Policy)
	} else if c.Policy != "" && !filepath.IsAbs(c.Policy) {
		c.Policy = filepath.Join(filepath.Dir(path), c.Policy)
	}
	c.Store = storeurl.Under(filepath.Dir(path), c.Store)
	c.Violations = storeurl.Under(filepath.Dir(path), c.Violations)
	return nil
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
	d.flags[s.Key] = true
	v, ok := fieldByKey(reflect.ValueOf(c).Elem(), s.Key)
	if !ok {
		d.fail(s.Key, "unknown setting")
		return
	}
	d.set(v, s.Key, s.Value)
}
