// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/bundle"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/internal/spell"
	"github.com/metehq/mete/policyyaml/yamltree"
)

// A place is a position in a file or a variable, counted from 1. The zero place means no position.
type place struct{ line, column int }

func placeOf(n *yamltree.Node) place { return place{n.Line, n.Column} }

// A decoder sets fields and collects errors with their places.
type decoder struct {
	config    *Config
	file      string
	dir       string           // base of relative paths in URLs; empty: working directory
	places    map[string]place // of settings in the file or a variable, by key
	flags     map[string]bool  // keys that were set by a flag
	variables map[string]string
	expanded  map[string]bool // names of expanded ${NAME}
	literal   bool            // do not expand ${NAME}
	errors    Errors
}

// fail records an error. Each setting reports only its first error.
func (d *decoder) fail(key, format string, args ...any) {
	at := d.place(key)
	if !slices.ContainsFunc(d.errors, func(e Error) bool { return e.Key == key && e.Line == at.line }) {
		d.failAt(at, key, format, args...)
	}
}

func (d *decoder) failAt(at place, key, format string, args ...any) {
	e := Error{File: d.file, Line: at.line, Column: at.column, Key: key, Reason: fmt.Sprintf(format, args...)}
	list, _, _ := strings.Cut(key, "[")
	if e.Variable = d.variables[list]; e.Variable != "" {
		e.File = ""
	} else if d.flags[key] || at == (place{}) {
		e.File, e.Line, e.Column = "", 0, 0
	}
	d.errors = append(d.errors, e)
}

// place returns the place of a setting, or the place of the parent that lacks it.
func (d *decoder) place(key string) place {
	for {
		at, ok := d.places[key]
		i := strings.LastIndexAny(key, ".[")
		if ok || i < 0 || d.flags[key] {
			return at
		}
		key = key[:i]
	}
}

// mapping sets the fields of the struct v from a mapping. Unknown keys are errors.
func (d *decoder) mapping(n *yamltree.Node, v reflect.Value, prefix string) {
	if n.Kind != yamltree.Mapping {
		d.failAt(placeOf(n), strings.TrimSuffix(prefix, "."), "must be a mapping of keys to values")
		return
	}
	seen := map[string]int{}
	for _, f := range n.Fields {
		name, key := f.Key.Value, prefix+f.Key.Value
		if first, twice := seen[name]; twice {
			d.failAt(placeOf(f.Key), key, "already set on line %d: remove one of them", first)
			continue
		}
		seen[name] = f.Key.Line
		field, ok := fieldByKey(v, name)
		if !ok || f.Key.Kind != yamltree.Scalar {
			d.failAt(placeOf(f.Key), key, "unknown setting%s", suggest(v, name))
			continue
		}
		d.places[key] = placeOf(f.Key)
		if f.Value.Kind == yamltree.Scalar {
			d.places[key] = placeOf(f.Value)
		}
		d.value(f.Value, field, key)
	}
}

func (d *decoder) value(n *yamltree.Node, v reflect.Value, key string) {
	n = n.Resolve()
	switch {
	case v.Kind() == reflect.Struct:
		d.mapping(n, v, key+".")
	case isMappings(v.Type()):
		d.mappings(n, v, key)
	case v.Kind() == reflect.Slice && n.Kind == yamltree.List:
		var parts []string
		for _, item := range n.Items {
			if item.Kind != yamltree.Scalar {
				d.failAt(placeOf(item), key, "must be a list of plain values")
				return
			}
			if enablesCheck(key) && item.Value == "" {
				d.fail(key, "has an empty item, which would disable the check")
			}
			parts = append(parts, item.Value)
		}
		d.set(v, key, strings.Join(parts, ","))
	case n.Kind != yamltree.Scalar:
		d.fail(key, "must be a plain value")
	default:
		d.set(v, key, n.Value)
	}
}

const maxItems = 1000

// mappings sets the slice of structs v from a list of mappings. The first item has the key key[0].
func (d *decoder) mappings(n *yamltree.Node, v reflect.Value, key string) {
	switch {
	case n.Kind != yamltree.List:
		d.fail(key, "must be a list of mappings: begin each with a dash, or write [{name: …}]")
		return
	case len(n.Items) > maxItems:
		d.fail(key, "has %d items: at most %d are allowed", len(n.Items), maxItems)
		return
	}
	v.SetZero()
	if len(n.Items) > 0 {
		v.Set(reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items)))
	}
	for i, item := range n.Items {
		at := fmt.Sprintf("%s[%d]", key, i)
		d.places[at] = placeOf(item)
		d.value(item, v.Index(i), at)
	}
}

// automatic is the default of a setting that is otherwise true or false.
const automatic = "auto"

// choice returns nil for automatic.
func (d *decoder) choice(key, text string) *bool {
	if text == automatic {
		return nil
	}
	chosen, err := strconv.ParseBool(text)
	if err != nil {
		d.fail(key, "%q is neither auto, true nor false", text)
	}
	return &chosen
}

// set sets one setting from text. It expands ${NAME} from the environment and splits lists at commas.
func (d *decoder) set(v reflect.Value, key, text string) {
	written := text
	if !d.literal {
		var ok bool
		if text, ok = d.expand(key, text); !ok {
			return
		}
	}
	if enablesCheck(key) && written != "" && slices.ContainsFunc(strings.Split(text, ","), isBlank) {
		d.fail(key, "%q is empty, or has an empty item, which would disable the check", written)
	}
	var err error
	switch p := v.Addr().Interface().(type) {
	case *string:
		if *p = text; key == "policy" {
			d.policyLocation(key, text)
		}
	case *bool:
		if *p, err = strconv.ParseBool(text); err != nil {
			d.fail(key, "%q is neither true nor false", text)
		}
	case **bool:
		*p = d.choice(key, text)
	case *int:
		if *p, err = strconv.Atoi(text); err != nil {
			d.fail(key, "%q is not a whole number", text)
		}
	case *float64:
		if *p, err = strconv.ParseFloat(text, 64); err != nil {
			d.fail(key, "%q is not a number", text)
		}
	case *time.Duration:
		if *p, err = bucket.ParseDuration(text); err != nil && text != "0" {
			d.fail(key, "%q is not a duration: write a number and a unit, such as 500ms, 10s or 2m", text)
		}
	case *httpapi.Role:
		if *p, err = httpapi.ParseRole(text); err != nil {
			d.fail(key, "must be read, operate or configure, not %q", text)
		}
	case *[]string:
		*p = list(text)
	case *[]netip.Prefix:
		*p = d.prefixes(key, text)
	case **url.URL:
		*p = nil
		if text != "" {
			*p = d.url(key, "is", text)
		}
	case *[]*url.URL:
		*p = nil
		for _, part := range list(text) {
			*p = append(*p, d.url(key, "one is", part))
		}
	case **storeurl.URL:
		*p = nil
		switch {
		case text == "":
		case key == "store":
			if *p, err = storeurl.ParseIn(d.dir, text); err != nil {
				d.fail(key, "%s", strings.TrimPrefix(err.Error(), "store: "))
			}
		default:
			*p = d.database(key, text)
		}
	default:
		panic(fmt.Sprintf("config: %s has the unsupported type %v", key, v.Type()))
	}
}

// policyLocation parses the policy setting if it is not a file.
func (d *decoder) policyLocation(key, text string) {
	c := d.config
	c.PolicyDatabase, c.PolicyBundle = nil, nil
	switch {
	case storeurl.IsPostgres(text):
		c.PolicyDatabase = d.database(key, text)
	case bundle.IsURL(text):
		u, err := bundle.ParseURL(text)
		if err != nil {
			d.fail(key, "%v", err)
			u = new(url.URL)
		}
		c.PolicyBundle = u
	}
}

func (d *decoder) database(key, text string) *storeurl.URL {
	u, err := storeurl.ParsePostgres(d.dir, text)
	if err != nil {
		d.fail(key, "%v", err)
	}
	return u
}

// url parses the URL of an HTTP server. The error omits the text, which can contain a password.
func (d *decoder) url(key, subject, text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		d.fail(key, "%s not a URL such as http://127.0.0.1:3000", subject)
		return new(url.URL)
	}
	return u
}

// enablesCheck reports whether a setting enables a security check that is off by default. An empty variable is
// then an error, because it would disable the check.
func enablesCheck(key string) bool {
	return slices.Contains([]string{"policy_keys", "jwt.keys", "jwt.issuer", "jwt.audience"}, key)
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

func list(text string) []string {
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// prefixes parses a comma-separated list of addresses and CIDRs.
func (d *decoder) prefixes(key, text string) []netip.Prefix {
	var out []netip.Prefix
	var invalid []string
	for _, part := range list(text) {
		if addr, err := netip.ParseAddr(part); err == nil && addr.Zone() == "" {
			out = append(out, netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(part)
		if err != nil {
			invalid = append(invalid, strconv.Quote(part))
			continue
		}
		out = append(out, p.Masked())
	}
	switch len(invalid) {
	case 0:
	case 1:
		d.fail(key, "%s is neither an address nor a CIDR such as 10.0.0.0/8", invalid[0])
	default:
		d.fail(key, "%s are neither addresses nor CIDRs such as 10.0.0.0/8", strings.Join(invalid, ", "))
	}
	return out
}

// variable matches ${NAME} and the escape $${.
var variable = regexp.MustCompile(`\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// oddVariable matches shell syntax that is not supported, such as ${NAME:-default}.
var oddVariable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)[^A-Za-z0-9_}][^}]*\}`)

// expand replaces variables in the text of a setting. A variable that is not set or has a default is an error.
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
			d.fail(key, "the environment variable %s is not set", name)
			ok = false
		}
		return value
	})
	odd := oddVariable.FindStringSubmatch(strings.ReplaceAll(text, "$${", ""))
	if odd != nil { // show the name only: a default can be a password
		d.fail(key, "${%s must end with }: write ${%s}, defaults are not supported, or $${ for a literal ${", odd[1], odd[1])
		ok = false
	}
	return expanded, ok
}

func fieldByKey(v reflect.Value, name string) (reflect.Value, bool) {
	if v.Kind() == reflect.Struct && name != "-" {
		for f, field := range v.Fields() {
			if f.Tag.Get("yaml") == name {
				return field, true
			}
		}
	}
	return reflect.Value{}, false
}

// suggest returns a hint with the name that was probably meant.
func suggest(v reflect.Value, name string) string {
	var known []string
	for f := range v.Fields() {
		known = append(known, f.Tag.Get("yaml"))
	}
	if near := spell.Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return "; 'mete help config' lists all settings"
}
