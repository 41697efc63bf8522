// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/internal/spell"
)

// A decoder fills settings from YAML nodes and collects what is wrong. It
// remembers the line of every key it has seen.
type decoder struct {
	file      string
	dir       string // what relative paths in URLs count from; empty: the working directory
	config    *Config
	lines     map[string]int
	flags     map[string]bool   // keys whose value is a flag's
	variables map[string]string // keys whose value is the environment's, with its variable
	expanded  map[string]bool   // names of the ${NAME} that were read
	literal   bool              // ${NAME} has no meaning
	errors    Errors
}

// fail collects a mistake. A setting has one: the first.
func (d *decoder) fail(key string, format string, args ...any) {
	e := Error{File: d.file, Line: d.lines[key], Key: key, Reason: fmt.Sprintf(format, args...)}
	if e.Variable = d.variableOf(key); e.Variable != "" {
		e.File = ""
	} else if d.flags[key] || e.Line == 0 && key != "" {
		e.File, e.Line = "", 0
	}
	for _, other := range d.errors {
		if other.Key == key && other.Line == e.Line {
			return
		}
	}
	d.errors = append(d.errors, e)
}

// variableOf returns the variable with the value of a setting, or with the list that the
// setting is in. It is empty where the value is not from the environment.
func (d *decoder) variableOf(key string) string {
	list, _, _ := strings.Cut(key, "[")
	return d.variables[list]
}

// mapping fills the struct v from a mapping whose keys are all known.
func (d *decoder) mapping(n *yaml.Node, v reflect.Value, prefix string) {
	if n.Kind != yaml.MappingNode {
		d.fail(strings.TrimSuffix(prefix, "."), "must be a mapping of keys to values")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		key := prefix + name.Value
		if first, twice := d.lines[key]; twice {
			again := Error{File: d.file, Line: name.Line, Key: key, Reason: fmt.Sprintf("already said on line %d", first)}
			if again.Variable = d.variableOf(key); again.Variable != "" {
				again.File = ""
			}
			d.errors = append(d.errors, again)
			continue
		}
		d.lines[key] = name.Line
		field, ok := fieldByKey(v, name.Value)
		if !ok {
			d.fail(key, "unknown setting%s", suggest(v, name.Value))
			continue
		}
		d.value(value, field, key)
	}
}

// value fills one setting from a node of its kind.
func (d *decoder) value(n *yaml.Node, v reflect.Value, key string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case v.Kind() == reflect.Struct:
		d.mapping(n, v, key+".")
	case isMappings(v.Type()):
		d.mappings(n, v, key)
	case v.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
		var parts []string
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				d.fail(key, "must be a list of plain values")
				return
			}
			if checks(key) && item.Value == "" {
				d.fail(key, "has an empty item: nothing would be checked by it")
			}
			parts = append(parts, item.Value)
		}
		d.set(v, key, strings.Join(parts, ","))
	case n.Kind != yaml.ScalarNode:
		d.fail(key, "must be a plain value")
	default:
		d.set(v, key, n.Value)
	}
}

// maxItems bounds a list of mappings.
const maxItems = 1000

// mappings fills the slice of structs v from a list of mappings. What is within the
// first of them is called key[0].
func (d *decoder) mappings(n *yaml.Node, v reflect.Value, key string) {
	switch {
	case n.Kind != yaml.SequenceNode:
		d.fail(key, "must be a list of mappings: begin each with a dash, or write [{name: …}]")
		return
	case len(n.Content) > maxItems:
		d.fail(key, "has %d items: at most %d can be", len(n.Content), maxItems)
		return
	}
	v.SetZero()
	if len(n.Content) > 0 {
		v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	}
	for i, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", key, i)
		d.lines[at] = item.Line
		d.value(item, v.Index(i), at)
	}
}

// set fills one setting from text, in which ${NAME} stands for the environment
// variable NAME. Lists are separated by commas.
func (d *decoder) set(v reflect.Value, key, text string) {
	written := text
	if !d.literal {
		var ok bool
		if text, ok = d.expand(key, text); !ok {
			return
		}
	}
	if checks(key) && written != "" && slices.ContainsFunc(strings.Split(text, ","), isBlank) {
		d.fail(key, "%q is empty, or has an empty item: nothing would be checked by it", written)
	}
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p = text
		if key == "policy" {
			d.config.PolicyDatabase = nil
			if storeurl.IsPostgres(text) {
				d.config.PolicyDatabase = d.database(key, text)
			}
		}
	case **storeurl.URL:
		*p = nil
		switch {
		case text == "":
		case key == "store":
			u, err := storeurl.ParseIn(d.dir, text)
			if err != nil {
				d.fail(key, "%s", strings.TrimPrefix(err.Error(), "store: "))
			}
			*p = u
		default:
			*p = d.database(key, text)
		}
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			d.fail(key, "%q is neither true nor false", text)
		}
		*p = b
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			d.fail(key, "%q is not a whole number", text)
		}
		*p = n
	case *float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			d.fail(key, "%q is not a number", text)
		}
		*p = f
	case *time.Duration:
		dur, err := bucket.ParseDuration(text)
		if err != nil && text != "0" {
			d.fail(key, "%q is not a duration: write a number and a unit, such as 500ms, 10s or 2m", text)
		}
		*p = dur
	case *[]string:
		*p = list(text)
	case *[]netip.Prefix:
		*p = d.prefixes(key, text)
	default:
		panic(fmt.Sprintf("config: %s has the unsupported type %v", key, v.Type()))
	}
}

// database parses the URL of a PostgreSQL.
func (d *decoder) database(key, text string) *storeurl.URL {
	u, err := storeurl.ParsePostgres(d.dir, text)
	if err != nil {
		d.fail(key, "%v", err)
	}
	return u
}

// checks reports whether the setting is about what is believed. Left out, it is off;
// said with a variable that is empty, it is a mistake that nobody would notice.
func checks(key string) bool {
	return slices.Contains([]string{"policy_keys", "jwt.keys", "jwt.issuer", "jwt.audience"}, key)
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// list returns the parts of text between commas.
func list(text string) []string {
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// prefixes reads addresses and CIDRs separated by commas.
func (d *decoder) prefixes(key, text string) []netip.Prefix {
	var out []netip.Prefix
	for _, part := range list(text) {
		if addr, err := netip.ParseAddr(part); err == nil && addr.Zone() == "" {
			out = append(out, netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(part)
		if err != nil {
			d.fail(key, "%q is neither an address nor a CIDR such as 10.0.0.0/8", part)
			continue
		}
		out = append(out, p.Masked())
	}
	return out
}

// variable matches ${NAME}, and $${ for a ${ that is meant as it stands.
var variable = regexp.MustCompile(`\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// oddVariable matches what a shell would take for a variable, such as ${NAME:-default}.
var oddVariable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)[^A-Za-z0-9_}][^}]*\}`)

// expand replaces variables in the text of a setting. It fails the setting where one
// is not set or has a default.
func (d *decoder) expand(key, text string) (expanded string, ok bool) {
	ok = true
	expanded = variable.ReplaceAllStringFunc(text, func(m string) string {
		if m == "$${" {
			return "${"
		}
		name := m[2 : len(m)-1]
		d.expanded[name] = true
		value, set := os.LookupEnv(name)
		if !set {
			d.fail(key, "the environment has no %s", name)
			ok = false
		}
		return value
	})
	odd := oddVariable.FindStringSubmatch(strings.ReplaceAll(text, "$${", ""))
	if odd != nil { // not all of it is shown: a default can be a password
		d.fail(key, "${%s is followed by something: write ${%s}, which has no default here, or $${ for a ${ that is meant as it stands", odd[1], odd[1])
		ok = false
	}
	return expanded, ok
}

// fieldByKey finds the field of struct v that has the yaml name.
func fieldByKey(v reflect.Value, name string) (reflect.Value, bool) {
	if v.Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("yaml") == name {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// suggest names the setting that a misspelt one was meant to be.
func suggest(v reflect.Value, name string) string {
	var known []string
	for i := range v.NumField() {
		known = append(known, v.Type().Field(i).Tag.Get("yaml"))
	}
	if near := spell.Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return "; 'mete help config' shows all there are"
}
