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
	File         string // configuration file; empty for other sources
	Variable     string // environment variable, such as METE_TIMEOUTS_DRAIN
	Line, Column int    // position in File or Variable, from 1; 0 for neither
	Key          string // such as timeouts.drain
	Reason       string // the error and its remedy

	// Excerpt shows the place in File with a caret, without comments and secrets. Every line ends with a newline.
	// It is empty if the value is not from a file.
	Excerpt string
}

// Error formats e on one line, as "mete.yaml:12:9: timeouts.drain: reason" or "environment: METE_TIMEOUTS_DRAIN:
// reason".
func (e Error) Error() string {
	var b strings.Builder
	place, key := e.File, e.Key
	if e.Variable != "" {
		place = "environment: " + e.Variable
		if variableOf(key) == e.Variable { // the variable is named after the key
			key = ""
		}
	}
	if place != "" {
		b.WriteString(place)
		if e.Line > 1 || e.Line == 1 && e.File != "" { // most variables have one line
			fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
		}
		b.WriteString(": ")
	}
	if key != "" {
		b.WriteString(key + ": ")
	}
	return b.String() + e.Reason
}

// Errors lists all errors in the settings.
type Errors []Error

// Error returns one error per line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// sort sorts the errors by position. Errors without a file come first.
func (es Errors) sort() {
	position := func(e Error) int {
		if e.File == "" {
			return 0
		}
		return e.Line<<20 + e.Column
	}
	slices.SortStableFunc(es, func(a, b Error) int { return position(a) - position(b) })
}

// annotate sets the excerpts from the contents of the file.
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

// public contains the names of settings that never hold a secret.
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

// isPublic reports whether the value of a setting may be shown. Unknown names are not public, because they may be
// a misspelled hash_key.
func isPublic(name string) bool { return public[name] }
