// SPDX-License-Identifier: Apache-2.0

package policyyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metehq/mete/policy"
)

// Raw returns what a file in JSON or YAML says as JSON, whatever it is about. It
// reads YAML as [Parse] does; the error is an [Errors], except that what is broken in
// JSON is left to whoever reads it.
func Raw(name string, data []byte) ([]byte, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if strings.EqualFold(filepath.Ext(name), ".json") || json.Valid(data) {
		return data, nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		return nil, Errors{{File: name, Error: policy.Error{Reason: "the file is empty"}}}
	case err != nil:
		return nil, Errors{syntaxError(name, data, err)}
	case !errors.Is(dec.Decode(&second), io.EOF):
		return nil, Errors{{File: name, Error: policy.Error{Reason: "there is more than one document in the file"}}}
	}
	c := converter{file: name, open: map[*yaml.Node]bool{}}
	c.value(doc.Content[0], "", 0)
	if len(c.found) > 0 {
		return nil, c.found
	}
	return c.out.Bytes(), nil
}
