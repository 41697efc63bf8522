// SPDX-License-Identifier: Apache-2.0

package policyyaml

import (
	"errors"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml/yamltree"
)

func parseYAML[T any](name string, data []byte, load func([]byte) (*T, error)) (*T, error) {
	c, err := convert(name, data)
	if err != nil {
		return nil, err
	}
	if c.stopped {
		return nil, c.found
	}
	return compile(name, c.out.Bytes(), load, c.found, func(paths []string) map[string]Place { return placesInYAML(c.root, paths) })
}

func newSyntaxError(name string, err error) FileError {
	var e *yamltree.SyntaxError
	if !errors.As(err, &e) {
		return FileError{File: name, Error: policy.Error{Reason: err.Error()}}
	}
	m := FileError{File: name, Line: e.Line, Column: e.Column, Error: policy.Error{Reason: "not YAML: " + e.Reason, Hint: e.Hint}}
	if e.Reason == yamltree.SecondDocument {
		m.Reason, m.Hint = e.Reason, "keep one policy per file, or use a bundle: policies: [...]"
	}
	return m
}
