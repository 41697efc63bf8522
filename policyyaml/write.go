// SPDX-License-Identifier: Apache-2.0

package policyyaml

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/policy"
)

var ranks = func() map[string]int {
	ranks := map[string]int{}
	for i, name := range policy.FieldOrder() {
		ranks[name] = i
	}
	return ranks
}()

// WriteYAML writes a policy file in JSON as YAML, with each rule on a few lines.
func WriteYAML(w io.Writer, file []byte) error {
	dec := json.NewDecoder(bytes.NewReader(file))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return fmt.Errorf("policyyaml: write: %w", err)
	}
	out := writer{rules: ruleDepth(v)}
	out.writeValue(v, 0, "")
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("policyyaml: write: %w", err)
	}
	return nil
}

// ruleDepth returns the nesting depth of rules: in a list of the file, or of each policy in a bundle.
func ruleDepth(file any) int {
	if o, ok := file.(map[string]any); ok && o["policies"] != nil {
		return 5
	}
	return 2
}

// limitsDepth is the depth of limits below a rule. Values down to this depth get lines of their own, and deeper
// values share a line.
const limitsDepth = 2

type writer struct {
	bytes.Buffer
	rules int // the depth of rules
}

func (w *writer) writeValue(v any, depth int, indent string) {
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	switch {
	case isObject && len(object) > 0 && depth < w.rules+limitsDepth:
		w.writeObject(object, depth, indent)
	case isList && len(list) > 0 && depth < w.rules+limitsDepth:
		for _, item := range list {
			if w.Len() > 0 {
				w.WriteString("\n" + indent)
			}
			w.WriteByte('-')
			w.writeValue(item, depth+1, indent+"  ")
		}
	default:
		if w.Len() > 0 {
			w.WriteByte(' ')
		}
		w.writeInline(v)
	}
	if depth == 0 {
		w.WriteByte('\n')
	}
}

func (w *writer) writeObject(v map[string]any, depth int, indent string) {
	for i, name := range fields(v) {
		switch {
		case w.Len() == 0:
		case i == 0 && bytes.HasSuffix(w.Bytes(), []byte("-")):
			w.WriteByte(' ')
		default:
			w.WriteString("\n" + indent)
		}
		w.WriteString(quote(name) + ":")
		at := depth + 1
		switch {
		case depth == w.rules-2 && name == "fallback_limit":
			at = w.rules
		case depth == w.rules && name != "limits", depth == w.rules-2 && name != "rules":
			at = w.rules + limitsDepth
		}
		w.writeValue(v[name], at, indent+"  ")
	}
}

func (w *writer) writeInline(v any) {
	switch v := v.(type) {
	case map[string]any:
		for i, name := range fields(v) {
			w.WriteString([]string{"{", ", "}[min(i, 1)] + quote(name) + ": ")
			w.writeInline(v[name])
		}
		w.WriteString([]string{"{}", "}"}[min(len(v), 1)])
	case []any:
		for i, item := range v {
			w.WriteString([]string{"[", ", "}[min(i, 1)])
			w.writeInline(item)
		}
		w.WriteString([]string{"[]", "]"}[min(len(v), 1)])
	case string:
		w.WriteString(quote(v))
	case nil:
		w.WriteString("null")
	default: // a number in its original digits, or a boolean
		fmt.Fprint(w, v)
	}
}

func fields(v map[string]any) []string {
	return slices.SortedFunc(maps.Keys(v), func(a, b string) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b)) })
}

func rank(name string) int {
	if i, ok := ranks[name]; ok {
		return i
	}
	return len(ranks)
}

// word matches strings that are safe without quotes.
var word = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*([-/ ][A-Za-z0-9_]+)*$`)

// quote writes a string, without quotes if every YAML parser reads it as a string.
func quote(s string) string {
	if !word.MatchString(s) || len(s) <= 5 && slices.Contains(reserved, strings.ToLower(s)) {
		return strconv.Quote(s) // all escapes of Go mean the same in YAML
	}
	return s
}

// reserved are words with a meaning in some version of YAML.
var reserved = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
