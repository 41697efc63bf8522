// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// An object is a JSON object whose values are still text.
type object map[string]json.RawMessage

// parseObject reads a JSON object, and nothing else.
func parseObject(text json.RawMessage) (object, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return object{}, nil
	}
	var o object
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&o); err != nil {
		return nil, fmt.Errorf("must be a JSON object: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF || o == nil {
		return nil, fmt.Errorf("must be one JSON object")
	}
	return o, nil
}

// has reports whether o has any of the fields.
func (o object) has(fields ...string) bool {
	for _, f := range fields {
		if _, ok := o[f]; ok {
			return true
		}
	}
	return false
}

// text returns the string in a field, "" where there is none.
func (o object) text(field string) string {
	var s string
	_ = json.Unmarshal(o[field], &s) // whatever else it is, the compiler refuses
	return s
}

// put sets a field to the JSON of a value.
func (o object) put(field string, value any) { o[field] = marshal(value) }

// marshal writes what always can be written.
func marshal(value any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(b.Bytes())
}

// sameJSON compares two JSON texts by their values. Nothing is {}.
func sameJSON(a, b json.RawMessage) bool { return bytes.Equal(canonical(a), canonical(b)) }

// canonical is a JSON text with sorted fields, no spaces and no needless digits.
func canonical(text json.RawMessage) []byte {
	if len(bytes.TrimSpace(text)) == 0 {
		return []byte("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return text
	}
	return marshal(plainNumbers(v))
}

// plainNumbers writes all numbers in v in one way, as far as they are short.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return plainNumber(v)
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plainNumbers(v[k])
		}
	}
	return v
}

// pointer appends fields to a JSON Pointer.
func pointer(path string, elements ...any) string {
	for _, e := range elements {
		switch e := e.(type) {
		case int:
			path += "/" + strconv.Itoa(e)
		case string:
			path += "/" + escaper.Replace(e)
		}
	}
	return path
}
