// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/excerpt"
	"github.com/metehq/mete/policyyaml/yamltree"
)

// An Error is one error in the settings.
type Error struct {
	File         string // the configuration file; empty if the value is not from a file
	Variable     string // the environment variable with the value: "METE_TIMEOUTS_DRAIN"
	Line, Column int    // in File or Variable, from 1; 0: in neither
	Key          string // "timeouts.drain"
	Reason       string // the error, and the remedy

	// Excerpt shows the place in File with a caret, without comments and secrets. Its
	// lines have line ends. It is empty if the value is not from a file.
	Excerpt string
}

// Error formats e on one line, as "mete.yaml:12:9: timeouts.drain: reason", or as
// "environment: METE_TIMEOUTS_DRAIN: reason".
func (e Error) Error() string {
	var b strings.Builder
	place, key := e.File, e.Key
	if e.Variable != "" {
		place = "environment: " + e.Variable
		if variableOf(key) == e.Variable { // its name is the key
			key = ""
		}
	}
	if place != "" {
		b.WriteString(place)
		if e.Line > 1 || e.Line == 1 && e.File != "" { // most variables are one line
			fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
		}
		b.WriteString(": ")
	}
	if key != "" {
		b.WriteString(key + ": ")
	}
	return b.String() + e.Reason
}

// Errors are all errors in the settings.
type Errors []Error

// Error lists the errors, one on each line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// sort puts the errors in the order of the file. Errors without a file are first.
func (es Errors) sort() {
	position := func(e Error) int {
		if e.File == "" {
			return 0
		}
		return e.Line<<20 + e.Column
	}
	slices.SortStableFunc(es, func(a, b Error) int { return position(a) - position(b) })
}

// annotate adds the excerpts of the file with these contents.
func (es Errors) annotate(file string, data []byte) {
	var masked string
	for i := range es {
		if es[i].File != file || es[i].Line == 0 {
			continue
		}
		if masked == "" {
			masked = yamltree.Mask(data, isPublic)
		}
		es[i].Excerpt = excerpt.Of(masked, es[i].Line, es[i].Column)
	}
}

// public are the names of the settings that never hold a secret.
var public = func() map[string]bool {
	names := map[string]bool{}
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		for f := range t.Fields() {
			name := f.Tag.Get("yaml")
			shown, known := names[name]
			names[name] = (shown || !known) && f.Tag.Get("secret") == ""
			if f.Type.Kind() == reflect.Struct {
				add(f.Type)
			} else if isMappings(f.Type) {
				add(f.Type.Elem())
			}
		}
	}
	add(reflect.TypeFor[Config]())
	return names
}()

// isPublic reports whether the value of a setting with this name can be shown. An unknown
// name may be a misspelled hash_key.
func isPublic(name string) bool { return public[name] }
