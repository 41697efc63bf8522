// SPDX-License-Identifier: Apache-2.0

package policyyaml

import (
	"bytes"
	"errors"

	"go.yaml.in/yaml/v3"

	"github.com/metehq/mete/policy"
)

// ToJSON returns a policy file in JSON. It takes what [Parse] does, and fails as that
// does.
func ToJSON(name string, data []byte, opts policy.Options) ([]byte, error) {
	if _, err := Parse(name, data, opts); err != nil {
		return nil, err
	}
	return AsJSON(name, data)
}

// AsJSON is [ToJSON] of what may not be a policy, but is JSON or YAML.
func AsJSON(name string, data []byte) ([]byte, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if isJSON(name, data) {
		return data, nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil || len(doc.Content) == 0 {
		return nil, errors.Join(errors.New("policyyaml: no document"), err)
	}
	c := converter{file: name, open: map[*yaml.Node]bool{}}
	c.value(doc.Content[0], "", 0)
	if c.stopped {
		return nil, c.found
	}
	return c.out.Bytes(), nil
}
