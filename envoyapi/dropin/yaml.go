// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/spell"
	"github.com/metehq/mete/policyyaml/yamltree"
)

// A File is a configuration file in YAML or JSON.
type File struct {
	Name string // for errors
	Data []byte
}

const (
	// MaxValues bounds the lists and mappings of one file. An alias counts as often as the file refers to it, so that a small
	// file cannot become a large configuration.
	MaxValues = 250_000

	// maxDepth bounds the nesting of values, including aliases.
	maxDepth = 2 * yamltree.MaxDepth
)

// Parse reads configuration files in their order. The error is a [*ConfigError] with the file, the line, the wrong
// value and a remedy.
//
// Scalars have their meaning in YAML 1.1, as for the reference server: yes and on are booleans, and 010 is 8. A key of
// another place is ignored, and so is all but the last of several equal keys: see [Config.Warnings].
func Parse(files []File, o ConfigOptions) (*Config, error) {
	r := &reader{}
	var sources []*source
	for _, f := range files {
		s, err := r.readFile(f)
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	return compile(sources, r.warnings, o)
}

// keys are the 16 keys of the configuration.
var keys = []string{
	"domain", "descriptors", "key", "value", "rate_limit", "unit", "requests_per_unit", "unlimited", "name", "replaces",
	"shadow_mode", "quota_mode", "detailed_metric", "value_to_metric", "share_threshold", "metadata",
}

// A reader converts YAML trees to sources.
type reader struct {
	file     string
	values   int // of the current file
	depth    int
	warnings []string
}

func (r *reader) readFile(f File) (*source, error) {
	r.file, r.values, r.depth = f.Name, 0, 0
	root, err := yamltree.Parse(f.Data)
	if e, ok := errors.AsType[*yamltree.SyntaxError](err); ok {
		return nil, place{file: f.Name, line: e.Line, column: e.Column}.fail(e.Hint, "%s", e.Reason)
	}
	if err != nil {
		return nil, fmt.Errorf("dropin: %s: %w", f.Name, err)
	}
	s := &source{at: place{file: f.Name, line: 1, column: 1}}
	if root == nil {
		return s, nil
	}
	s.at = r.place(root)
	err = r.readFields(root, func(key string, v *yamltree.Node) (bool, error) {
		var err error
		switch key {
		case "domain":
			s.at = r.place(v)
			s.domain, err = r.readText(key, v)
		case "descriptors":
			s.descriptors, err = r.readDescriptors(v)
		default:
			return false, nil
		}
		return true, err
	})
	return s, err
}

func (r *reader) readDescriptors(list *yamltree.Node) ([]descriptorSource, error) {
	var all []descriptorSource
	err := r.readList("descriptors", list, func(item *yamltree.Node) error {
		d := descriptorSource{at: r.place(item)}
		err := r.readFields(item, func(key string, v *yamltree.Node) (bool, error) {
			var err error
			switch key {
			case "key":
				d.key, err = r.readText(key, v)
			case "value":
				d.value, err = r.readText(key, v)
			case "rate_limit":
				d.limit, err = r.readLimit(v)
			case "descriptors":
				d.descriptors, err = r.readDescriptors(v)
			case "shadow_mode":
				d.shadow, err = r.readBool(key, v)
			case "quota_mode":
				d.quota, err = r.readBool(key, v)
			case "detailed_metric":
				d.detailed, err = r.readBool(key, v)
			case "value_to_metric":
				d.valueToMetric, err = r.readBool(key, v)
			case "share_threshold":
				d.shared, err = r.readBool(key, v)
			case "metadata":
				d.metadata, err = r.readMetadata(v)
			default:
				return false, nil
			}
			return true, err
		})
		all = append(all, d)
		return err
	})
	return all, err
}

func (r *reader) readLimit(n *yamltree.Node) (*limitSource, error) {
	if n.Resolve().IsNull() {
		return nil, nil
	}
	l := &limitSource{at: r.place(n)}
	err := r.readFields(n, func(key string, v *yamltree.Node) (bool, error) {
		var err error
		switch key {
		case "requests_per_unit":
			l.requests, err = r.readCount(key, v)
		case "unit":
			l.at = r.place(v)
			l.unit, err = r.readText(key, v)
		case "unlimited":
			l.unlimited, err = r.readBool(key, v)
		case "name":
			l.name, err = r.readText(key, v)
		case "replaces":
			l.replaces = nil
			err = r.readList(key, v, func(item *yamltree.Node) error {
				other := replacementSource{at: r.place(item)}
				err := r.readFields(item, func(key string, v *yamltree.Node) (bool, error) {
					if key != "name" {
						return false, nil
					}
					var err error
					other.name, err = r.readText(key, v)
					return true, err
				})
				l.replaces = append(l.replaces, other)
				return err
			})
		default:
			return false, nil
		}
		return true, err
	})
	return l, err
}

// readFields calls f with the fields of a mapping. Fields of a merge key come first, so that the mapping's own fields
// replace them. F returns false for a key that has no meaning in the mapping.
func (r *reader) readFields(n *yamltree.Node, f func(key string, v *yamltree.Node) (bool, error)) error {
	leave, err := r.enter(n)
	if err != nil {
		return err
	}
	defer leave()
	m := n.Resolve()
	if m.IsNull() {
		return nil
	}
	if m.Kind != yamltree.Mapping {
		return r.place(n).fail("write KEY: VALUE", "a %s instead of a mapping", kindOf(m))
	}
	for _, field := range m.Fields {
		if !isMerge(field.Key) {
			continue
		}
		if err := r.mergeFields(field.Value, f); err != nil {
			return err
		}
	}
	var seen []string
	for _, field := range m.Fields {
		if isMerge(field.Key) {
			continue
		}
		key, err := r.readKey(field.Key)
		if err != nil {
			return err
		}
		used, err := f(key, field.Value)
		if err != nil {
			return err
		}
		if !used {
			r.warn(field.Key, "key %q has no effect here", key)
			if err := r.checkKeys(field.Value); err != nil {
				return err
			}
		}
		if slices.Contains(seen, key) {
			r.warn(field.Key, "key %q replaces an earlier one", key)
		}
		seen = append(seen, key)
	}
	return nil
}

// mergeFields calls f with the fields of a merge key's value: a mapping, or a list of mappings of which the first one
// replaces the later ones.
func (r *reader) mergeFields(n *yamltree.Node, f func(string, *yamltree.Node) (bool, error)) error {
	leave, err := r.enter(n)
	if err != nil {
		return err
	}
	defer leave()
	v := n.Resolve()
	if v.Kind != yamltree.List {
		if v.Kind != yamltree.Mapping {
			return r.place(n).fail("write <<: *ANCHOR", "the merge key << has a %s instead of a mapping", kindOf(v))
		}
		return r.readFields(n, f)
	}
	for _, item := range slices.Backward(v.Items) {
		if item.Resolve().Kind != yamltree.Mapping {
			return r.place(item).fail("write <<: *ANCHOR", "the merge key << has a %s instead of a mapping", kindOf(item.Resolve()))
		}
		if err := r.readFields(item, f); err != nil {
			return err
		}
	}
	return nil
}

func isMerge(key *yamltree.Node) bool {
	return key.Kind == yamltree.Scalar && key.Plain && key.Value == "<<"
}

func (r *reader) readKey(n *yamltree.Node) (string, error) {
	key := n.Resolve()
	if key.Kind != yamltree.Scalar || !isText(key) {
		return "", r.place(n).fail("the keys are "+strings.Join(keys, ", "), "a key is a %s instead of text", kindOf(key))
	}
	if !slices.Contains(keys, key.Value) {
		hint := "the keys are " + strings.Join(keys, ", ")
		if near := spell.Nearest(key.Value, keys); near != "" {
			hint = fmt.Sprintf("write %s", near)
		}
		return "", r.place(n).fail(hint, "unknown key %q", key.Value)
	}
	return key.Value, nil
}

// checkKeys checks the keys in a value without effect. The reference server rejects unknown keys everywhere.
func (r *reader) checkKeys(n *yamltree.Node) error {
	switch n.Resolve().Kind {
	case yamltree.Mapping:
		return r.readFields(n, func(key string, v *yamltree.Node) (bool, error) {
			if key == "metadata" {
				return true, nil
			}
			return true, r.checkKeys(v)
		})
	case yamltree.List:
		return r.readList("", n, r.checkKeys)
	}
	return nil
}

func (r *reader) readList(key string, n *yamltree.Node, f func(*yamltree.Node) error) error {
	leave, err := r.enter(n)
	if err != nil {
		return err
	}
	defer leave()
	list := n.Resolve()
	switch {
	case list.IsNull():
		return nil
	case list.Kind != yamltree.List:
		return r.place(n).fail("begin each entry with a dash", "%s is a %s instead of a list", key, kindOf(list))
	}
	for _, item := range list.Items {
		if item.Resolve().Kind != yamltree.Mapping {
			return r.place(item).fail("write KEY: VALUE", "a list has a %s instead of a mapping", kindOf(item.Resolve()))
		}
		if err := f(item); err != nil {
			return err
		}
	}
	return nil
}

// enter counts a value and bounds the nesting. The caller calls leave after the value.
func (r *reader) enter(n *yamltree.Node) (leave func(), err error) {
	if r.values++; r.values > MaxValues {
		return nil, r.place(n).fail("split the file, or use fewer aliases", "the file has more than %d values, with its aliases", MaxValues)
	}
	if r.depth++; r.depth > maxDepth {
		return nil, r.place(n).fail("remove an alias that refers to itself", "the values are nested more than %d deep, with their aliases", maxDepth)
	}
	return func() { r.depth-- }, nil
}

func (r *reader) place(n *yamltree.Node) place {
	return place{file: r.file, line: n.Line, column: n.Column}
}

func (r *reader) warn(n *yamltree.Node, format string, args ...any) {
	r.warnings = append(r.warnings, r.place(n).fail("", format, args...).text())
}
