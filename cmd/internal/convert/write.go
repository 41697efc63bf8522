// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

// checkOptions compile a policy without a server's hash_key.
var checkOptions = policy.Options{HashKey: []byte("mete convert")}

// A file is a policy file. It has Policies if a rule needs a selector, and Rules otherwise.
type file struct {
	Description string  `json:"description"`
	Rules       []Rule  `json:"rules,omitempty"`
	Policies    []entry `json:"policies,omitempty"`
}

type entry struct {
	ID   string `json:"id"`
	Spec spec   `json:"spec"`
}

type spec struct {
	Selector *Selector `json:"selector,omitempty"`
	Rules    []Rule    `json:"rules"`
}

// policyFile arranges the rules. Rules without a selector come first.
func (r *Result) policyFile() file {
	f := file{Description: fmt.Sprintf("The rate limits of %s, converted from %s.", r.From, r.File)}
	var open []Rule
	for _, rule := range r.Rules {
		if rule.Within == nil {
			open = append(open, rule)
		} else {
			f.Policies = append(f.Policies, entry{rule.Name, spec{rule.Within, []Rule{rule}}})
		}
	}
	switch {
	case len(f.Policies) == 0:
		f.Rules = open
	case len(open) > 0:
		f.Policies = append([]entry{{ruleName(r.Rules, "others"), spec{nil, open}}}, f.Policies...)
	}
	return f
}

func (r *Result) PolicyJSON() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r.policyFile()); err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	return out.Bytes(), nil
}

// YAML returns the policy in YAML. Comments at the top list the differences.
func (r *Result) YAML() ([]byte, error) {
	var out bytes.Buffer
	comment := func(first, text string) {
		for _, line := range display.Wrap(text, lineLength, "", "") {
			out.WriteString("# " + first + line + "\n")
			first = strings.Repeat(" ", len(first))
		}
	}
	comment("", fmt.Sprintf("The rate limits of %s, written by mete convert from %s: %s.", r.From, r.File, strings.Join(r.Recognized, ", ")))
	if len(r.Differences) > 0 {
		out.WriteString("#\n# Differences:\n")
	}
	for _, d := range r.Differences {
		comment("- ", d.String())
	}
	data, err := r.PolicyJSON()
	if err != nil {
		return nil, err
	}
	if err := policyyaml.WriteYAML(&out, data); err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	return out.Bytes(), nil
}

// JSON returns the policy and the differences.
func (r *Result) JSON() ([]byte, error) {
	data, err := r.PolicyJSON()
	if err != nil {
		return nil, err
	}
	differences := r.Differences
	if differences == nil {
		differences = []Difference{}
	}
	out, err := json.MarshalIndent(struct {
		From        string          `json:"from"`
		File        string          `json:"file"`
		Recognized  []string        `json:"recognized"`
		Differences []Difference    `json:"differences"`
		Policy      json.RawMessage `json:"policy"`
	}{r.From, r.File, r.Recognized, differences, data}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	return append(out, '\n'), nil
}

// lineLength is the maximum width of comment lines.
const lineLength = 92
