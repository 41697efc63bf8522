// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/internal/spell"
)

const (
	variablePrefix = "METE_"
	testPrefix     = variablePrefix + "TEST_" // of the tests of mete, not of settings
)

// A Variable is the environment variable of one setting.
type Variable struct {
	Name string // such as METE_TIMEOUTS_DRAIN
	Key  string // of the setting, such as timeouts.drain
	Form string // form of its value, such as duration
}

// Variables returns the variables of all settings, in the order of [Config].
func Variables() []Variable {
	return variablesOf(reflect.TypeFor[Config](), "")
}

func variablesOf(t reflect.Type, prefix string) []Variable {
	var all []Variable
	for f := range t.Fields() {
		if f.Tag.Get("yaml") == "-" {
			continue
		}
		key := prefix + f.Tag.Get("yaml")
		if f.Type.Kind() == reflect.Struct {
			all = append(all, variablesOf(f.Type, key+".")...)
			continue
		}
		all = append(all, Variable{Name: variableOf(key), Key: key, Form: formOf(f.Type)})
	}
	return all
}

func variableOf(key string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

func formOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case isMappings(t):
		return "list of mappings, YAML or JSON"
	case t.Kind() == reflect.Slice:
		return "list, separated by commas"
	case t == reflect.TypeFor[*bool]():
		return "auto, true or false"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Int || t.Kind() == reflect.Float64:
		return "number"
	}
	return "text"
}

func isMappings(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && t.Elem() != reflect.TypeFor[netip.Prefix]()
}

// An Environment reports how [Load] used environment variables. It contains names and no values.
type Environment struct {
	// Used lists the variables that set a value in the Config, in the order of [Variables]. Flags may override
	// them.
	Used []string

	// Unknown has warnings such as "METE_LISTN is not a setting: did you mean METE_LISTEN?" It covers variables
	// with a name close to a setting, or with the same first word.
	Unknown []string
}

// link matches the variables that Kubernetes and Docker set for a service named mete or mete-admin, such as
// METE_PORT=tcp://10.0.0.1:80. No setting has such a name.
var link = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_\d+_[A-Z]+(_(PROTO|PORT|ADDR))?)?)$`)

// maxSlips is the largest edit distance for a warning about an unknown variable, unless it has the same first word
// as a setting. It is small because tools and tests of mete use other METE_ variables.
const maxSlips = 2

// loadEnvironment applies the variables in environ. It ignores an empty variable unless that would disable a
// security check.
func (d *decoder) loadEnvironment(c *Config, environ []string) (env Environment) {
	values := map[string]string{}
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok && strings.HasPrefix(name, variablePrefix) {
			values[name] = value
		}
	}
	d.literal = true
	var names []string
	for _, v := range Variables() {
		names = append(names, v.Name)
		text, set := values[v.Name]
		if !set || text == "" && !enablesCheck(v.Key) {
			continue
		}
		d.drop(v.Key)
		d.variables[v.Key] = v.Name
		env.Used = append(env.Used, v.Name)
		if text == "" {
			d.fail(v.Key, "is empty, which would disable the check: unset it, or give it a value")
			continue
		}
		d.setVariable(c, v.Key, text)
	}
	d.literal = false
	for name := range values {
		if slices.Contains(names, name) || d.expanded[name] || link.MatchString(name) || strings.HasPrefix(name, testPrefix) {
			continue
		}
		if near := nearestVariable(name, names); near != "" {
			env.Unknown = append(env.Unknown, name+" is not a setting: did you mean "+near+"?")
		}
	}
	slices.Sort(env.Unknown)
	return env
}

func (d *decoder) setVariable(c *Config, key, text string) {
	v := reflect.ValueOf(c).Elem()
	for name := range strings.SplitSeq(key, ".") {
		v, _ = fieldByKey(v, name)
	}
	isList := v.Kind() == reflect.Slice && strings.HasPrefix(strings.TrimSpace(text), "[")
	if !isList && !isMappings(v.Type()) {
		d.set(v, key, text)
		return
	}
	root, at, reason := parseYAML([]byte(text))
	switch {
	case reason != "":
		d.failAt(at, key, "%s; write a list in YAML or JSON", reason)
	case root == nil:
		d.fail(key, "has no value: write [] for an empty list")
	default:
		d.value(root, v, key)
	}
}

// drop removes the places and errors of a setting before its value is replaced.
func (d *decoder) drop(key string) {
	isDropped := func(k string) bool { return k == key || strings.HasPrefix(k, key+"[") }
	maps.DeleteFunc(d.places, func(k string, _ place) bool { return isDropped(k) })
	d.errors = slices.DeleteFunc(d.errors, func(e Error) bool { return isDropped(e.Key) })
}

// nearestVariable returns the variable that name probably misspells, or "". It is at most maxSlips edits away or
// has the same first word, such as METE_LISTEN for METE_LISTEN_ADDRESS.
func nearestVariable(name string, known []string) string {
	name = strings.ToLower(strings.TrimPrefix(name, variablePrefix))
	first, _, more := strings.Cut(name, "_")
	var words []string
	nearest, shared := "", 0
	for _, k := range known {
		word := strings.ToLower(strings.TrimPrefix(k, variablePrefix))
		words = append(words, word)
		if begin, _, _ := strings.Cut(word, "_"); more && begin == first && sharedPrefix(name, word) > shared {
			nearest, shared = word, sharedPrefix(name, word)
		}
	}
	if near := spell.Nearest(name, words); near != "" && spell.Distance(name, near) <= maxSlips {
		nearest = near
	}
	if nearest == "" {
		return ""
	}
	return variableOf(nearest)
}

func sharedPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
