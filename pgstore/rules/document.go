// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// An object is a JSON object whose values are still text.
type object map[string]json.RawMessage

// parseObject reads a JSON object. No text is {}.
func parseObject(text json.RawMessage) (object, error) {
	o := object{}
	if len(text) == 0 {
		return o, nil
	}
	if err := json.Unmarshal(text, &o); err != nil || o == nil {
		return object{}, fmt.Errorf("must be a JSON object")
	}
	return o, nil
}

// text returns the string in a field, "" where there is none.
func (o object) text(field string) (s string) {
	_ = json.Unmarshal(o[field], &s) // the compiler refuses a value of another type
	return s
}

// put sets a field to the JSON of a value.
func (o object) put(field string, value any) { o[field] = marshal(value) }

// marshal writes a value that has a JSON form.
func marshal(value any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // a Buffer takes all, and the values are maps, lists and texts
	return bytes.TrimSpace(b.Bytes())
}

// sameJSON compares two JSON texts by their values. Numbers are the same if their
// digits are.
func sameJSON(a, b json.RawMessage) bool { return reflect.DeepEqual(decode(a), decode(b)) }

// decode reads a JSON text and keeps the digits of its numbers.
func decode(text json.RawMessage) (v any) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	_ = dec.Decode(&v) // callers have read the text before
	return v
}

// textValues writes the numbers in the match of a rule, and in other maps of
// attributes, as text, which means the same. PostgreSQL would write 1e1 as 10.
func textValues(v any, inside bool) any {
	switch v := v.(type) {
	case json.Number:
		if inside {
			return v.String()
		}
	case []any:
		for i := range v {
			v[i] = textValues(v[i], inside)
		}
	case map[string]any:
		for name := range v {
			v[name] = textValues(v[name], inside || name == "match" || name == "request" || name == "with" || name == "scope_value")
		}
	}
	return v
}
