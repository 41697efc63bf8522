// SPDX-License-Identifier: Apache-2.0

package policyyaml

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metehq/mete/policy"
)

func parseYAML(name string, data []byte, opts policy.Options) (*policy.Matcher, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return nil, Errors{syntaxError(name, data, err)}
	}
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, Errors{syntaxError(name, data, err)}
	default:
		return nil, Errors{{File: name, Line: second.Line, Column: second.Column, Error: policy.Error{
			Reason: "a second document begins here", Hint: "keep one policy in a file, or make them a bundle: policies: [...]"}}}
	}
	root := doc.Content[0]
	c := converter{file: name, open: map[*yaml.Node]bool{}}
	c.value(root, "", 0)
	if c.stopped {
		return nil, c.found
	}
	return compile(name, c.out.Bytes(), opts, c.found, func(paths []string) map[string]place { return placesInYAML(root, paths) })
}

// placeInYAML returns the place of what path names: a scalar's own, and that of
// its key for a mapping or sequence.
func placeInYAML(n *yaml.Node, path string) (place, bool) {
	at := place{n.Line, n.Column}
	for rest := path; rest != ""; {
		var element string
		element, rest, _ = strings.Cut(rest[1:], "/")
		if rest != "" {
			rest = "/" + rest
		}
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		i := -1
		switch n.Kind {
		case yaml.SequenceNode:
			if v, err := strconv.Atoi(element); err == nil && v >= 0 && v < len(n.Content) {
				i, at = v, place{n.Content[v].Line, n.Content[v].Column}
			}
		case yaml.MappingNode:
			for k := 0; k+1 < len(n.Content) && i < 0; k += 2 {
				if pointerEscapes.Replace(n.Content[k].Value) == element {
					i, at = k+1, place{n.Content[k].Line, n.Content[k].Column}
				}
			}
		}
		if i < 0 {
			return place{}, false
		}
		if n = n.Content[i]; n.Kind == yaml.ScalarNode {
			at = place{n.Line, n.Column}
		}
	}
	return at, true
}

// yamlLine is how the YAML reader tells the line: nothing else carries it.
var yamlLine = regexp.MustCompile(`^line (\d+): `)

func syntaxError(name string, data []byte, err error) Mistake {
	reason := strings.TrimPrefix(err.Error(), "yaml: ")
	m := Mistake{File: name}
	if match := yamlLine.FindStringSubmatch(reason); match != nil {
		m.Line, _ = strconv.Atoi(match[1])
		m.Column = 1
		reason = reason[len(match[0]):]
	}
	m.Error = policy.Error{Reason: "not YAML: " + reason}
	switch {
	case errors.Is(err, io.EOF):
		m.Error = policy.Error{Reason: "the file is empty but for comments", Hint: "write at least one rule under rules:"}
	case strings.Contains(reason, "cannot start any token") && bytes.ContainsRune(data, '\t'):
		m.Hint = "indent with spaces: YAML allows no tabs there"
	case strings.Contains(reason, "did not find expected"):
		m.Hint = "this is where it begins; the mistake may be lines below: check brackets, quotes and indentation"
	case strings.Contains(reason, "mapping values are not allowed"):
		m.Hint = "check the indentation, and quote a value that has a colon in it"
	}
	return m
}
