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
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metehq/mete/policy"
)

// ranks are the places of fields in an object, as people write them.
var ranks = func() map[string]int {
	ranks := map[string]int{}
	for i, name := range policy.FieldOrder() {
		ranks[name] = i
	}
	return ranks
}()

// WriteYAML writes a policy file that is given in JSON as YAML, a rule on a few lines.
func WriteYAML(w io.Writer, file []byte) error {
	dec := json.NewDecoder(bytes.NewReader(file))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return fmt.Errorf("policyyaml: write: %w", err)
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(node(v, 0, ruleDepth(v))); err != nil {
		return fmt.Errorf("policyyaml: write: %w", err)
	}
	return enc.Close()
}

// ruleDepth is how deep rules are: below a list of the file, or one of each policy of a
// bundle.
func ruleDepth(file any) int {
	if o, ok := file.(map[string]any); ok && o["policies"] != nil {
		return 5
	}
	return 2
}

// limitsDepth is how deep below a rule lines of their own reach: its limits. What is in
// there stands on one line.
const limitsDepth = 2

// node turns a JSON value into YAML. Rules are as deep as that says.
func node(v any, depth, rules int) *yaml.Node {
	n := &yaml.Node{}
	switch v := v.(type) {
	case map[string]any:
		n.Kind = yaml.MappingNode
		names := slices.SortedFunc(maps.Keys(v), func(a, b string) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b)) })
		for _, name := range names {
			at := depth + 1
			switch {
			case depth == rules-2 && name == "fallback_limit":
				at = rules
			case depth == rules && name != "limits", depth == rules-2 && name != "rules":
				at = rules + limitsDepth
			}
			n.Content = append(n.Content, text(name), node(v[name], at, rules))
		}
	case []any:
		n.Kind = yaml.SequenceNode
		for _, item := range v {
			n.Content = append(n.Content, node(item, depth+1, rules))
		}
	case string:
		return text(v)
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}
	default: // a number in its own digits, or a boolean
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}
	}
	if depth >= rules+limitsDepth {
		n.Style = yaml.FlowStyle
	}
	return n
}

// rank returns the place of a field. Names that policies do not have follow all fields.
func rank(name string) int {
	if i, ok := ranks[name]; ok {
		return i
	}
	return len(ranks)
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
