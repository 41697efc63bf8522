// SPDX-License-Identifier: Apache-2.0

package policyyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml/yamltree"
)

// ToJSON returns a policy file in JSON. Its arguments and errors are as in [Parse].
func ToJSON(name string, data []byte, opts policy.Options) ([]byte, error) {
	if _, err := Parse(name, data, opts); err != nil {
		return nil, err
	}
	return AsJSON(name, data)
}

// AsJSON returns JSON or YAML as JSON without compiling it as a policy. It ignores duplicate keys and tags.
func AsJSON(name string, data []byte) ([]byte, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if isJSON(name, data) {
		return data, nil
	}
	c, err := convert(name, data)
	if err == nil && c.stopped {
		err = c.found
	}
	if err != nil {
		return nil, err
	}
	return c.out.Bytes(), nil
}

// Raw returns a file in JSON or YAML as JSON, even if it is not a policy. It parses YAML like [Parse], with an
// [Errors] as the error, but does not check JSON.
func Raw(name string, data []byte) ([]byte, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if strings.EqualFold(filepath.Ext(name), ".json") || json.Valid(data) {
		return data, nil
	}
	c, err := convert(name, data)
	if m, ok := errors.AsType[Errors](err); ok && m[0].Reason == yamltree.SecondDocument {
		m[0].Reason, m[0].Hint = "the file has more than one document", ""
	}
	if err == nil && len(c.found) > 0 {
		err = c.found
	}
	if err != nil {
		return nil, err
	}
	return c.out.Bytes(), nil
}

// convert converts a YAML file to JSON. The error is an [Errors] about the syntax.
func convert(name string, data []byte) (*converter, error) {
	root, err := yamltree.Parse(data)
	switch {
	case err != nil:
		return nil, Errors{newSyntaxError(name, err)}
	case root == nil:
		return nil, Errors{{File: name, Error: policy.Error{Reason: "the file is empty or has only comments", Hint: "write at least one rule under rules:"}}}
	}
	c := &converter{file: name, root: root, open: map[*yamltree.Node]bool{}}
	c.writeValue(root, "", 0)
	return c, nil
}
