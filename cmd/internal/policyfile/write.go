// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fieldOrder is how people write the fields of a rule. Others follow, by name.
var fieldOrder = []string{"name", "description", "limit_keys", "match", "group", "mode", "algorithm", "algorithm_config", "limits",
	"on_missing", "on_store_error", "deadline", "slot_by", "rate", "rps", "tokens_per_second", "tokens", "window", "burst"}

// WriteYAML writes a policy file that is given in JSON as YAML, a rule on a few lines.
func WriteYAML(w io.Writer, file []byte) error {
	dec := json.NewDecoder(bytes.NewReader(file))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return fmt.Errorf("policyfile: write: %w", err)
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(node(v, 0)); err != nil {
		return fmt.Errorf("policyfile: write: %w", err)
	}
	return enc.Close()
}

// blockDepth is how deep lines of their own reach: the file, its rules, one of them,
// its limits. What is in there stands on one line.
const blockDepth = 4

// node turns a JSON value into YAML.
func node(v any, depth int) *yaml.Node {
	n := &yaml.Node{}
	switch v := v.(type) {
	case map[string]any:
		n.Kind = yaml.MappingNode
		names := slices.SortedFunc(maps.Keys(v), func(a, b string) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b)) })
		for _, name := range names {
			at := depth + 1
			if depth == 2 && name != "limits" {
				at = blockDepth
			}
			n.Content = append(n.Content, text(name), node(v[name], at))
		}
	case []any:
		n.Kind = yaml.SequenceNode
		for _, item := range v {
			n.Content = append(n.Content, node(item, depth+1))
		}
	case string:
		return text(v)
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}
	default: // a number in its own digits, or a boolean
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}
	}
	if depth >= blockDepth {
		n.Style = yaml.FlowStyle
	}
	return n
}

// rank is where a field stands.
func rank(name string) int {
	if i := slices.Index(fieldOrder, name); i >= 0 {
		return i
	}
	return len(fieldOrder)
}

// word are texts that nobody takes for anything else.
var word = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*([-/ ][A-Za-z0-9_]+)*$`)

// text is a string: as a plain word where every reader of YAML takes it for one.
func text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: s}
	if !word.MatchString(s) || len(s) <= 5 && slices.Contains(reserved, strings.ToLower(s)) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// reserved are words that YAML, of one version or another, has a meaning for.
var reserved = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
